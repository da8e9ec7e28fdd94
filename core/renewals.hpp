// When gradients are computed anew in the middle of a round: those of all variables, in double
// precision, from kernel rows in float32. There are two reasons.
//
// A coarse entry is off by up to half a unit, one way as likely as the other. After a change d of
// the variables gradients are off by about units * |d|: while that is small beside the gap,
// iterations lead to where they should. Then gradients are mended, and what is off starts at
// nothing again.
//
// A round among likely variables looks, once, whether others are missing.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "burst.hpp"

namespace onefit {

class Renewals {
 public:
  explicit Renewals(double tol) : tol_(tol) {}

  // A round among all variables; or among likely ones, from a gap of so much.
  void begin() {
    until_ = kEvery;
    renewed_at_ = -1;
    look_below_ = 0.0;
  }
  void begin_among_likely(double gap) {
    begin();
    // Half of the way to the tolerance: too soon, and what is missing is not known well; too late,
    // and much was done without it.
    look_below_ = std::sqrt(gap * tol_);
  }

  void pass(std::int64_t iterations) { until_ -= iterations; }
  std::int64_t until_due() const { return until_; }

  // What the gap has to be. Of coarse rows less than it has to be when gradients are mended: where
  // that falls short, iterations go on with mended ones.
  double tolerance(bool coarse, std::int64_t n_iter) const {
    if (look_below_ > tol_) return look_below_;
    return (coarse && n_iter != renewed_at_ ? kOfTolerance : 1.0) * tol_;
  }

  // Whether it is time, with gradients that were exact at `known_at`. `reached`: the gap is what it
  // has to be.
  bool is_due(double gap, bool reached, bool coarse, std::int64_t n_iter,
              const std::vector<double>& beta, const std::vector<double>& known_at) {
    if (reached && look_below_ > 0.0) return true;
    if (!coarse || n_iter == renewed_at_) return false;
    return reached || (until_ <= 0 && drift_reaches(gap, beta, known_at));
  }

  // Whether to do so once more, in this iteration: where that takes long, and is needed again and
  // again, rows have to be finer.
  bool may_renew(std::int64_t n_iter) {
    look_below_ = 0.0;
    renewed_at_ = n_iter;
    return renewed_++ < kMost;
  }

  // Whether dropped variables are so far from their conditions that they have to come back at once.
  bool are_missing(double gap_of_all, double gap) const {
    return gap_of_all > kMissed * std::max(gap, tol_);
  }

 private:
  bool drift_reaches(double gap, const std::vector<double>& beta,
                     const std::vector<double>& known_at) {
    until_ = kEvery;
    double squares = 0.0;
    for (std::size_t v = 0; v < beta.size(); ++v) {
      const double change = beta[v] - known_at[v];
      squares += change * change;
    }
    return kUnits * static_cast<double>(kCoarseUnit) * std::sqrt(squares) > gap;
  }

  // Rounding has a standard deviation of 0.29 units, and the gap is between the extremes of
  // thousands. With 1 and with 3.5 ten folds of a9a, C = 100, take 0 to 8 % longer; magic 0 to 2 %.
  static constexpr double kUnits = 1.75;
  static constexpr std::int64_t kEvery = 512;  // iterations between looks at the drift
  static constexpr int kMost = 6;
  // Gaps of coarse rows are off by a little; mending them takes as long as hundreds of iterations.
  static constexpr double kOfTolerance = 0.9;
  static constexpr double kMissed = 2.0;  // gaps

  double tol_;
  std::int64_t until_ = kEvery;
  int renewed_ = 0;
  std::int64_t renewed_at_ = -1;  // this iteration, last
  double look_below_ = 0.0;       // this gap, at others than likely variables; else 0
};

}  // namespace onefit
