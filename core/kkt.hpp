// The optimality conditions of a problem, in double precision.
//
// With g = p - K b, a variable that may rise offers u = g - kink (b >= 0) or g + kink (b < 0); one
// that may fall asks l = g - kink (b > 0) or g + kink (b <= 0). At the optimum no u of a group
// exceeds an l of it; the largest excess is the KKT gap.
#pragma once

#include <cstddef>
#include <vector>

#include "loops.hpp"
#include "problem.hpp"
#include "solution.hpp"

namespace onefit {

// u - g of a variable, or out of reach when it may not rise.
inline float up_shift(const Problem& problem, std::size_t v, double b) {
  if (!(b < problem.upper[v])) return -kNever;
  return static_cast<float>(b < 0.0 ? problem.kink : -problem.kink);
}

// l - g of a variable, or out of reach when it may not fall.
inline float low_shift(const Problem& problem, std::size_t v, double b) {
  if (!(b > problem.lower[v])) return kNever;
  return static_cast<float>(b > 0.0 ? -problem.kink : problem.kink);
}

inline std::size_t group_of(const Problem& problem, std::size_t v) {
  return v < problem.split ? 0 : 1;
}

// What is known of a group of variables: extremes of u and l, and the mean of those that are equal
// (the variables strictly between their bounds, whose value is the offset).
class GroupConditions {
 public:
  void add(double up, double low);
  double gap() const;
  // LIBSVM's rule: the mean over free variables, or the middle of what the others leave.
  double offset() const;

 private:
  double max_up_ = -kNever;
  double min_low_ = kNever;
  double free_sum_ = 0.0;
  std::size_t free_count_ = 0;
};

// The conditions of each group, over all variables or over the given ones.
struct Conditions {
  GroupConditions groups[2];
  double gap() const;
};
Conditions conditions(const Problem& problem, const std::vector<double>& beta,
                      const std::vector<double>& gradient);
Conditions conditions(const Problem& problem, const std::vector<double>& beta,
                      const std::vector<double>& gradient, const std::int32_t* variables,
                      std::size_t count);

double objective(const Problem& problem, const std::vector<double>& beta,
                 const std::vector<double>& gradient);

}  // namespace onefit
