#include "chains.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <utility>

#include "folds.hpp"
#include "smo.hpp"
#include "workers.hpp"

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

// Solves the steps of a chain one after another; `done` takes each, and may stop the chain.
template <class Done>
void solve_chain(const Chain& chain, bool cold, const Settings& settings, std::size_t scratch,
                 Interrupt& interrupt, const Done& done) {
  std::vector<double> bounds(chain.bounds.size());
  Solution before;
  for (std::size_t k = 0; k < chain.factors.size(); ++k) {
    const double factor = chain.factors[k];
    std::transform(chain.bounds.begin(), chain.bounds.end(), bounds.begin(),
                   [factor](double c) { return c > 0.0 ? factor * c : 0.0; });
    Problem problem = with_bounds(*chain.all, bounds);
    const bool started = k > 0 && !cold && before.status == Status::Converged;
    if (started) start_scaled(before, factor / chain.factors[k - 1], problem);
    Solution solution = solve(*chain.store, problem, settings, scratch, interrupt);
    if (started && !solution.free_rows && solution.status == Status::Converged) {
      // Any offset between two values is right here; that of a cold solve is wanted.
      const std::int64_t spent = solution.n_iter;
      solution = solve(*chain.store, with_bounds(*chain.all, bounds), settings, scratch, interrupt);
      solution.n_iter += spent;
    }
    if (solution.status == Status::Interrupted) return;
    if (k + 1 < chain.factors.size()) before = solution;
    if (done(k, std::move(solution))) return;
  }
}

}  // namespace

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
  std::size_t workers = std::min(std::max<std::size_t>(threads, 1), chains.size());
  for (const Chain& chain : chains) workers = std::min(workers, chain.store->most_users());
  workers = std::max<std::size_t>(workers, 1);
  Settings inner = settings;
  if (!cold) inner.newton_patience = kPatience;
  inner.threads = std::max<std::size_t>(1, threads / workers);
  if (workers == 1) {
    bool stopped = false;
    for (std::size_t c = 0; c < chains.size() && !stopped && !interrupt.requested(); ++c) {
      solve_chain(chains[c], cold, inner, chains[c].store->spare_bytes(), interrupt,
                  [&](std::size_t k, Solution&& solution) {
                    stopped = finished(c, k, std::move(solution));
                    return stopped;
                  });
    }
    return;
  }

  Workers pool;
  std::mutex mutex;
  std::vector<Step> ready;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t c = next++; c < chains.size() && !pool.stop.requested(); c = next++) {
      solve_chain(chains[c], cold, inner, chains[c].store->spare_bytes() / workers, pool.stop,
                  [&](std::size_t k, Solution&& solution) {
                    {
                      const std::lock_guard lock(mutex);
                      ready.push_back({c, k, std::move(solution)});
                    }
                    pool.notify();
                    return false;
                  });
    }
  };
  bool stopped = false;
  pool.run(workers, work, [&] {
    std::vector<Step> some;
    {
      const std::lock_guard lock(mutex);
      some.swap(ready);
    }
    for (Step& step : some) {
      stopped = stopped || finished(step.chain, step.step, std::move(step.solution));
    }
    if (stopped || interrupt.requested()) pool.stop.raise();
  });
}

}  // namespace onefit
