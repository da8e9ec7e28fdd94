// The variables of a problem as its solver has them: their coefficients and gradient, and those
// that are active, with what the passes need of each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

#include "kkt.hpp"
#include "newton.hpp"
#include "selection.hpp"
#include "smo_memory.hpp"

namespace onefit {

// Variables are dropped when at most this share of them would remain; later where iterations are
// few, unless rows of so many are in no cache: 10 folds of a9a with C = 100 then take 0.78 of the
// time with 8,000 rows and 0.89 with 16,000, waveform 0.9, magic the same.
inline constexpr double kShrinkTo = 0.7;
inline constexpr double kShrinkHurried = 0.5;
inline constexpr std::size_t kInNoCache = 2000;
// Rows of so many free variables are in no cache, however many others are dropped.
inline constexpr std::size_t kCoarseFrom = 2000;
// What a step of all free variables adds to the diagonal of float32 entries, and of coarse ones for
// the root of their number: as large as the eigenvalues of what rounding has added.
inline constexpr double kRidge = 1e-6;
inline constexpr double kCoarseRidge = static_cast<double>(kCoarseUnit);
// Fewer variables than this take exact steps.
inline constexpr std::size_t kFewVariables = 30;

class Variables {
 public:
  Variables(KernelStore& store, const Problem& problem, const Settings& settings,
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
    memory_.ways.resize(n_ + kBurstPad);
    zeros_.resize(n_);
    memory_.columns.reserve(n_);
    also_.reserve(kQueries);
    memory_.likely_rows.clear();
    const std::size_t likely = problem.likely.size();
    begins_with_likely_ = likely > 0 && seeded_ && settings.shrinking &&
                          rows_fit(likely, sizeof(float), scratch_bytes / 2);
    if (begins_with_likely_) {
      scratch_bytes_ /= 2;  // rows of two sets are kept
    } else {
      set_all_active();
    }
  }
  ~Variables() { leave_likely(); }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;

 protected:
  // ---- gradients --------------------------------------------------------------------------------

  // Whether float32 resolves the tolerance where gradients are as large as these.
  bool float_suffices(double tol, const std::vector<double>& gradients) const {
    double largest = problem_.kink;
    for (const double g : gradients) largest = std::max(largest, std::abs(g));
    return tol > kFloatResolution * largest;
  }

  // Gradients of a start may be far larger than they will be: what counts is the size of targets.
  const std::vector<double>& targets() const {
    return n_ > 0 && problem_.linear[0] != 0.0 ? problem_.linear : gradient_;
  }

  // Long steps, and those to where iterations lead, do not settle where the tolerance is not well
  // above rounding, nor with kernels of low rank: the diagonal tells RBF from linear and poly.
  bool may_hurry() const {
    return n_ >= kFewVariables && float_suffices(settings_.tol / 10, targets()) &&
           memory_.even_diagonal;
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

  // And at the active positions; false when interrupted.
  template <class G>
  bool renew_gradient(G* g) {
    if (!refresh_gradient()) return false;
    for (std::size_t p = 0; p < active_.size(); ++p) {
      g[p] = static_cast<G>(gradient_[static_cast<std::size_t>(variable_[p])]);
    }
    return true;
  }

  // The rows of all variables.
  ActiveSet& all_rows() {
    return active_.size() == n_ ? active_ : memory_.all_rows(store_, problem_);
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

  // Makes the likely variables the active ones, until all are. For problems with one sum.
  void activate_likely() {
    among_likely_ = true;
    memory_.swap_active();
    const std::size_t count = problem_.likely.size();
    memory_.columns.resize(count);
    memory_.gradient32.at_least(count + kBurstPad);
    float* g = memory_.gradient32.data();
    for (std::size_t p = 0; p < count; ++p) {
      variable_[p] = problem_.likely[p];
      const auto v = static_cast<std::size_t>(variable_[p]);
      memory_.columns[p] = problem_.rows[v];
      up_[p] = up_shift<float>(problem_, v, beta_[v]);
      low_[p] = low_shift<float>(problem_, v, beta_[v]);
      g[p] = static_cast<float>(gradient_[v]);
    }
    std::fill_n(g + count, kBurstPad, 0.0F);
    const bool coarse = may_be_coarse_ && count_free(count) >= kCoarseFrom;
    memory_.activate(store_, memory_.columns, count, scratch_bytes_, coarse);
  }

  void leave_likely() {
    if (among_likely_) memory_.swap_active();
    among_likely_ = false;
  }

  template <class G>
  void copy_gradient(Buffer<G>& to) const {
    to.at_least(n_ + kBurstPad);
    std::transform(gradient_.begin(), gradient_.end(), to.data(),
                   [](double g) { return static_cast<G>(g); });
    std::fill_n(to.data() + n_, kBurstPad, G{0});
  }

  void set_all_active() {
    leave_likely();
    std::iota(variable_.begin(), variable_.end(), 0);
    memory_.activate(store_, problem_.rows, problem_.split, scratch_bytes_, false,
                     problem_.in_one_run);
  }

  // Compact rows have to fit, most of them, or they would be gathered over and over.
  static bool rows_fit(std::size_t count, std::size_t entry_bytes, std::size_t bytes) {
    return count * count * entry_bytes <= 2 * bytes;
  }

  // What is left of the active variables is at most this share when some are dropped.
  double shrink_share(bool hurries) const {
    return hurries && active_.size() < kInNoCache ? kShrinkHurried : kShrinkTo;
  }

  // Drops the variables that cannot be chosen now and are unlikely to be chosen later: those whose
  // up value is below every low value and whose low value is above every up value.
  template <class G>
  bool shrink(G* g, const GroupState<G>* groups, double share) {
    const std::size_t before = active_.size();
    const std::size_t kept = count_kept(active_, values(g), groups);
    if (static_cast<double>(kept) > share * static_cast<double>(before)) return false;
    const bool coarse = may_be_coarse_ && (active_.coarse() || count_free() >= kCoarseFrom);
    if (!rows_fit(kept, coarse ? sizeof(Coarse) : sizeof(float), scratch_bytes_)) return false;

    // Who stays cannot be guessed: no branches.
    memory_.columns.resize(before);
    std::int32_t* variables = variable_.data();
    std::int32_t* columns = memory_.columns.data();
    float* ups = up_.data();
    float* lows = low_.data();
    std::size_t to = 0;
    const auto keep = [&](std::size_t first, std::size_t last, const GroupState<G>& s) {
      for (std::size_t p = first; p < last; ++p) {
        const bool rises = g[p] + static_cast<G>(ups[p]) >= s.min_low;
        const bool falls = g[p] + static_cast<G>(lows[p]) <= s.max_up;
        variables[to] = variables[p];
        g[to] = g[p];
        ups[to] = ups[p];
        lows[to] = lows[p];
        to += static_cast<std::size_t>(rises | falls);
      }
    };
    const std::size_t second = active_.first_of_second_group();
    keep(0, second, groups[0]);
    const std::size_t split = to;
    keep(second, before, groups[1]);
    for (std::size_t p = 0; p < to; ++p) {
      columns[p] = problem_.rows[static_cast<std::size_t>(variables[p])];
    }
    memory_.columns.resize(to);
    memory_.activate(store_, memory_.columns, split, scratch_bytes_, coarse, problem_.in_one_run);
    return true;
  }

  template <class G>
  Values<G> values(G* g) const {
    return {g, up_.data(), low_.data(), diagonal_.data(), tau()};
  }

  // Finds the extremes of each group, and which ways variables may go, after anything but
  // iterations has changed them.
  template <class G>
  void look(G* g, GroupState<G>* groups) {
    if (by_ways<G>()) {
      for (std::size_t p = 0; p < active_.size(); ++p) {
        memory_.ways[p] = ways_of(up_[p], low_[p]);
      }
    }
    sweep<G>(active_, values(g), nullptr, nullptr, G{0}, zeros_.data(), groups);
  }

  // Whether the ways that variables may go are all that has to be known of them.
  template <class G>
  bool by_ways() const {
    return std::is_same_v<G, float> && problem_.kink == 0.0 && memory_.even_diagonal;
  }

  // ---- free variables ---------------------------------------------------------------------------

  bool is_free(std::size_t p) const { return up_[p] == low_[p]; }

  std::size_t count_free() const { return count_free(active_.size()); }
  std::size_t count_free(std::size_t positions) const {
    std::size_t count = 0;
    for (std::size_t p = 0; p < positions; ++p) count += is_free(p) ? 1 : 0;
    return count;
  }

  // Takes a Newton step of the free variables: what the objective gains, nothing where there is no
  // step to take.
  template <class G>
  std::optional<double> step_of_all_free(G* g) {
    std::vector<std::size_t> positions;
    for (std::size_t p = 0; p < active_.size(); ++p) {
      if (is_free(p)) positions.push_back(p);
    }
    const std::size_t count = positions.size();
    constexpr std::size_t kAsk = 128;  // whether to go on, after so many rows
    FreeVariables free;
    free.ridge = active_.coarse() ? kCoarseRidge * std::sqrt(static_cast<double>(count)) : kRidge;
    free.matrix.resize(count * count);
    ActiveRow row;
    for (std::size_t k = 0; k < count; ++k) {
      if (k % kAsk == 0 && interrupt_.requested()) return std::nullopt;
      const std::size_t p = positions[k];
      const auto v = static_cast<std::size_t>(variable_[p]);
      also_.clear();
      active_.row(p, also_, settings_.threads, {}, row);
      active_.entries(row, positions, free.matrix.data() + k * count);
      free.add(problem_, v, beta_[v], static_cast<double>(g[p]) + static_cast<double>(up_[p]));
    }
    const std::vector<double> residual = free.residual;
    const std::vector<double> step = newton_step(free);
    if (step.empty()) return std::nullopt;

    std::vector<double> change(active_.size(), 0.0);
    if (!add_rows(active_, positions, step, settings_.threads, interrupt_, change.data())) {
      return std::nullopt;
    }
    for (std::size_t p = 0; p < active_.size(); ++p) g[p] -= static_cast<G>(change[p]);
    double gain = 0.0;
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t p = positions[k];
      const auto v = static_cast<std::size_t>(variable_[p]);
      beta_[v] = moved(problem_, v, beta_[v], step[k],
                       step[k] > 0.0 ? free.room_up[k] : free.room_down[k]);
      up_[p] = up_shift<float>(problem_, v, beta_[v]);
      low_[p] = low_shift<float>(problem_, v, beta_[v]);
      gain += step[k] * (residual[k] - 0.5 * change[p]);
    }
    return gain;
  }

  float tau() const { return kTau * memory_.largest_diagonal; }

  // Without its sign.
  double largest_diagonal() const {
    if (active_.size() == n_) return static_cast<double>(memory_.largest_diagonal);
    float largest = 0.0F;
    for (const std::int32_t row : problem_.rows) {
      largest = std::max(largest, std::abs(store_.diagonal()[row]));
    }
    return static_cast<double>(largest);
  }

  double active_gap() const {
    return conditions<float>(problem_, beta_, gradient_, variable_.data(), active_.size()).gap();
  }

  KernelStore& store_;
  const Problem& problem_;
  const Settings& settings_;
  std::size_t scratch_bytes_;  // for compact rows
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

  bool seeded_ = false;         // whether they are near their optimum
  bool may_be_coarse_ = false;  // kernel rows
  bool begins_with_likely_ = false;
  bool among_likely_ = false;  // whether the active variables are the likely ones
};

}  // namespace onefit
