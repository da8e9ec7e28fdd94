#include "chains.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "active.hpp"
#include "chain_workers.hpp"
#include "folds.hpp"
#include "smo.hpp"

namespace onefit {
namespace {

// In a chain most variables that will be free are known from the step before, and most of its work
// is at large C, where steps of all free variables pay: 8 x 8 x 5 cells of diabetes took 0.23 s
// with this patience and 0.44 with that of a single solve, german.numer 0.31 and 0.34.
constexpr double kPatience = 1.0;

// A solution is scaled if that takes it almost as far as the bounds allow, and otherwise left as it
// is: to be scaled in part takes variables off their bounds. 8 x 8 x 5 cells of diabetes: 0.231 s
// of CPU time with any scale, 0.223 with none, 0.212 with this; german.numer 0.305, 0.316, 0.296.
constexpr double kAlmost = 0.9;

struct Step {
  std::size_t chain;
  std::size_t step;
  Solution solution;
};

}  // namespace

void solve_chain(const Chain& chain, bool cold, const Settings& settings, std::size_t scratch,
                 Interrupt& interrupt,
                 const std::function<bool(std::size_t step, Solution&& solution)>& done) {
  Settings inner = settings;
  if (!cold) inner.newton_patience = kPatience;
  std::vector<double> bounds(chain.bounds.size());
  Solution before;
  for (std::size_t k = 0; k < chain.factors.size(); ++k) {
    const double factor = chain.factors[k];
    std::transform(chain.bounds.begin(), chain.bounds.end(), bounds.begin(),
                   [factor](double c) { return c > 0.0 ? factor * c : 0.0; });
    Problem problem = with_bounds(*chain.all, bounds);
    const bool is_near = k < chain.nearby.size() && chain.nearby[k].status == Status::Converged;
    const bool started = !cold && (is_near || (k > 0 && before.status == Status::Converged));
    if (started && is_near) {
      start_near(*chain.store, chain.nearby[k], interrupt, problem);
    } else if (started) {
      start_scaled(before, factor / chain.factors[k - 1], problem);
    }
    Solution solution = solve(*chain.store, problem, inner, scratch, interrupt);
    if (started && !solution.free_rows && solution.status == Status::Converged) {
      // Any offset between two values is right here; that of a cold solve is wanted.
      const std::int64_t spent = solution.n_iter;
      solution = solve(*chain.store, with_bounds(*chain.all, bounds), inner, scratch, interrupt);
      solution.n_iter += spent;
    }
    if (solution.status == Status::Interrupted) return;
    if (k + 1 < chain.factors.size()) before = solution;
    if (done(k, std::move(solution))) return;
  }
}

void start_near(KernelStore& store, const Solution& solved, Interrupt& interrupt, Problem& next) {
  next.start = average_start(next, solved);
  std::vector<double> change = next.start;
  for (std::size_t v = 0; v < change.size(); ++v) change[v] -= solved.beta[v];
  next.start_gradient = solved.gradient;
  shift_gradient(store, next.rows, change.data(), interrupt, next.start_gradient.data());
}

void start_scaled(const Solution& solved, double ratio, Problem& next) {
  const std::size_t n = next.size();
  double scale = ratio;
  if (next.start.empty()) {
    double linear = 0.0;
    double square = 0.0;
    for (std::size_t v = 0; v < n; ++v) {
      const double b = solved.beta[v];
      linear += next.linear[v] * b - next.kink * std::abs(b);
      square += b * (next.linear[v] - solved.gradient[v]);
    }
    const double best = square > 0.0 ? linear / square : 1.0;
    scale = best >= kAlmost * ratio ? std::clamp(best, 1.0, std::max(ratio, 1.0)) : 1.0;
  }
  next.start.resize(n);
  next.start_gradient.resize(n);
  for (std::size_t v = 0; v < n; ++v) {
    next.start[v] = std::clamp(scale * solved.beta[v], next.lower[v], next.upper[v]);
    next.start_gradient[v] = next.linear[v] - scale * (next.linear[v] - solved.gradient[v]);
  }
}

void solve_chains(const std::vector<Chain>& chains, bool cold, const Settings& settings,
                  std::size_t threads, const Finished& finished, Interrupt& interrupt) {
  over_chains<Step>(
      chains, settings, threads,
      [&](std::size_t c, const Settings& inner, std::size_t scratch, Interrupt& stop,
          const auto& hand) {
        solve_chain(chains[c], cold, inner, scratch, stop, [&](std::size_t k, Solution&& solution) {
          return hand({c, k, std::move(solution)});
        });
      },
      [&](Step&& step) { return finished(step.chain, step.step, std::move(step.solution)); },
      interrupt);
}

}  // namespace onefit
