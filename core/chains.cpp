#include "chains.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

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

TrainedPart::TrainedPart(const KernelStore& store, const Problem& all,
                         std::span<const double> bounds)
    : all_(all) {
  holds_out_ = !std::all_of(bounds.begin(), bounds.begin() + store.size(),
                            [](double bound) { return bound > 0.0; });
  variables_.reserve(all.size());
  for (std::size_t v = 0; v < all.size(); ++v) {
    if (v == all.split) split_ = variables_.size();
    const std::int32_t row = all.rows[v];
    const double bound = bounds[static_cast<std::size_t>(row)];
    if (!(bound > 0.0)) continue;
    variables_.push_back(static_cast<std::int32_t>(v));
    rows_.push_back(row);
    bounds_.push_back(bound);
  }
  if (all.split >= all.size()) split_ = variables_.size();
}

void TrainedPart::with_factor(double factor, Problem& problem) const {
  const std::size_t n = variables_.size();
  problem.rows = rows_;
  problem.linear.resize(n);
  problem.lower.resize(n);
  problem.upper.resize(n);
  problem.kink = all_.kink;
  problem.split = split_;
  problem.start.clear();
  problem.start_gradient.clear();
  problem.likely = {};
  problem.sign_of.reset();
  problem.nu = all_.nu;
  problem.in_one_run = holds_out_;
  for (std::size_t k = 0; k < n; ++k) {
    const auto v = static_cast<std::size_t>(variables_[k]);
    const double bound = factor * bounds_[k];
    problem.linear[k] = all_.linear[v];
    problem.lower[k] = all_.lower[v] < 0.0 ? -bound : 0.0;
    problem.upper[k] = all_.upper[v] > 0.0 ? bound : 0.0;
  }
  if (problem.nu == 0.0) return;
  set_nu_start(problem);
  if (!all_.start_gradient.empty()) {
    problem.start_gradient = problem.linear;  // given where K b is 0, as it then is here
  }
}

Solution TrainedPart::on_all_rows(const Solution& solution) const {
  Solution all = solution;
  all.beta.assign(all_.size(), 0.0);
  all.gradient.assign(all_.size(), std::numeric_limits<double>::quiet_NaN());
  for (std::size_t k = 0; k < variables_.size(); ++k) {
    const auto v = static_cast<std::size_t>(variables_[k]);
    all.beta[v] = solution.beta[k];
    all.gradient[v] = solution.gradient[k];
  }
  return all;
}

Solution TrainedPart::of_part(const Solution& solution) const {
  Solution part = solution;
  part.beta.resize(variables_.size());
  part.gradient.resize(variables_.size());
  for (std::size_t k = 0; k < variables_.size(); ++k) {
    const auto v = static_cast<std::size_t>(variables_[k]);
    part.beta[k] = solution.beta[v];
    part.gradient[k] = solution.gradient[v];
  }
  return part;
}

Solution solve_on(KernelStore& store, const TrainedPart& part, double factor,
                  const Solution& solution, const Settings& settings, std::size_t scratch,
                  Interrupt& interrupt) {
  SmoMemory memory;
  part.with_factor(factor, memory.problem);
  memory.problem.start = solution.beta;
  memory.problem.start_gradient = solution.gradient;
  return solve(store, memory.problem, settings, scratch, interrupt, memory);
}

ChainRun::ChainRun(Chain chain, std::shared_ptr<const TrainedPart> part, bool cold,
                   const Settings& settings, std::size_t scratch, Interrupt& interrupt,
                   SmoMemory& memory, Done done)
    : chain_(std::move(chain)),
      part_(std::move(part)),
      cold_(cold),
      settings_(settings),
      scratch_(scratch),
      interrupt_(interrupt),
      memory_(memory),
      done_(std::move(done)) {
  if (!cold) settings_.newton_patience = kPatience;
  if (!cold && chain_.before != nullptr) {
    before_ = part_->of_part(*chain_.before);
    before_factor_ = chain_.before_factor;
  }
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
  const double factor = chain_.factors[step_];
  Problem& problem = memory_.problem;
  part_->with_factor(factor, problem);
  started_ = !cold_ && before_ && before_->status == Status::Converged;
  if (started_) start_scaled(*before_, factor / before_factor_, problem);
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
  const double factor = chain_.factors[step_];
  if (started_ && !solution.free_rows && solution.status == Status::Converged) {
    // Any offset between two values is right here; that of a cold solve is wanted.
    spent_ = solution.n_iter;
    started_ = false;
    part_->with_factor(factor, memory_.problem);
    solve_.emplace(*chain_.store, memory_.problem, settings_, scratch_, interrupt_, memory_);
    return;
  }
  if (solution.status == Status::Interrupted) return;
  solution.n_iter += spent_;
  const std::size_t k = step_++;
  const bool is_last = step_ == chain_.factors.size();
  if (!is_last) {
    before_ = solution;
    before_factor_ = factor;
  }
  if (!done_(k, std::move(solution)) && !is_last) begin();
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
        const Chain& chain = chains[c];
        const auto part = std::make_shared<TrainedPart>(*chain.store, *chain.all, chain.bounds);
        return {std::make_unique<ChainRun>(chain, part, cold, place.settings, place.scratch,
                                           place.interrupt, place.memory,
                                           [&hand, c, part](std::size_t k, Solution&& solution) {
                                             return hand({c, k, part->on_all_rows(solution)});
                                           }),
                {}};
      },
      [&](Step&& step) { return finished(step.chain, step.step, std::move(step.solution)); },
      interrupt);
}

}  // namespace onefit
