// How far a step of two variables goes, and how many of them come before a step of many.
//
// Past the optimum of its two variables a step gains less by itself, and is a head start for the
// pairs that come next: the more so the more variables depend on one another, and then the solve is
// long for each free variable (docs/decisions/0014-long-steps.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace onefit {

class Pace {
 public:
  // From here on; exact steps if it must not hurry.
  void begin(bool hurries, std::int64_t n_iter, std::size_t variables) {
    hurries_ = hurries;
    window_ = kFirstWindow;
    overstep_ = overstep(n_iter, variables);
  }

  bool hurries() const { return hurries_; }
  double overstep() const { return overstep_; }    // steps, as a multiple of exact ones
  std::int64_t window() const { return window_; }  // iterations before a step of many

  // A window has ended, with so many free variables; how long it was.
  std::int64_t next(std::int64_t n_iter, std::size_t free) {
    overstep_ = overstep(n_iter, free);
    const std::int64_t rows = static_cast<std::int64_t>(free) / kFreePerIteration;
    return std::exchange(window_,
                         hurries_ ? std::clamp(rows, kLeastWindow, kMostWindow) : kFirstWindow);
  }

 private:
  static constexpr std::int64_t kFirstWindow = 128;
  static constexpr std::int64_t kLeastWindow = 64;
  static constexpr std::int64_t kMostWindow = 512;
  static constexpr std::int64_t kFreePerIteration = 4;
  // At first, and after so many iterations for each free variable.
  static constexpr double kShort = 1.2;
  static constexpr double kLong = 1.5;
  static constexpr double kGrows = 3.0;

  double overstep(std::int64_t n_iter, std::size_t free) const {
    if (!hurries_) return 1.0;
    const auto count = static_cast<double>(std::max<std::size_t>(free, 1));
    return kShort +
           (kLong - kShort) * std::min(1.0, static_cast<double>(n_iter) / (kGrows * count));
  }

  bool hurries_ = false;
  double overstep_ = 1.0;
  std::int64_t window_ = kFirstWindow;
};

}  // namespace onefit
