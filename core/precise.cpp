#include "precise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include "gap_watch.hpp"
#include "kkt.hpp"
#include "newton.hpp"

namespace onefit {
namespace {

// Memory for kernel rows.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;
// Iterations between looks at the interrupt, and whether a step of all free variables pays.
constexpr std::int64_t kPoll = 128;
constexpr double kRidge = 1e-13;
// The stage gives up when the gap stands still over so many iterations (or this many times the
// number of variables) and they improve the objective by less than this part of it.
constexpr std::int64_t kWindow = 200000;
constexpr std::int64_t kWindowPerVariable = 100;
constexpr double kLeastProgress = 1e-12;
// A float32 entry is off by up to so many units in the last place of the largest; a gap is not
// believed where that is likely to change it by so many tolerances.
constexpr double kEntryUlps = 4.0;
constexpr double kHopeless = 1000.0;
// How often the tolerance may turn out not to be reached when the gradient is computed anew, and
// the gap may stand still.
constexpr int kMostChecks = 100;

class PreciseSmo {
 public:
  PreciseSmo(const KernelStore& store, const Problem& problem, const Settings& settings,
             std::vector<double> beta, std::int64_t n_iter, Interrupt& interrupt)
      : store_(store),
        problem_(problem),
        settings_(settings),
        interrupt_(interrupt),
        n_(problem.size()),
        n_iter_(n_iter),
        beta_(std::move(beta)),
        up_(n_),
        low_(n_),
        diagonal_(n_),
        first_(n_),
        rows_(n_),
        watch_(n_iter, std::max(kWindow, kWindowPerVariable * static_cast<std::int64_t>(n_))) {
    std::unordered_map<std::int32_t, std::size_t> first_of;
    for (std::size_t v = 0; v < n_; ++v) {
      const std::int32_t row = problem.rows[v];
      first_[v] = first_of.emplace(row, v).first->second;
      diagonal_[v] = store.exact_diagonal(row);
      largest_diagonal_ = std::max(largest_diagonal_, std::abs(diagonal_[v]));
      update_shifts(v);
    }
  }

  Solution run() {
    Status status = Status::Converged;
    for (int checks = 0;; ++checks) {
      // Updates add up rounding, so that only a gradient computed anew decides.
      if (!compute_gradient()) return finish(Status::Interrupted);
      const Judged reached = conditions<double>(problem_, beta_, gradient_);
      if (reached.gap() < settings_.tol) {
        const bool hidden = rounding_hides_all(settings_.tol, reached.squares, largest_diagonal_);
        return finish(hidden ? Status::Stalled : Status::Converged);
      }
      if (!std::isfinite(reached.gap())) return finish(Status::Stalled);
      if (status != Status::Converged) return finish(status);
      if (checks == kMostChecks) return finish(Status::Stalled);
      status = iterate();
      if (status == Status::Interrupted) return finish(status);
    }
  }

 private:
  // Raise i and lower j; `gap` is that of all variables.
  struct Pair {
    double gain = 0.0;
    std::size_t i = 0;
    std::size_t j = 0;
    double gap = 0.0;
  };

  void update_shifts(std::size_t v) {
    up_[v] = up_shift<double>(problem_, v, beta_[v]);
    low_[v] = low_shift<double>(problem_, v, beta_[v]);
  }

  // The kernel row of a variable at all variables; those of the same row share it.
  const std::vector<double>& row(std::size_t v) {
    std::vector<double>& values = rows_[first_[v]];
    if (values.empty()) {
      values.resize(n_);
      store_.evaluate_exact(problem_.rows[v], problem_.rows, values.data());
      until_poll_ = 0;
    }
    return values;
  }

  bool compute_gradient() {
    gradient_ = problem_.linear;
    for (std::size_t v = 0; v < n_; ++v) {
      if (beta_[v] == 0.0) continue;
      if (interrupt_.requested()) return false;
      const std::vector<double>& k = row(v);
      for (std::size_t t = 0; t < n_; ++t) gradient_[t] -= beta_[v] * k[t];
    }
    return true;
  }

  // What rounding leaves of a curvature counts as that much. A direction without any is followed to
  // a bound.
  double curvature(std::size_t i, std::size_t j, double k_ij) const {
    const double both = diagonal_[i] + diagonal_[j];
    const double curved = both - 2.0 * k_ij;
    return curved > 0.0 ? std::max(curved, std::numeric_limits<double>::epsilon() * std::abs(both))
                        : curved;
  }

  // Of each group the variable that gains most by rising, with the partner whose step promises
  // most; of the groups the better pair.
  Pair choose() {
    Pair best;
    for (const auto& [begin, end] :
         {std::pair(std::size_t{0}, problem_.split), std::pair(problem_.split, n_)}) {
      if (begin == end) continue;
      std::size_t i = begin;
      double max_up = gradient_[begin] + up_[begin];
      double min_low = gradient_[begin] + low_[begin];
      for (std::size_t v = begin + 1; v < end; ++v) {
        const double up = gradient_[v] + up_[v];
        if (up > max_up) {
          max_up = up;
          i = v;
        }
        min_low = std::min(min_low, gradient_[v] + low_[v]);
      }
      if (max_up <= min_low) continue;
      best.gap = std::max(best.gap, max_up - min_low);
      const std::vector<double>& k_i = row(i);
      for (std::size_t v = begin; v < end; ++v) {
        const double slope = max_up - (gradient_[v] + low_[v]);
        if (slope <= 0.0) continue;
        // Its root, so that no slope is too large or too small to be squared.
        const double least = static_cast<double>(kTau) * largest_diagonal_;
        const double gain = slope / std::sqrt(std::max(curvature(i, v, k_i[v]), least));
        if (gain > best.gain) {
          best.gain = gain;
          best.i = i;
          best.j = v;
        }
      }
    }
    return best;
  }

  // Makes the best step of a pair; false when that changes nothing.
  bool step(std::size_t i, std::size_t j) {
    const std::vector<double>& k_i = row(i);
    const std::vector<double>& k_j = row(j);
    const double slope = gradient_[i] + up_[i] - gradient_[j] - low_[j];
    const double curved = curvature(i, j, k_i[j]);
    const double room_i = room_up(problem_, i, beta_[i]);
    const double room_j = room_down(problem_, j, beta_[j]);
    const double size = std::min({to_optimum(slope, curved), room_i, room_j});
    if (!std::isfinite(size)) {
      throw std::overflow_error("the dual problem has no finite solution; give a finite C");
    }
    const double before_i = beta_[i];
    const double before_j = beta_[j];
    beta_[i] = moved(problem_, i, before_i, size, room_i);
    beta_[j] = moved(problem_, j, before_j, -size, room_j);
    if (beta_[i] == before_i && beta_[j] == before_j) return false;
    update_shifts(i);
    update_shifts(j);
    for (std::size_t t = 0; t < n_; ++t) gradient_[t] -= size * (k_i[t] - k_j[t]);
    progress_ += size * (slope - 0.5 * size * curved);
    return true;
  }

  // The step of all free variables (see newton.hpp); false when there is none to take.
  bool step_of_all_free(const std::vector<std::size_t>& variables) {
    FreeVariables free;
    free.ridge = kRidge;
    for (const std::size_t v : variables) {
      const std::vector<double>& k = row(v);
      for (const std::size_t w : variables) free.matrix.push_back(k[w]);
      free.add(problem_, v, beta_[v], gradient_[v] + up_[v]);
    }
    const std::vector<double> residual = free.residual;
    const std::vector<double> step = newton_step(free);
    if (step.empty()) return false;
    const std::vector<double> before = gradient_;
    for (std::size_t k = 0; k < step.size(); ++k) {
      const std::size_t v = variables[k];
      const std::vector<double>& k_v = row(v);
      for (std::size_t t = 0; t < n_; ++t) gradient_[t] -= step[k] * k_v[t];
      beta_[v] = moved(problem_, v, beta_[v], step[k],
                       step[k] > 0.0 ? free.room_up[k] : free.room_down[k]);
      update_shifts(v);
    }
    for (std::size_t k = 0; k < step.size(); ++k) {
      const std::size_t v = variables[k];
      progress_ += step[k] * (residual[k] - 0.5 * (before[v] - gradient_[v]));
    }
    ++n_iter_;
    return true;
  }

  void try_newton() {
    std::vector<std::size_t> variables;
    for (std::size_t v = 0; v < n_; ++v) {
      if (up_[v] == low_[v]) variables.push_back(v);
    }
    if (newton_.pays(n_iter_, variables.size(), n_)) {
      const double before = progress_;
      step_of_all_free(variables);
      newton_.note(n_iter_, variables.size(), n_, progress_ - before, before - noted_progress_,
                   kPoll);
    }
    noted_progress_ = progress_;
  }

  // Converged here means that the gap is reached as far as the updated gradient tells, or that it
  // may be told wrong.
  Status iterate() {
    for (;;) {
      const Pair pair = choose();
      if (pair.gap < settings_.tol) return Status::Converged;
      if (settings_.max_iter >= 0 && n_iter_ >= settings_.max_iter) return Status::MaxIter;
      if (--until_poll_ < 0) {
        until_poll_ = kPoll;
        if (interrupt_.requested()) return Status::Interrupted;
      }
      if (pair.gain <= 0.0 || !step(pair.i, pair.j)) return Status::Stalled;
      ++n_iter_;
      if (n_iter_ % kPoll == 0) try_newton();
      if (watch_.stands_still(n_iter_, pair.gap)) {
        const bool rounding = rounding_may_cause<double>(pair.gap, beta_, largest_diagonal_);
        // Even if the objective improves, it may be by what updates of the gradient have added up.
        return rounding || !improved() ? Status::Stalled : Status::Converged;
      }
    }
  }

  // Whether the objective has improved since this was asked last.
  bool improved() {
    noted_progress_ = 0.0;
    return std::exchange(progress_, 0.0) >
           kLeastProgress * std::abs(conditions<double>(problem_, beta_, gradient_).objective);
  }

  Solution finish(Status status) {
    Solution solution =
        solution_at<double>(problem_, std::move(beta_), std::move(gradient_), n_iter_, status);
    check_finite(solution);
    return solution;
  }

  const KernelStore& store_;
  const Problem& problem_;
  const Settings& settings_;
  Interrupt& interrupt_;
  const std::size_t n_;
  std::int64_t n_iter_;

  // Per variable.
  std::vector<double> beta_;
  std::vector<double> gradient_;
  std::vector<double> up_;
  std::vector<double> low_;
  std::vector<double> diagonal_;
  double largest_diagonal_ = 0.0;          // without its sign
  std::vector<std::size_t> first_;         // the first variable with the same row
  std::vector<std::vector<double>> rows_;  // of first variables, empty until needed

  std::int64_t until_poll_ = 0;
  GapWatch watch_;
  NewtonSchedule newton_{settings_.newton_patience};
  double progress_ = 0.0;
  double noted_progress_ = 0.0;
};

}  // namespace

template <class T>
bool rounding_may_cause(double gap, const std::vector<double>& beta, double largest_diagonal) {
  double total = 0.0;
  for (const double b : beta) total += std::abs(b);
  return gap < kEntryUlps * std::numeric_limits<T>::epsilon() * largest_diagonal * total;
}
template bool rounding_may_cause<float>(double, const std::vector<double>&, double);
template bool rounding_may_cause<double>(double, const std::vector<double>&, double);

bool rounding_hides(double tol, double squares, double largest_diagonal) {
  return std::numeric_limits<float>::epsilon() * largest_diagonal * std::sqrt(squares) >
         kHopeless * tol;
}

bool rounding_hides_all(double tol, double squares, double largest_diagonal) {
  return std::numeric_limits<double>::epsilon() * largest_diagonal * std::sqrt(squares) > tol;
}

bool can_solve_precisely(std::size_t n) { return n * n * sizeof(double) <= kMostBytes; }

Solution solve_precisely(const KernelStore& store, const Problem& problem, const Settings& settings,
                         std::vector<double> beta, std::int64_t n_iter, Interrupt& interrupt) {
  return PreciseSmo(store, problem, settings, std::move(beta), n_iter, interrupt).run();
}

}  // namespace onefit
