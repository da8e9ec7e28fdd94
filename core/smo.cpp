#include "smo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <variant>

#include "gap_watch.hpp"
#include "kkt.hpp"
#include "newton.hpp"
#include "pace.hpp"
#include "precise.hpp"
#include "progress_watch.hpp"
#include "renewals.hpp"
#include "selection.hpp"
#include "sign_watch.hpp"
#include "trend.hpp"
#include "variables.hpp"

namespace onefit {
namespace {

// Fewer variables than this are swept faster than they are shrunk.
constexpr std::size_t kShrinkFrom = 400;
// Iterations between looks whether variables can be dropped, from a start near the optimum. At
// first they are fewer, the sooner the fewer variables there are: each time that some are dropped,
// what is left of kernel rows has to be gathered.
constexpr std::int64_t kShrinkSeeded = 100;
constexpr std::int64_t kShrinkSoon = 25;
constexpr std::size_t kShrinkSoonPer = 100;
// Iterations between looks at the interrupt.
constexpr std::int64_t kPoll = 128;
// Problems on so few rows are swept in double precision from the start: it costs nothing
// measurable, and where LIBSVM ends with a round number, so does this.
constexpr std::size_t kFewRows = 200;

enum class End {
  GapReached,
  MaxIter,
  Stalled,
  EntriesTooCoarse,
  VariablesMissing,
  Interrupted,
  SignProven
};

class Smo : private Variables {
 public:
  using Variables::Variables;

  // Goes on until it ends, or until a burst of iterations is to be run, which is not done here.
  std::optional<Solution> advance() {
    if (!begun_) {
      begun_ = true;
      if (!refresh_gradient()) return finish(Status::Interrupted);
      wide_ = store_.size() <= kFewRows || !(float_suffices(settings_.tol, gradient_) ||
                                             float_suffices(settings_.tol / 10, targets()));
    }
    for (;;) {
      if (loop_.index() == 0) begin_loop();
      const std::optional<End> ended =
          wide_ ? iterate(std::get<Loop<double>>(loop_)) : iterate(std::get<Loop<float>>(loop_));
      if (!ended) return std::nullopt;
      loop_.emplace<std::monostate>();
      if (std::optional<Solution> solution = judge(*ended)) return solution;
    }
  }

  // The burst that is to be run: one of the two.
  Burst<float>* burst32() {
    auto* loop = std::get_if<Loop<float>>(&loop_);
    return loop != nullptr ? &loop->burst : nullptr;
  }
  Burst<double>* burst64() {
    auto* loop = std::get_if<Loop<double>>(&loop_);
    return loop != nullptr ? &loop->burst : nullptr;
  }

 private:
  // ---- rounds -----------------------------------------------------------------------------------

  // Iterations with a gradient in G.
  template <class G>
  struct Loop {
    G* g;
    std::int64_t until_shrink;
    GapWatch watch;
    std::int64_t until_many;    // iterations before a step of many variables
    std::int64_t watch_at = 0;  // the iteration at which the watch looks next
    GroupState<G> groups[2] = {};
    bool bursting = false;
    Burst<G> burst = {};
  };

  void begin_loop() {
    reached_.reset();
    began_at_ = n_iter_;
    trend_.forget();
    // Bursts read coarse rows, and are for problems with one sum.
    may_be_coarse_ = !wide_ && !coarse_failed_ && problem_.split == n_ && n_ >= kCoarseFrom;
    if (!wide_ && std::exchange(begins_with_likely_, false)) {
      renewals_.begin_among_likely(conditions<float>(problem_, beta_, gradient_).gap());
      activate_likely();
    } else {
      renewals_.begin();
      activate_all(wide_);
    }
    pace_.begin(!wide_ && may_hurry(), n_iter_, n_);
    const GapWatch watch(n_iter_, GapWatch::window_of(n_));
    // LIBSVM's rhythm: often enough for small problems, seldom enough for large ones. Near the
    // optimum there is more to drop, and less time to do it.
    shrink_every_ =
        seeded_ ? kShrinkSeeded : static_cast<std::int64_t>(std::min<std::size_t>(n_, 1000));
    const std::int64_t until_shrink = seeded_ ? 0 : shrink_every_;
    seeded_ = true;
    if (wide_) {
      auto& loop = loop_.emplace<Loop<double>>(
          Loop<double>{memory_.gradient64.data(), until_shrink, watch, pace_.window()});
      look(loop.g, loop.groups);
    } else {
      auto& loop = loop_.emplace<Loop<float>>(
          Loop<float>{memory_.gradient32.data(), until_shrink, watch, pace_.window()});
      look(loop.g, loop.groups);
    }
  }

  // What a loop has come to: a solution, unless another round is needed.
  std::optional<Solution> judge(End end) {
    const bool shrunk = active_.size() < n_;
    if (wide_ && !shrunk) {
      gradient_.assign(memory_.gradient64.data(), memory_.gradient64.data() + n_);
      known_at_ = beta_;
    } else if (end != End::Interrupted && !refresh_gradient()) {
      end = End::Interrupted;
    }
    if (end == End::Interrupted) return finish(Status::Interrupted);
    if (end == End::SignProven) {
      // Again in double precision.
      const double offset = conditions<float>(problem_, beta_, gradient_).groups[0].offset();
      if (sign_.proves(n_iter_, beta_, gradient_.data(), offset)) {
        return finish(Status::SignProven);
      }
      return std::nullopt;
    }
    reached_ = conditions<float>(problem_, beta_, gradient_);
    if (reached_->gap() < settings_.tol) {
      const double squares = reached_->squares;
      const bool hidden = rounding_hides(settings_.tol, squares, largest_diagonal());
      if (hidden && can_solve_precisely(n_)) return solve_more_precisely();
      const bool lost = rounding_hides_all(settings_.tol, squares, largest_diagonal());
      return finish(lost ? Status::Stalled : Status::Converged);
    }
    if (!std::isfinite(reached_->gap())) return finish(Status::Stalled);
    if (end == End::MaxIter) return finish(Status::MaxIter);
    // The gradient was exact and no variable was missing: what is left is rounding of the entries.
    if (wide_ && (!shrunk || end == End::EntriesTooCoarse ||
                  (end == End::Stalled && active_gap() >= settings_.tol))) {
      return can_solve_precisely(n_) ? solve_more_precisely() : finish(Status::Stalled);
    }
    if (end == End::VariablesMissing) return std::nullopt;
    // Rounding of coarse rows or of the float32 gradient, not a dropped variable, is why the gap is
    // not there yet. A start far from the optimum has large gradients, and they have left their
    // rounding: once more from here, if that may do.
    if (active_.coarse() && (end == End::EntriesTooCoarse || active_gap() > settings_.tol)) {
      coarse_failed_ = true;
    } else if (!shrunk || active_gap() > settings_.tol) {
      wide_ = rounded_ || !float_suffices(settings_.tol, gradient_);
      rounded_ = true;
    }
    return std::nullopt;
  }

  // ---- the loop ---------------------------------------------------------------------------------

  template <class G>
  void fetch(const G* g, const GroupState<G>* groups, std::size_t position, const ActiveRow* keep,
             ActiveRow& out) {
    if (!active_.has(position)) {
      memory_.likely_rows.choose(store_, active_, position, g, up_.data(), low_.data(), groups,
                                 n_iter_, also_);
      until_poll_ = 0;  // evaluating a batch can take long: look at the interrupt after it
    }
    active_.row(position, also_, settings_.threads, {keep, keep == nullptr ? 0U : 1U}, out);
  }

  double tolerance() const { return renewals_.tolerance(active_.coarse(), n_iter_); }

  // ---- many variables at once -------------------------------------------------------------------

  // Goes to where iterations lead; whether that changed anything.
  template <class G>
  bool follow_trend(G* g) {
    const std::size_t n = active_.size();
    double* gradients = trend_.gradients(n);
    std::copy_n(g, n, gradients);
    const double gain = trend_.follow(
        {problem_, active_, variable_.data(), up_.data(), low_.data(), beta_},
        std::numeric_limits<G>::epsilon(), settings_.tol, settings_.threads, interrupt_);
    if (gain == 0.0) return false;
    std::transform(gradients, gradients + n, g, [](double v) { return static_cast<G>(v); });
    progress_.add(gain);
    return true;
  }

  // Now and then: a step of all free variables where it is likely to pay, else one to where
  // iterations lead; whether anything changed.
  template <class G>
  bool step_of_many(G* g, GroupState<G>* groups) {
    bool stepped = false;
    const std::size_t free = count_free();
    const std::int64_t window = pace_.next(n_iter_, free);
    if (newton_.pays(n_iter_, free, active_.size())) {
      const double of_smo = progress_.recent();
      if (const std::optional<double> gain = step_of_all_free(g)) {
        progress_.add(*gain);
        ++n_iter_;
        stepped = true;
      }
      look(g, groups);
      newton_.note(n_iter_, free, active_.size(), progress_.recent() - of_smo, of_smo, window);
      progress_.note();
      trend_.forget();
      return stepped;
    }
    progress_.note();
    if (!pace_.hurries() || !follow_trend(g)) return false;
    look(g, groups);
    return true;
  }

  template <class G>
  static void fetch_for_burst(Burst<G>& b, std::size_t position, std::size_t keep) {
    Smo& smo = *static_cast<Smo*>(b.context);
    const GroupState<G> groups[2] = {{b.extremes.max_up, b.extremes.min_low, b.extremes.index}, {}};
    ActiveRow kept;
    ActiveRow row;
    smo.evaluated_ = smo.evaluated_ || !smo.active_.has(position);
    if (keep != position) smo.active_.row(keep, {}, 1, {}, kept);
    smo.fetch(b.g, groups, position, keep == position ? nullptr : &kept, row);
    if (smo.evaluated_) b.limit = 0;  // that can take long: look at the interrupt
  }

  // Prepares up to `limit` iterations.
  template <class G>
  void begin_burst(Loop<G>& loop, std::int64_t limit) {
    const GroupState<G>& state = loop.groups[0];
    loop.burst = Burst<G>{
        .g = loop.g,
        .up = up_.data(),
        .low = low_.data(),
        .ways = by_ways<G>() ? memory_.ways.data() : nullptr,
        .diagonal = diagonal_.data(),
        .variable = variable_.data(),
        .rows = active_.rows(),
        .coarse_rows = active_.coarse_rows(),
        .parts = parts_.data(),
        .n_parts = parts_.size(),
        .beta = beta_.data(),
        .lower = problem_.lower.data(),
        .upper = problem_.upper.data(),
        .kink = problem_.kink,
        .tau = tau(),
        .overstep = pace_.overstep(),
        .tol = tolerance(),
        .resolution = kResolution<G>,
        .limit = limit,
        .fetch = fetch_for_burst<G>,
        .context = this,
        .extremes = {state.max_up, state.min_low, state.index},
    };
    loop.bursting = true;
    evaluated_ = false;
  }

  // Takes over what it came to; false when nothing can be done any more.
  template <class G>
  bool end_burst(Loop<G>& loop) {
    const Burst<G>& b = loop.burst;
    loop.bursting = false;
    loop.groups[0] = {b.extremes.max_up, b.extremes.min_low, b.extremes.index};
    n_iter_ += b.done;
    renewals_.pass(b.done);
    until_poll_ = evaluated_ ? 0 : until_poll_ - (b.done - 1);
    progress_.add(b.gain);
    loop.until_shrink -= b.done - 1;
    loop.until_many -= b.done - 1;
    return b.end != BurstEnd::Stalled && !progress_.stands_still(b.done);
  }

  // How it ended; nothing when a burst is to be run.
  template <class G>
  std::optional<End> iterate(Loop<G>& loop) {
    G* g = loop.g;
    GroupState<G>* groups = loop.groups;
    ActiveRow rows[2];
    ActiveRow row_j;
    const bool two_groups = problem_.split < n_;
    const bool watched = std::is_same_v<G, double>;
    // Where entries in double precision are out of reach, float32 ones are the problem as it is.
    const auto rounding_may =
        can_solve_precisely(n_) ? &rounding_may_cause<float> : &rounding_may_cause<double>;
    const bool may_shrink = settings_.shrinking && n_ >= kShrinkFrom && !among_likely_;
    if (loop.bursting && !end_burst(loop)) return End::Stalled;
    for (;;) {
      const double gap = std::max(groups[0].gap(), groups[1].gap());
      const bool reached = gap < tolerance() || gap < resolution(groups);
      if (renewals_.is_due(gap, reached, active_.coarse(), n_iter_, beta_, known_at_)) {
        if (!renewals_.may_renew(n_iter_)) return End::EntriesTooCoarse;
        if (!renew_gradient(g)) return End::Interrupted;
        trend_.forget();
        look(g, groups);
        const double of_all = conditions<float>(problem_, beta_, gradient_).gap();
        if (renewals_.are_missing(of_all, groups[0].gap())) return End::VariablesMissing;
        continue;
      }
      if (reached) return End::GapReached;
      if (!std::isfinite(gap)) return End::Stalled;  // g has overflowed
      if (settings_.max_iter >= 0 && n_iter_ >= settings_.max_iter) return End::MaxIter;
      if (--until_poll_ < 0) {
        until_poll_ = kPoll;
        interrupt_.reached(journey_.share(gap));
        if (interrupt_.requested()) return End::Interrupted;
      }
      if (watched && n_iter_ >= loop.watch_at) {
        loop.watch_at = n_iter_ + kPoll;
        if (loop.watch.stands_still(n_iter_, gap) && rounding_may(gap, beta_, largest_diagonal())) {
          return End::EntriesTooCoarse;
        }
      }
      if (active_.size() == n_ && sign_.is_due(n_iter_)) {
        const auto up = static_cast<double>(groups[0].max_up);
        const auto low = static_cast<double>(groups[0].min_low);
        if (sign_.proves(n_iter_, beta_, g, (up + low) / 2)) return End::SignProven;
      }
      if (may_shrink && !sign_.looks(n_iter_) && --loop.until_shrink <= 0) {
        const auto soon = std::max(kShrinkSoon, static_cast<std::int64_t>(n_ / kShrinkSoonPer));
        loop.until_shrink = std::min(shrink_every_, std::max(soon, n_iter_ - began_at_));
        if (shrink(g, groups, shrink_share(pace_.hurries()))) {
          trend_.forget();
          look(g, groups);
          continue;
        }
      }
      if (--loop.until_many <= 0) {
        const bool stepped = step_of_many(g, groups);
        loop.until_many = pace_.window();
        if (stepped) continue;
      }

      if (!two_groups && active_.rows_stay()) {
        std::int64_t limit = std::min(until_poll_ + 1, loop.until_many);
        if (may_shrink) limit = std::min(limit, loop.until_shrink);
        // To the iteration, whatever ended the bursts before: which rows are evaluated already must
        // not change the answer.
        if (watched) limit = std::min(limit, loop.watch_at - n_iter_);
        if (settings_.max_iter >= 0) limit = std::min(limit, settings_.max_iter - n_iter_);
        if (sign_.looks(n_iter_)) limit = 1;
        if (active_.coarse()) limit = std::min(limit, renewals_.until_due());
        begin_burst(loop, limit);
        return std::nullopt;
      }

      std::size_t i = 0;
      const ActiveRow* ki = nullptr;
      Partner partner;
      for (std::size_t group = 0; group <= (two_groups ? 1U : 0U); ++group) {
        if (groups[group].gap() <= 0.0) continue;
        const std::size_t position = groups[group].index;
        fetch(g, groups, position, ki, rows[group]);
        const Partner found =
            best_partner(active_, values(g), rows[group], position, groups[group].max_up);
        if (found.gain > partner.gain) {
          partner = found;
          i = position;
          ki = &rows[group];
        }
      }
      if (ki == nullptr) return End::Stalled;
      const std::size_t j = partner.position;
      fetch(g, groups, j, ki, row_j);

      const auto vi = static_cast<std::size_t>(variable_[i]);
      const auto vj = static_cast<std::size_t>(variable_[j]);
      const double slope = static_cast<double>(g[i]) + static_cast<double>(up_[i]) -
                           static_cast<double>(g[j]) - static_cast<double>(low_[j]);
      const double both = static_cast<double>(diagonal_[i]) + static_cast<double>(diagonal_[j]);
      const double curvature = both - 2.0 * static_cast<double>(active_.entry(*ki, j));
      const double times = curvature > kLeastOverstepped * both ? pace_.overstep() : 1.0;
      const double step = move_pair(problem_, beta_, vi, vj, times * to_optimum(slope, curvature));
      if (step == 0.0) return End::Stalled;
      up_[i] = up_shift<float>(problem_, vi, beta_[vi]);
      low_[i] = low_shift<float>(problem_, vi, beta_[vi]);
      up_[j] = up_shift<float>(problem_, vj, beta_[vj]);
      low_[j] = low_shift<float>(problem_, vj, beta_[vj]);
      sweep(active_, values(g), ki, &row_j, static_cast<G>(step), zeros_.data(), groups);
      ++n_iter_;
      progress_.add(step * (slope - 0.5 * step * curvature));
      if (progress_.stands_still(1)) return End::Stalled;
    }
  }

  Solution solve_more_precisely() {
    return solve_precisely(store_, problem_, settings_, std::move(beta_), n_iter_, interrupt_);
  }

  // ---- the end ----------------------------------------------------------------------------------

  Solution finish(Status status) {
    if (!reached_) reached_ = conditions<float>(problem_, beta_, gradient_);
    Solution solution =
        solution_at(problem_, std::move(beta_), std::move(gradient_), *reached_, n_iter_, status);
    check_finite(solution);
    return solution;
  }

  std::optional<Judged> reached_;  // at beta_, where they are known

  bool begun_ = false;
  bool wide_ = false;           // whether iterations have a gradient in double precision
  bool rounded_ = false;        // whether one in single precision has been too coarse
  bool coarse_failed_ = false;  // whether coarse rows have been
  std::int64_t shrink_every_ = 0;
  std::variant<std::monostate, Loop<float>, Loop<double>> loop_;
  std::int64_t n_iter_ = 0;
  std::int64_t began_at_ = 0;  // this round
  std::int64_t until_poll_ = 0;
  bool evaluated_ = false;  // kernel entries, in a burst
  Renewals renewals_{settings_.tol};
  Pace pace_;
  Trend& trend_ = memory_.trend;
  NewtonSchedule newton_{settings_.newton_patience};
  Journey journey_{settings_.tol};
  ProgressWatch progress_{n_};
  SignWatch sign_{store_, problem_};
};

}  // namespace

class StepwiseSolve::Steps : public Smo {
 public:
  using Smo::Smo;
  std::optional<Solution> solution;
};

StepwiseSolve::StepwiseSolve(KernelStore& store, const Problem& problem, const Settings& settings,
                             std::size_t scratch_bytes, Interrupt& interrupt, SmoMemory& memory)
    : steps_(std::make_unique<Steps>(store, problem, settings, scratch_bytes, interrupt, memory)) {
  steps_->solution = steps_->advance();
}
StepwiseSolve::StepwiseSolve(StepwiseSolve&&) noexcept = default;
StepwiseSolve& StepwiseSolve::operator=(StepwiseSolve&&) noexcept = default;
StepwiseSolve::~StepwiseSolve() = default;

bool StepwiseSolve::has_ended() const { return steps_->solution.has_value(); }

Solution StepwiseSolve::take() { return std::move(*steps_->solution); }

void StepwiseSolve::step() {
  if (Burst<float>* burst = steps_->burst32()) {
    loops().burst_f(burst);
  } else {
    loops().burst_d(steps_->burst64());
  }
  steps_->solution = steps_->advance();
}

void StepwiseSolve::step(StepwiseSolve& a, StepwiseSolve& b) {
  Burst<float>* of_a = a.steps_->burst32();
  Burst<float>* of_b = b.steps_->burst32();
  const bool alike = of_a != nullptr && of_b != nullptr && of_a->coarse_rows == nullptr &&
                     of_b->coarse_rows == nullptr &&
                     (of_a->ways == nullptr) == (of_b->ways == nullptr);
  if (!alike) {
    a.step();
    b.step();
    return;
  }
  loops().two_bursts_f(of_a, of_b);
  a.steps_->solution = a.steps_->advance();
  b.steps_->solution = b.steps_->advance();
}

Solution solve(KernelStore& store, const Problem& problem, const Settings& settings,
               std::size_t scratch_bytes, Interrupt& interrupt, SmoMemory& memory) {
  StepwiseSolve solve(store, problem, settings, scratch_bytes, interrupt, memory);
  while (!solve.has_ended()) solve.step();
  return solve.take();
}

Solution solve(KernelStore& store, const Problem& problem, const Settings& settings,
               std::size_t scratch_bytes, Interrupt& interrupt) {
  SmoMemory memory;
  return solve(store, problem, settings, scratch_bytes, interrupt, memory);
}

}  // namespace onefit
