#include "kkt.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace onefit {

void GroupConditions::add(double up, double low) {
  if (up == low) {
    free_sum_ += up;
    ++free_count_;
  }
  max_up_ = std::max(max_up_, up);
  min_low_ = std::min(min_low_, low);
}

double GroupConditions::gap() const { return std::max(0.0, max_up_ - min_low_); }

double GroupConditions::offset() const {
  if (free_count_ > 0) return free_sum_ / static_cast<double>(free_count_);
  const bool any_up = max_up_ > -kNever / 2;
  const bool any_low = min_low_ < kNever / 2;
  if (any_up && any_low) return (max_up_ + min_low_) / 2;
  return any_up ? max_up_ : any_low ? min_low_ : 0.0;
}

double Conditions::gap() const { return std::max(groups[0].gap(), groups[1].gap()); }

namespace {

template <class T>
void add(Conditions& all, const Problem& problem, const std::vector<double>& beta,
         const std::vector<double>& gradient, std::size_t v) {
  all.groups[group_of(problem, v)].add(
      gradient[v] + static_cast<double>(up_shift<T>(problem, v, beta[v])),
      gradient[v] + static_cast<double>(low_shift<T>(problem, v, beta[v])));
}

}  // namespace

template <class T>
Conditions conditions(const Problem& problem, const std::vector<double>& beta,
                      const std::vector<double>& gradient) {
  Conditions all;
  for (std::size_t v = 0; v < problem.size(); ++v) add<T>(all, problem, beta, gradient, v);
  return all;
}

template <class T>
Conditions conditions(const Problem& problem, const std::vector<double>& beta,
                      const std::vector<double>& gradient, const std::int32_t* variables,
                      std::size_t count) {
  Conditions all;
  for (std::size_t k = 0; k < count; ++k) {
    add<T>(all, problem, beta, gradient, static_cast<std::size_t>(variables[k]));
  }
  return all;
}

double objective(const Problem& problem, const std::vector<double>& beta,
                 const std::vector<double>& gradient) {
  double sum = 0.0;
  for (std::size_t v = 0; v < problem.size(); ++v) {
    // b'Kb = b'(p - g)
    sum += -0.5 * beta[v] * (problem.linear[v] + gradient[v]) + problem.kink * std::abs(beta[v]);
  }
  return sum;
}

// Nearer than this to a bound, relative to the largest coefficient, a variable may be there but for
// rounding.
constexpr double kAtBound = 1e-9;

static bool has_free_rows(const Problem& problem, const std::vector<double>& beta) {
  double largest = 0.0;
  for (const double b : beta) largest = std::max(largest, std::abs(b));
  const double near = kAtBound * largest;
  bool present[2] = {false, false};
  bool found[2] = {false, false};
  for (std::size_t v = 0; v < problem.size(); ++v) {
    if (!(problem.lower[v] < problem.upper[v])) continue;
    const std::size_t group = group_of(problem, v);
    present[group] = true;
    found[group] |= beta[v] - problem.lower[v] > near && problem.upper[v] - beta[v] > near &&
                    (problem.kink == 0.0 || std::abs(beta[v]) > near);
  }
  return (found[0] || !present[0]) && (found[1] || !present[1]);
}

Solution solution_at(const Problem& problem, std::vector<double> beta, std::vector<double> gradient,
                     const Conditions& reached, std::int64_t n_iter, Status status) {
  Solution solution;
  solution.status = status;
  solution.n_iter = n_iter;
  solution.gap = reached.gap();
  for (std::size_t k = 0; k < 2; ++k) solution.offset[k] = reached.groups[k].offset();
  solution.free_rows = has_free_rows(problem, beta);
  solution.objective = objective(problem, beta, gradient);
  solution.beta = std::move(beta);
  solution.gradient = std::move(gradient);
  return solution;
}

template <class T>
Solution solution_at(const Problem& problem, std::vector<double> beta, std::vector<double> gradient,
                     std::int64_t n_iter, Status status) {
  const Conditions reached = conditions<T>(problem, beta, gradient);
  return solution_at(problem, std::move(beta), std::move(gradient), reached, n_iter, status);
}

template Conditions conditions<float>(const Problem&, const std::vector<double>&,
                                      const std::vector<double>&);
template Conditions conditions<double>(const Problem&, const std::vector<double>&,
                                       const std::vector<double>&);
template Conditions conditions<float>(const Problem&, const std::vector<double>&,
                                      const std::vector<double>&, const std::int32_t*, std::size_t);
template Solution solution_at<float>(const Problem&, std::vector<double>, std::vector<double>,
                                     std::int64_t, Status);
template Solution solution_at<double>(const Problem&, std::vector<double>, std::vector<double>,
                                      std::int64_t, Status);

}  // namespace onefit
