// By how much a solve still improves its objective.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace onefit {

// A solve gives up when so many iterations together (or this many times the number of variables)
// improve the objective by less than this part of it. Low-rank kernels with a large C get there:
// float32 entries make them slightly indefinite, and a tight tolerance is then out of reach, unless
// the problem is small enough for entries in double precision.
class ProgressWatch {
 public:
  explicit ProgressWatch(std::size_t variables)
      : window_(std::max(kWindow, kWindowPerVariable * static_cast<std::int64_t>(variables))),
        left_(window_) {}

  void add(double gain) {
    in_window_ += gain;
    recent_ += gain;
  }

  // Counts iterations; true at the end of a window that has improved hardly anything.
  bool stands_still(std::int64_t iterations) {
    left_ -= iterations;
    if (left_ > 0) return false;
    before_ += in_window_;
    const bool still = !(in_window_ > kLeastProgress * before_);
    in_window_ = 0.0;
    left_ = window_;
    return still;
  }

  // What was gained since the last note.
  double recent() const { return recent_; }
  void note() { recent_ = 0.0; }

 private:
  static constexpr std::int64_t kWindow = 1000000;
  static constexpr std::int64_t kWindowPerVariable = 10;
  static constexpr double kLeastProgress = 1e-12;
  std::int64_t window_;
  std::int64_t left_;
  double in_window_ = 0.0;
  double before_ = 0.0;  // in all windows that have ended
  double recent_ = 0.0;
};

// How far the gap has come from where it was first to the tolerance, on a logarithmic scale.
class Journey {
 public:
  explicit Journey(double tol) : tol_(tol) {}

  double share(double gap) {
    if (first_ <= 0.0) first_ = gap;
    return first_ > tol_ ? std::log(first_ / gap) / std::log(first_ / tol_) : 0.0;
  }

 private:
  double tol_;
  double first_ = 0.0;
};

}  // namespace onefit
