#include "kkt.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace onefit {

void GroupConditions::add(double up, double low) {
  if (up == low) {
    summary_.free_sum += up;
    summary_.free_count += 1.0;
  }
  summary_.max_up = std::max(summary_.max_up, up);
  summary_.min_low = std::min(summary_.min_low, low);
}

double GroupConditions::gap() const {
  const double excess = summary_.max_up - summary_.min_low;
  return excess <= 0.0 ? 0.0 : excess;  // what is not a number stays so
}

double GroupConditions::offset() const {
  const Summary& s = summary_;
  if (s.free_count > 0.0) return s.free_sum / s.free_count;
  const bool any_up = s.max_up > -kNever / 2;
  const bool any_low = s.min_low < kNever / 2;
  if (any_up && any_low) return (s.max_up + s.min_low) / 2;
  return any_up ? s.max_up : any_low ? s.min_low : 0.0;
}

double Conditions::gap() const { return std::max(groups[0].gap(), groups[1].gap()); }

double Judged::gap() const {
  const double excess = Conditions::gap();
  return std::isfinite(objective) && std::isfinite(excess)
             ? excess
             : std::numeric_limits<double>::infinity();
}

void check_finite(const Solution& solution) {
  if (std::isfinite(solution.gap) && std::isfinite(solution.objective) &&
      std::isfinite(solution.offset[0]) && std::isfinite(solution.offset[1])) {
    return;
  }
  throw std::overflow_error("C times the kernel values overflows");
}

template <class T>
Judged conditions(const Problem& problem, const std::vector<double>& beta,
                  const std::vector<double>& gradient) {
  Judged all;
  const std::size_t ends[] = {0, problem.split, problem.size()};
  for (std::size_t k = 0; k < 2; ++k) {
    const std::size_t v = ends[k];
    if (v == ends[k + 1]) continue;
    Summary summary;
    loops().summarise(ends[k + 1] - v, beta.data() + v, gradient.data() + v,
                      problem.linear.data() + v, problem.lower.data() + v, problem.upper.data() + v,
                      static_cast<double>(static_cast<T>(problem.kink)), problem.kink, &summary);
    all.groups[k] = GroupConditions(summary);
    all.objective += summary.objective;
    all.squares += summary.squares;
    all.largest = std::max(all.largest, summary.largest);
  }
  return all;
}

template <class T>
Conditions conditions(const Problem& problem, const std::vector<double>& beta,
                      const std::vector<double>& gradient, const std::int32_t* variables,
                      std::size_t count) {
  Conditions all;
  for (std::size_t k = 0; k < count; ++k) {
    const auto v = static_cast<std::size_t>(variables[k]);
    all.groups[group_of(problem, v)].add(
        gradient[v] + static_cast<double>(up_shift<T>(problem, v, beta[v])),
        gradient[v] + static_cast<double>(low_shift<T>(problem, v, beta[v])));
  }
  return all;
}

// Nearer than this to a bound, relative to the largest coefficient, a variable may be there but for
// rounding.
constexpr double kAtBound = 1e-9;

static bool has_free_rows(const Problem& problem, const std::vector<double>& beta, double largest) {
  const double near = kAtBound * largest;
  const std::size_t ends[] = {0, problem.split, problem.size()};
  for (std::size_t k = 0; k < 2; ++k) {
    bool present = false;
    bool found = false;
    for (std::size_t v = ends[k]; v < ends[k + 1] && !found; ++v) {
      present |= problem.lower[v] < problem.upper[v];
      found = beta[v] - problem.lower[v] > near && problem.upper[v] - beta[v] > near &&
              (problem.kink == 0.0 || std::abs(beta[v]) > near);
    }
    if (present && !found) return false;
  }
  return true;
}

Solution solution_at(const Problem& problem, std::vector<double> beta, std::vector<double> gradient,
                     const Judged& reached, std::int64_t n_iter, Status status) {
  Solution solution;
  solution.status = status;
  solution.n_iter = n_iter;
  solution.gap = reached.gap();
  for (std::size_t k = 0; k < 2; ++k) solution.offset[k] = reached.groups[k].offset();
  solution.free_rows = has_free_rows(problem, beta, reached.largest);
  solution.objective = reached.objective;
  solution.beta = std::move(beta);
  solution.gradient = std::move(gradient);
  return solution;
}

template <class T>
Solution solution_at(const Problem& problem, std::vector<double> beta, std::vector<double> gradient,
                     std::int64_t n_iter, Status status) {
  const Judged reached = conditions<T>(problem, beta, gradient);
  return solution_at(problem, std::move(beta), std::move(gradient), reached, n_iter, status);
}

template Judged conditions<float>(const Problem&, const std::vector<double>&,
                                  const std::vector<double>&);
template Judged conditions<double>(const Problem&, const std::vector<double>&,
                                   const std::vector<double>&);
template Conditions conditions<float>(const Problem&, const std::vector<double>&,
                                      const std::vector<double>&, const std::int32_t*, std::size_t);
template Solution solution_at<float>(const Problem&, std::vector<double>, std::vector<double>,
                                     std::int64_t, Status);
template Solution solution_at<double>(const Problem&, std::vector<double>, std::vector<double>,
                                      std::int64_t, Status);

}  // namespace onefit
