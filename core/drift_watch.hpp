// What coarse kernel rows have left in the gradients.
//
// A coarse entry is off by up to half a unit, one way as likely as the other. After a change d of
// the variables gradients are off by about units * |d|: while that is small beside the gap,
// iterations lead to where they should. Then gradients are mended, from rows in float32 of the
// variables that have changed, and what is off starts at nothing again.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "burst.hpp"

namespace onefit {

class DriftWatch {
 public:
  void begin() {
    until_ = kEvery;
    mended_at_ = -1;
  }
  void pass(std::int64_t iterations) { until_ -= iterations; }
  std::int64_t until_due() const { return until_; }

  // Whether gradients that were exact at `known_at` may be off by a gap of so much.
  bool reaches(double gap, const std::vector<double>& beta, const std::vector<double>& known_at) {
    until_ = kEvery;
    double squares = 0.0;
    for (std::size_t v = 0; v < beta.size(); ++v) {
      const double change = beta[v] - known_at[v];
      squares += change * change;
    }
    return kUnits * static_cast<double>(kCoarseUnit) * std::sqrt(squares) > gap;
  }

  // Whether to mend gradients once more, in this iteration: where that takes long, and is needed
  // again and again, rows have to be finer.
  bool may_mend(std::int64_t n_iter) {
    mended_at_ = n_iter;
    return mended_++ < kMost;
  }
  std::int64_t mended_at() const { return mended_at_; }

 private:
  // Rounding has a standard deviation of 0.29 units, and the gap is between the extremes of
  // thousands. With 1 and with 3.5 ten folds of a9a, C = 100, take 0 to 8 % longer; magic 0 to 2 %.
  static constexpr double kUnits = 1.75;
  static constexpr std::int64_t kEvery = 512;  // iterations between looks
  static constexpr int kMost = 6;

  std::int64_t until_ = kEvery;
  int mended_ = 0;
  std::int64_t mended_at_ = -1;  // this iteration, last
};

}  // namespace onefit
