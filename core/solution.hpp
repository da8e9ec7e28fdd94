// What a solve returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onefit {

enum class Status {
  Converged,    // the KKT gap is below the tolerance, computed in double precision
  MaxIter,      // the limit on iterations was reached first
  Stalled,      // no step changes the variables any more: the tolerance is below rounding
  Interrupted,  // stopped from outside
  SignProven,   // the sign that was asked for is known
};

struct Settings {
  double tol = 1e-3;
  std::int64_t max_iter = -1;  // -1: no limit
  bool shrinking = true;
  std::size_t threads = 1;  // for evaluating kernel rows
  // How many times the cost of a step of all free variables a solve has to have cost before the
  // first of them.
  double newton_patience = 8.0;
};

struct Solution {
  std::vector<double> beta;
  std::vector<double> gradient;   // p - K beta, in double precision
  double offset[2] = {0.0, 0.0};  // one a group; b of the decision function when there is one group
  bool free_rows = true;  // whether each group has a free variable, which decides its offset
  double objective = 0.0;
  double gap = 0.0;
  std::int64_t n_iter = 0;
  Status status = Status::Converged;
};

}  // namespace onefit
