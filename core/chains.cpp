#include "chains.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "active.hpp"
#include "chain_workers.hpp"
#include "folds.hpp"

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

ChainRun::ChainRun(Chain chain, bool cold, const Settings& settings, std::size_t scratch,
                   Interrupt& interrupt, SmoMemory& memory, Done done)
    : chain_(std::move(chain)),
      cold_(cold),
      settings_(settings),
      scratch_(scratch),
      interrupt_(interrupt),
      memory_(memory),
      done_(std::move(done)),
      bounds_(chain_.bounds.size()) {
  if (!cold) settings_.newton_patience = kPatience;
  if (!chain_.factors.empty()) begin();
  go_on();
}

void ChainRun::step() {
  solve_->step();
  go_on();
}

void ChainRun::step(ChainRun& a, ChainRun& b) {
  StepwiseSolve::step(*a.solve_, *b.solve_);
  a.go_on();
  b.go_on();
}

void ChainRun::begin() {
  const std::size_t k = step_;
  const double factor = chain_.factors[k];
  std::transform(chain_.bounds.begin(), chain_.bounds.end(), bounds_.begin(),
                 [factor](double c) { return c > 0.0 ? factor * c : 0.0; });
  Problem& problem = memory_.problem;
  with_bounds(*chain_.all, bounds_, problem);
  const bool is_near = k < chain_.nearby.size() && chain_.nearby[k].status == Status::Converged;
  started_ = !cold_ && (is_near || (k > 0 && before_.status == Status::Converged));
  if (started_ && is_near) {
    start_near(chain_.nearby[k]);
  } else if (started_) {
    start_scaled(before_, factor / chain_.factors[k - 1], problem);
  }
  spent_ = 0;
  solve_.emplace(*chain_.store, problem, settings_, scratch_, interrupt_, memory_);
}

// Whatever has ended without a further step.
void ChainRun::go_on() {
  while (solve_ && solve_->has_ended()) collect();
}

void ChainRun::collect() {
  Solution solution = solve_->take();
  solve_.reset();
  if (started_ && !solution.free_rows && solution.status == Status::Converged) {
    // Any offset between two values is right here; that of a cold solve is wanted.
    spent_ = solution.n_iter;
    started_ = false;
    with_bounds(*chain_.all, bounds_, memory_.problem);
    solve_.emplace(*chain_.store, memory_.problem, settings_, scratch_, interrupt_, memory_);
    return;
  }
  if (solution.status == Status::Interrupted) return;
  solution.n_iter += spent_;
  const std::size_t k = step_++;
  const bool is_last = step_ == chain_.factors.size();
  if (!is_last) before_ = solution;
  if (!done_(k, std::move(solution)) && !is_last) begin();
}

// In which more rows take part.
void ChainRun::start_near(const Solution& solved) {
  Problem& next = memory_.problem;
  next.start = average_start(next, solved);
  memory_.change.resize(next.size());
  for (std::size_t v = 0; v < next.size(); ++v) {
    memory_.change[v] = next.start[v] - solved.beta[v];
  }
  next.start_gradient = solved.gradient;
  memory_.activate(*chain_.store, next.rows, next.split, scratch_);
  shift_gradient(memory_.active, memory_.change.data(), interrupt_, memory_.changes,
                 next.start_gradient.data());
}

void solve_chain(const Chain& chain, bool cold, const Settings& settings, std::size_t scratch,
                 Interrupt& interrupt, const ChainRun::Done& done) {
  SmoMemory memory;
  ChainRun run(chain, cold, settings, scratch, interrupt, memory, done);
  while (!run.has_ended()) run.step();
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
      [&](std::size_t c, const ChainPlace& place, const auto& hand) -> ChainTask {
        return {std::make_unique<ChainRun>(chains[c], cold, place.settings, place.scratch,
                                           place.interrupt, place.memory,
                                           [&hand, c](std::size_t k, Solution&& solution) {
                                             return hand({c, k, std::move(solution)});
                                           }),
                {}};
      },
      [&](Step&& step) { return finished(step.chain, step.step, std::move(step.solution)); },
      interrupt);
}

}  // namespace onefit
