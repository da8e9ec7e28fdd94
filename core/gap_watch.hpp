// Whether the gap of a solve still comes down.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace onefit {

// Compares the least gap of each window of iterations with the least of all windows before it: from
// one iteration to the next a gap may well rise.
class GapWatch {
 public:
  // Rounding of the entries is suspected when the gap stands still over so many iterations (or this
  // many times the number of variables).
  static std::int64_t window_of(std::size_t variables) {
    return std::max(kPatience, kPatiencePerVariable * static_cast<std::int64_t>(variables));
  }

  GapWatch(std::int64_t n_iter, std::int64_t window) : window_(window), end_(n_iter + window) {}

  // Notes a gap; true at the end of a window that has brought it down by hardly anything.
  bool stands_still(std::int64_t n_iter, double gap) {
    least_ = std::min(least_, gap);
    if (n_iter < end_) return false;
    const bool still = least_ > kHardlyLess * before_;
    before_ = std::min(before_, least_);
    least_ = std::numeric_limits<double>::infinity();
    end_ = n_iter + window_;
    return still;
  }

 private:
  static constexpr double kHardlyLess = 0.9;
  static constexpr std::int64_t kPatience = 10000;
  static constexpr std::int64_t kPatiencePerVariable = 100;
  std::int64_t window_;
  std::int64_t end_;
  double least_ = std::numeric_limits<double>::infinity();   // of this window
  double before_ = std::numeric_limits<double>::infinity();  // of those before it
};

}  // namespace onefit
