#include "smo.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <type_traits>

#include "gap_watch.hpp"
#include "kkt.hpp"
#include "newton.hpp"
#include "precise.hpp"
#include "progress_watch.hpp"
#include "selection.hpp"
#include "sign_watch.hpp"
#include "smo_memory.hpp"

namespace onefit {
namespace {

// Fewer variables than this are swept faster than they are shrunk.
constexpr std::size_t kShrinkFrom = 400;
// Iterations between looks whether variables can be dropped, from a start near the optimum.
constexpr std::int64_t kShrinkSeeded = 100;
// Variables are dropped when at most this share of them would remain.
constexpr double kShrinkTo = 0.7;
// Iterations between looks at the interrupt.
constexpr std::int64_t kPoll = 128;
// Iterations between looks whether a step of all free variables pays, and what it adds to the
// diagonal of float32 entries.
constexpr std::int64_t kNewtonEvery = 128;
constexpr double kRidge = 1e-6;
// Problems on so few rows are swept in double precision from the start: it costs nothing
// measurable, and where LIBSVM ends with a round number, so does this.
constexpr std::size_t kFewRows = 200;
enum class End { GapReached, MaxIter, Stalled, EntriesTooCoarse, Interrupted, SignProven };

class Smo {
 public:
  Smo(KernelStore& store, const Problem& problem, const Settings& settings,
      std::size_t scratch_bytes, Interrupt& interrupt, SmoMemory& memory)
      : store_(store),
        problem_(problem),
        settings_(settings),
        scratch_bytes_(scratch_bytes),
        interrupt_(interrupt),
        n_(problem.size()),
        beta_(problem.start),
        gradient_(problem.start_gradient),
        memory_(memory) {
    if (beta_.empty()) beta_.assign(n_, 0.0);
    seeded_ = !gradient_.empty();
    if (seeded_) {
      known_at_ = beta_;
    } else {
      known_at_.assign(n_, 0.0);
      gradient_ = problem.linear;
    }
    variable_.resize(n_);
    up_.resize(n_ + kBurstPad);
    low_.resize(n_ + kBurstPad);
    zeros_.resize(n_);
    memory_.columns.reserve(n_);
    also_.reserve(kQueries);
    memory_.likely.clear();
    set_all_active();
  }

  Solution run() {
    if (!refresh_gradient()) return finish(Status::Interrupted);
    bool wide = store_.size() <= kFewRows || !float_suffices(settings_.tol);
    for (;;) {
      reached_.reset();
      activate_all(wide);
      End end = wide ? iterate(memory_.gradient64, settings_.tol)
                     : iterate(memory_.gradient32, settings_.tol);
      const bool shrunk = active_.size() < n_;
      if (wide && !shrunk) {
        gradient_.assign(memory_.gradient64.data(), memory_.gradient64.data() + n_);
        known_at_ = beta_;
      } else if (end != End::Interrupted && !refresh_gradient()) {
        end = End::Interrupted;
      }
      if (end == End::Interrupted) return finish(Status::Interrupted);
      if (end == End::SignProven) {
        // Again in double precision.
        const double offset = conditions<float>(problem_, beta_, gradient_).groups[0].offset();
        if (sign_.proves(n_iter_, beta_, gradient_.data(), offset))
          return finish(Status::SignProven);
        continue;
      }
      reached_ = conditions<float>(problem_, beta_, gradient_);
      if (reached_->gap() < settings_.tol) {
        const bool hidden = rounding_hides(settings_.tol, reached_->squares, largest_diagonal());
        return hidden && can_solve_precisely(n_) ? solve_more_precisely()
                                                 : finish(Status::Converged);
      }
      if (end == End::MaxIter) return finish(Status::MaxIter);
      // The gradient was exact and no variable was missing: what is left is rounding of the
      // entries.
      if (wide && (!shrunk || end == End::EntriesTooCoarse ||
                   (end == End::Stalled && active_gap() >= settings_.tol))) {
        return can_solve_precisely(n_) ? solve_more_precisely() : finish(Status::Stalled);
      }
      // Rounding of the float32 gradient, not a dropped variable, is why the gap is not there yet.
      if (!shrunk || active_gap() > settings_.tol) wide = true;
    }
  }

 private:
  // ---- gradients --------------------------------------------------------------------------------

  bool float_suffices(double tol) const {
    double largest = problem_.kink;
    for (const double g : gradient_) largest = std::max(largest, std::abs(g));
    return tol > kFloatResolution * largest;
  }

  // gradient = p - K beta in double precision, from the kernel rows of the variables that have
  // changed since it was known last (`known_at_`); false when interrupted.
  bool refresh_gradient() {
    Changes& changes = memory_.changes;
    changes.find(n_, [&](std::size_t v) { return known_at_[v] - beta_[v]; });
    if (changes.positions().empty()) return true;
    known_at_ = beta_;
    return add_rows(all_rows(), changes.positions(), changes.amounts(), settings_.threads,
                    interrupt_, gradient_.data());
  }

  // The rows of all variables.
  ActiveSet& all_rows() {
    if (active_.size() == n_) return active_;
    memory_.all.set(store_, problem_.rows, problem_.split, 0);
    memory_.all.note_rows();
    return memory_.all;
  }

  // ---- the active set ---------------------------------------------------------------------------

  void activate_all(bool wide) {
    set_all_active();
    loops().shifts(n_, beta_.data(), problem_.lower.data(), problem_.upper.data(), problem_.kink,
                   up_.data(), low_.data());
    if (wide) {
      copy_gradient(memory_.gradient64);
    } else {
      copy_gradient(memory_.gradient32);
    }
  }

  template <class G>
  void copy_gradient(Buffer<G>& to) const {
    to.at_least(n_ + kBurstPad);
    std::transform(gradient_.begin(), gradient_.end(), to.data(),
                   [](double g) { return static_cast<G>(g); });
    std::fill_n(to.data() + n_, kBurstPad, G{0});
  }

  void set_all_active() {
    std::iota(variable_.begin(), variable_.end(), 0);
    memory_.activate(store_, problem_.rows, problem_.split, scratch_bytes_);
  }

  // Makes variable_[0 .. count) the active set; the first `split` of them are the first group.
  void set_active(std::size_t count, std::size_t split) {
    memory_.columns.clear();
    for (std::size_t p = 0; p < count; ++p) {
      const auto v = static_cast<std::size_t>(variable_[p]);
      memory_.columns.push_back(problem_.rows[v]);
      up_[p] = up_shift<float>(problem_, v, beta_[v]);
      low_[p] = low_shift<float>(problem_, v, beta_[v]);
    }
    memory_.activate(store_, memory_.columns, split, scratch_bytes_);
  }

  // Drops the variables that cannot be chosen now and are unlikely to be chosen later: those whose
  // up value is below every low value and whose low value is above every up value.
  template <class G>
  bool shrink(G* g, const GroupState<G>* groups) {
    const std::size_t before = active_.size();
    const auto keeps = [&](std::size_t p) {
      const GroupState<G>& s = groups[active_.group(p)];
      return g[p] + static_cast<G>(up_[p]) >= s.min_low ||
             g[p] + static_cast<G>(low_[p]) <= s.max_up;
    };
    const std::size_t kept = count_kept(active_, values(g), groups);
    if (static_cast<double>(kept) > kShrinkTo * static_cast<double>(before)) return false;
    // Compact rows have to fit, most of them, or they would be gathered over and over.
    if (kept * kept * sizeof(float) > 2 * scratch_bytes_) return false;

    std::size_t to = 0;
    std::size_t split = 0;
    for (std::size_t p = 0; p < before; ++p) {
      if (!keeps(p)) continue;
      split += active_.group(p) == 0 ? 1 : 0;
      variable_[to] = variable_[p];
      g[to] = g[p];
      ++to;
    }
    set_active(kept, split);
    return true;
  }

  // ---- the loop ---------------------------------------------------------------------------------

  template <class G>
  Values<G> values(G* g) const {
    return {g, up_.data(), low_.data(), diagonal_.data()};
  }

  // Finds the extremes of each group.
  template <class G>
  void look(G* g, GroupState<G>* groups) {
    sweep<G>(active_, values(g), nullptr, nullptr, G{0}, zeros_.data(), groups);
  }

  template <class G>
  void fetch(const G* g, const GroupState<G>* groups, std::size_t position, const ActiveRow* keep,
             ActiveRow& out) {
    if (!active_.has(position)) {
      memory_.likely.choose(store_, active_, position, g, up_.data(), low_.data(), groups, n_iter_,
                            also_);
      until_poll_ = 0;  // evaluating a batch can take long: look at the interrupt after it
    }
    active_.row(position, also_, settings_.threads, {keep, keep == nullptr ? 0U : 1U}, out);
  }

  // ---- all free variables at once ---------------------------------------------------------------

  bool is_free(std::size_t p) const { return up_[p] == low_[p]; }

  std::size_t count_free() const {
    std::size_t count = 0;
    for (std::size_t p = 0; p < active_.size(); ++p) count += is_free(p) ? 1 : 0;
    return count;
  }

  // Takes a Newton step of the free variables; false when there is none to take.
  template <class G>
  bool step_of_all_free(G* g) {
    std::vector<std::size_t> positions;
    for (std::size_t p = 0; p < active_.size(); ++p) {
      if (is_free(p)) positions.push_back(p);
    }
    const std::size_t count = positions.size();
    FreeVariables free;
    free.ridge = kRidge;
    free.matrix.resize(count * count);
    ActiveRow row;
    for (std::size_t k = 0; k < count; ++k) {
      if (k % kPoll == 0 && interrupt_.requested()) return false;
      const std::size_t p = positions[k];
      const auto v = static_cast<std::size_t>(variable_[p]);
      also_.clear();
      active_.row(p, also_, settings_.threads, {}, row);
      active_.entries(row, positions, free.matrix.data() + k * count);
      free.add(problem_, v, beta_[v], static_cast<double>(g[p]) + static_cast<double>(up_[p]));
    }
    const std::vector<double> residual = free.residual;
    const std::vector<double> step = newton_step(free);
    if (step.empty()) return false;

    std::vector<double> change(active_.size(), 0.0);
    if (!add_rows(active_, positions, step, settings_.threads, interrupt_, change.data())) {
      return false;
    }
    for (std::size_t p = 0; p < active_.size(); ++p) g[p] -= static_cast<G>(change[p]);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t p = positions[k];
      const auto v = static_cast<std::size_t>(variable_[p]);
      beta_[v] = moved(problem_, v, beta_[v], step[k],
                       step[k] > 0.0 ? free.room_up[k] : free.room_down[k]);
      up_[p] = up_shift<float>(problem_, v, beta_[v]);
      low_[p] = low_shift<float>(problem_, v, beta_[v]);
      progress_.add(step[k] * (residual[k] - 0.5 * change[p]));
    }
    ++n_iter_;
    return true;
  }

  // Takes such a step when it is likely to pay; whether it did change anything.
  template <class G>
  bool try_newton(G* g, GroupState<G>* groups) {
    bool stepped = false;
    const std::size_t free = count_free();
    if (newton_.pays(n_iter_, free, active_.size())) {
      const double of_smo = progress_.recent();
      stepped = step_of_all_free(g);
      look(g, groups);
      newton_.note(n_iter_, free, active_.size(), progress_.recent() - of_smo, of_smo,
                   kNewtonEvery);
    }
    progress_.note();
    return stepped;
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

  // Takes up to `limit` iterations; how many it were.
  template <class G>
  std::int64_t burst(G* g, double tol, std::int64_t limit, GroupState<G>& state, BurstEnd& end) {
    Burst<G> b{
        .g = g,
        .up = up_.data(),
        .low = low_.data(),
        .diagonal = diagonal_.data(),
        .variable = variable_.data(),
        .rows = active_.rows(),
        .parts = parts_.data(),
        .n_parts = parts_.size(),
        .beta = beta_.data(),
        .lower = problem_.lower.data(),
        .upper = problem_.upper.data(),
        .kink = problem_.kink,
        .tol = tol,
        .resolution = kResolution<G>,
        .limit = limit,
        .fetch = fetch_for_burst<G>,
        .context = this,
        .extremes = {state.max_up, state.min_low, state.index},
    };
    evaluated_ = false;
    Passes<G>::burst()(&b);
    state = {b.extremes.max_up, b.extremes.min_low, b.extremes.index};
    n_iter_ += b.done;
    until_poll_ = evaluated_ ? 0 : until_poll_ - (b.done - 1);
    progress_.add(b.gain);
    end = b.end;
    return b.done;
  }

  template <class G>
  End iterate(Buffer<G>& gradient, double tol) {
    G* g = gradient.data();
    GroupState<G> groups[2];
    ActiveRow rows[2];
    ActiveRow row_j;
    look(g, groups);
    const bool two_groups = problem_.split < n_;
    // LIBSVM's rhythm: often enough for small problems, seldom enough for large ones. Near the
    // optimum there is more to drop, and less time to do it.
    const std::int64_t shrink_every =
        seeded_ ? kShrinkSeeded : static_cast<std::int64_t>(std::min<std::size_t>(n_, 1000));
    std::int64_t until_shrink = seeded_ ? 0 : shrink_every;
    seeded_ = true;
    std::int64_t until_newton = kNewtonEvery;
    const bool watched = std::is_same_v<G, double> && can_solve_precisely(n_);
    GapWatch watch(n_iter_, GapWatch::window_of(n_));
    const bool may_shrink = settings_.shrinking && n_ >= kShrinkFrom;
    for (;;) {
      const double gap = std::max(groups[0].gap(), groups[1].gap());
      if (gap < tol || gap < resolution(groups)) return End::GapReached;
      if (settings_.max_iter >= 0 && n_iter_ >= settings_.max_iter) return End::MaxIter;
      if (--until_poll_ < 0) {
        until_poll_ = kPoll;
        interrupt_.reached(journey_.share(gap));
        if (interrupt_.requested()) return End::Interrupted;
        if (watched && watch.stands_still(n_iter_, gap) &&
            rounding_may_cause(gap, beta_, largest_diagonal())) {
          return End::EntriesTooCoarse;
        }
      }
      if (active_.size() == n_ && sign_.is_due(n_iter_)) {
        const auto up = static_cast<double>(groups[0].max_up);
        const auto low = static_cast<double>(groups[0].min_low);
        if (sign_.proves(n_iter_, beta_, g, (up + low) / 2)) return End::SignProven;
      }
      if (may_shrink && !sign_.looks(n_iter_) && --until_shrink <= 0) {
        until_shrink = shrink_every;
        if (shrink(g, groups)) {
          look(g, groups);
          continue;
        }
      }
      if (--until_newton <= 0) {
        until_newton = kNewtonEvery;
        if (try_newton(g, groups)) continue;
      }

      if (!two_groups && active_.rows_stay()) {
        std::int64_t limit = std::min(until_poll_ + 1, until_newton);
        if (may_shrink) limit = std::min(limit, until_shrink);
        if (settings_.max_iter >= 0) limit = std::min(limit, settings_.max_iter - n_iter_);
        if (sign_.looks(n_iter_)) limit = 1;
        BurstEnd end;
        const std::int64_t done = burst(g, tol, limit, groups[0], end);
        if (end == BurstEnd::Stalled || progress_.stands_still(done)) return End::Stalled;
        until_shrink -= done - 1;
        until_newton -= done - 1;
        continue;
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
      const double curvature =
          std::max(static_cast<double>(diagonal_[i]) + static_cast<double>(diagonal_[j]) -
                       2.0 * static_cast<double>(active_.entry(*ki, j)),
                   static_cast<double>(kTau));
      const double step = move_pair(problem_, beta_, vi, vj, slope / curvature);
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

  double largest_diagonal() const {
    if (active_.size() == n_) return static_cast<double>(memory_.largest_diagonal);
    float largest = 0.0F;
    for (const std::int32_t row : problem_.rows) {
      largest = std::max(largest, store_.diagonal()[row]);
    }
    return static_cast<double>(largest);
  }

  Solution solve_more_precisely() {
    return solve_precisely(store_, problem_, settings_, std::move(beta_), n_iter_, interrupt_);
  }

  // ---- the end ----------------------------------------------------------------------------------

  double active_gap() const {
    return conditions<float>(problem_, beta_, gradient_, variable_.data(), active_.size()).gap();
  }

  Solution finish(Status status) {
    if (!reached_) reached_ = conditions<float>(problem_, beta_, gradient_);
    return solution_at(problem_, std::move(beta_), std::move(gradient_), *reached_, n_iter_,
                       status);
  }

  KernelStore& store_;
  const Problem& problem_;
  const Settings& settings_;
  const std::size_t scratch_bytes_;
  Interrupt& interrupt_;
  const std::size_t n_;

  // Per variable.
  std::vector<double> beta_;
  std::vector<double> gradient_;  // at known_at_

  // The memory, and parts of it.
  SmoMemory& memory_;
  std::vector<double>& known_at_ = memory_.known_at;
  std::vector<std::int32_t>& variable_ = memory_.variable;
  std::vector<float>& up_ = memory_.up;
  std::vector<float>& low_ = memory_.low;
  std::vector<float>& diagonal_ = memory_.diagonal;
  ActiveSet& active_ = memory_.active;
  std::vector<BurstPart>& parts_ = memory_.parts;
  std::vector<std::int32_t>& also_ = memory_.also;
  std::vector<float>& zeros_ = memory_.zeros;

  std::optional<Judged> reached_;  // at beta_, where they are known

  bool seeded_ = false;  // whether the variables are near their optimum
  std::int64_t n_iter_ = 0;
  std::int64_t until_poll_ = 0;
  bool evaluated_ = false;  // kernel entries, in a burst
  NewtonSchedule newton_{settings_.newton_patience};
  Journey journey_{settings_.tol};
  ProgressWatch progress_{n_};
  SignWatch sign_{store_, problem_};
};

}  // namespace

Solution solve(KernelStore& store, const Problem& problem, const Settings& settings,
               std::size_t scratch_bytes, Interrupt& interrupt, SmoMemory& memory) {
  return Smo(store, problem, settings, scratch_bytes, interrupt, memory).run();
}

Solution solve(KernelStore& store, const Problem& problem, const Settings& settings,
               std::size_t scratch_bytes, Interrupt& interrupt) {
  SmoMemory memory;
  return solve(store, problem, settings, scratch_bytes, interrupt, memory);
}

}  // namespace onefit
