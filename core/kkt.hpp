// The optimality conditions of a problem, in double precision, and steps that keep to its bounds.
//
// With g = p - K b, a variable that may rise offers u = g - kink (b >= 0) or g + kink (b < 0); one
// that may fall asks l = g - kink (b > 0) or g + kink (b <= 0). At the optimum no u of a group
// exceeds an l of it; the largest excess is the KKT gap.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "loops.hpp"
#include "problem.hpp"
#include "solution.hpp"

namespace onefit {

// u - g of a variable, or out of reach when it may not rise. The kink is rounded to T: a solver
// that keeps shifts in float32 has to be judged by what it can see.
template <class T>
T up_shift(const Problem& problem, std::size_t v, double b) {
  if (!(b < problem.upper[v])) return -kNever;
  return static_cast<T>(b < 0.0 ? problem.kink : -problem.kink);
}

// l - g of a variable, or out of reach when it may not fall.
template <class T>
T low_shift(const Problem& problem, std::size_t v, double b) {
  if (!(b > problem.lower[v])) return kNever;
  return static_cast<T>(b > 0.0 ? -problem.kink : problem.kink);
}

// How far a variable can move before it meets a bound or, with a kink, zero.
inline double room_up(const Problem& problem, std::size_t v, double b) {
  return problem.kink > 0.0 && b < 0.0 ? -b : problem.upper[v] - b;
}
inline double room_down(const Problem& problem, std::size_t v, double b) {
  return problem.kink > 0.0 && b > 0.0 ? b : b - problem.lower[v];
}

// The variable after a step of at most its room that way: it lands on the bound (or on zero)
// exactly.
inline double moved(const Problem& problem, std::size_t v, double b, double step, double room) {
  if (std::abs(step) < room) return b + step;
  const bool at_zero = problem.kink > 0.0 && b != 0.0 && (b < 0.0) == (step > 0.0);
  return at_zero ? 0.0 : step > 0.0 ? problem.upper[v] : problem.lower[v];
}

// How far two variables go until the slope is 0; without curvature nothing stops them but a bound.
inline double to_optimum(double slope, double curvature) {
  return curvature > 0.0 ? slope / curvature : std::numeric_limits<double>::infinity();
}

// Moves one variable up and another down by a step, or as far as both can; returns how far, and 0
// when neither has changed, or when both would go on for ever.
inline double move_pair(const Problem& problem, std::vector<double>& beta, std::size_t up,
                        std::size_t down, double step) {
  const double before_up = beta[up];
  const double before_down = beta[down];
  const double room = room_up(problem, up, before_up);
  const double other_room = room_down(problem, down, before_down);
  step = std::min({step, room, other_room});
  if (!std::isfinite(step)) return 0.0;
  beta[up] = moved(problem, up, before_up, step, room);
  beta[down] = moved(problem, down, before_down, -step, other_room);
  return beta[up] == before_up && beta[down] == before_down ? 0.0 : step;
}

inline std::size_t group_of(const Problem& problem, std::size_t v) {
  return v < problem.split ? 0 : 1;
}

// What is known of a group of variables: extremes of u and l, and the mean of those that are equal
// (the variables strictly between their bounds, whose value is the offset).
class GroupConditions {
 public:
  GroupConditions() = default;
  explicit GroupConditions(const Summary& summary) : summary_(summary) {}
  void add(double up, double low);
  double gap() const;
  // LIBSVM's rule: the mean over free variables, or the middle of what the others leave.
  double offset() const;

 private:
  Summary summary_;
};

// The conditions of each group over the given variables, with shifts in T (float or double).
struct Conditions {
  GroupConditions groups[2];
  double gap() const;
};
template <class T>
Conditions conditions(const Problem& problem, const std::vector<double>& beta,
                      const std::vector<double>& gradient, const std::int32_t* variables,
                      std::size_t count);

// The same over all variables, and what else one pass finds.
struct Judged : Conditions {
  double objective = 0.0;
  double squares = 0.0;  // of all coefficients
  double largest = 0.0;  // coefficient, without its sign
  // Infinite where a gradient is not finite: the objective has a part of each.
  double gap() const;
};
template <class T>
Judged conditions(const Problem& problem, const std::vector<double>& beta,
                  const std::vector<double>& gradient);

// Throws std::overflow_error where numbers of a solution are not finite.
void check_finite(const Solution& solution);

// What a solve returns that ended at beta, where these conditions hold.
Solution solution_at(const Problem& problem, std::vector<double> beta, std::vector<double> gradient,
                     const Judged& reached, std::int64_t n_iter, Status status);
template <class T>
Solution solution_at(const Problem& problem, std::vector<double> beta, std::vector<double> gradient,
                     std::int64_t n_iter, Status status);

}  // namespace onefit
