// A step of all free variables at once.
//
// Where SMO has found which variables are free, what is left is a linear system: with r the
// gradients of the free variables, d their step and o the offset of each group,
//
//   K_FF d + o = r,   sum(d) = 0 in each group.
//
// Its solution, as far as the bounds allow, is where thousands of steps of two variables would
// lead. A variable that meets its bound on the way stays there, and the others go on: it becomes
// one more row of the border, so that one Cholesky factor serves the whole step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kkt.hpp"
#include "problem.hpp"

namespace onefit {

// The free variables of a problem.
struct FreeVariables {
  std::vector<double> matrix;    // K_FF
  std::vector<double> residual;  // r: what each would gain by rising; equal at the optimum
  std::vector<std::uint8_t> group;
  std::vector<double> room_up;  // how far each may go
  std::vector<double> room_down;
  double ridge;  // the relative rounding of the entries, or more
  std::size_t size() const { return residual.size(); }

  void add(const Problem& problem, std::size_t v, double b, double r) {
    residual.push_back(r);
    group.push_back(static_cast<std::uint8_t>(group_of(problem, v)));
    room_up.push_back(onefit::room_up(problem, v, b));
    room_down.push_back(onefit::room_down(problem, v, b));
  }
};

// The step, or nothing when the matrix is not positive definite or there is no LAPACK. A variable
// that ends at its bound has a step of exactly its room.
std::vector<double> newton_step(FreeVariables& free);

// When a solve should try such a step. Its cost is known; whether it helps is not, so that it has
// to be a small part of what the solve has cost so far, until it has shown that it does.
class NewtonSchedule {
 public:
  // `patience`: how many times its cost a solve has to have cost before the first such step.
  explicit NewtonSchedule(double patience)
      : patience_(patience), least_patience_(std::min(1.0, patience / 2.0)) {}

  bool pays(std::int64_t n_iter, std::size_t free, std::size_t active) {
    const std::size_t before = std::exchange(free_, free);
    const bool settled = free <= before + before / kSettled && before <= free + free / kSettled;
    return settled && free >= 2 && free <= kMostFree &&
           static_cast<double>(n_iter - last_) >= patience_ * cost(free, active);
  }

  // Notes by how much such a step has improved the objective, and SMO in `iterations` before it.
  void note(std::int64_t n_iter, std::size_t free, std::size_t active, double gain, double smo_gain,
            std::int64_t iterations) {
    const double same_cost = smo_gain * cost(free, active) / static_cast<double>(iterations);
    patience_ = gain > same_cost ? std::max(least_patience_, patience_ / 4) : 2 * patience_;
    last_ = n_iter;
  }

 private:
  static constexpr std::size_t kMostFree = 2500;  // half a second, which cannot be interrupted
  static constexpr std::size_t kSettled = 32;     // the number of free variables changes by a 32nd

  // In iterations of SMO, as measured: the factor, and passes over the rows of the free variables.
  static double cost(std::size_t free, std::size_t active) {
    const auto f = static_cast<double>(free);
    const auto n = static_cast<double>(active);
    return f * f * (f / 25.0 + 20.0) / n + f / 2.0 + 20.0;
  }

  std::size_t free_ = 0;
  double patience_;
  double least_patience_;
  std::int64_t last_ = 0;
};

}  // namespace onefit
