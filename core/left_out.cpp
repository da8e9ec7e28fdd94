#include "left_out.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>

#include "blas.hpp"
#include "free_set.hpp"
#include "gathered.hpp"
#include "joining.hpp"
#include "steps.hpp"
#include "workspace.hpp"

namespace onefit {

namespace {

// What rows that change their status do is put together as if each were the only one. Taken once,
// the range misses the values of 6.4 % of the support vectors (mean of 24 cases; 23 % at most), and
// taken twice of 1.6 % (13 %).
constexpr double kCaution = 2.0;

// A free row that is nearer to the span of the others than this share of the longest, squared, is
// one that these can stand in for.
constexpr double kDependent = 1e-4;

// Where signs are enough, and many rows may become free, this part of them is looked at first,
// those of the least slack, and the others for rows only whose side is not certain yet.
constexpr double kFirst = 0.25;
constexpr std::size_t kMany = 1000;

constexpr std::size_t kRowsAtATime = 128;     // whose coefficients or entries are computed together
constexpr std::size_t kColumnsAtATime = 256;  // likewise of rows that may become free

constexpr std::size_t kNotMet = std::numeric_limits<std::size_t>::max();

// The room of all free rows but one.
class TotalRoom {
 public:
  void add(double room) {
    if (std::isinf(room)) {
      ++endless_;
    } else {
      sum_ += room;
    }
  }
  double without(double room) const {
    const bool endless = std::isinf(room);
    if (endless_ > (endless ? 1 : 0)) return kInfinity;
    return endless ? sum_ : sum_ - room;
  }

 private:
  double sum_ = 0.0;
  std::size_t endless_ = 0;
};

// A row on its way out.
struct Support {
  std::size_t number;
  double span = 0.0;   // S with itself
  double added = 0.0;  // to the span, by rows that leave the free ones
  double kept = 0.0;   // the logarithm of what rows that join them leave of it
  double share = 1.0;
  double leap = 0.0;
  std::int64_t changes = 0;
  bool is_known = true;
  bool is_met = false;  // by rows that become free, as far as it is known

  void note(double at, double& effects, double effect) {
    share = std::min(share, at);
    ++changes;
    effects += effect;
  }
};

// All rows of a fit on their way out, with the free set in some precision.
template <class T>
class Departure {
 public:
  Departure(KernelStore& store, const FittedRows& fit, const LeftOutSettings& settings,
            std::vector<std::size_t> free, FreeSet<T> members, Workspace& workspace)
      : store_(store),
        fit_(fit),
        settings_(settings),
        free_(std::move(free)),
        n_free_(free_.size()),
        members_(std::move(members)),
        border_(members_.border.begin(), members_.border.end()),
        free_rows_(fit.rows_of(free_)),
        free_columns_(store, free_rows_),
        columns_(joining_rows(store, fit, free_)),
        workspace_(workspace),
        kernel_(workspace),
        between_(workspace),
        products_(workspace) {
    for (const std::size_t k : free_) support_.push_back({k});
    for (std::size_t k = 0; k < fit.rows.size(); ++k) {
      if (fit.beta[k] != 0.0 && !fit.is_free(k)) support_.push_back({k});
    }
    for (std::size_t v = 0; v < n_free_; ++v) {
      const auto own = static_cast<double>(members_.inverse[v * n_free_ + v]);
      own_.push_back(own > 0.0 ? own : kInfinity);  // or nothing can take the place of the row
      rooms_.push_back(fit_.room(free_[v]));
      longest_ = std::max(longest_, std::abs(fit_.diagonal[free_[v]]));
      // Of two free rows the other ends at its bound, up to rounding.
      most_.push_back(static_cast<T>((1.0 - kRounding) * rooms_[v].rise));
      least_.push_back(static_cast<T>((kRounding - 1.0) * rooms_[v].fall));
    }
    find_leaps();
  }

  std::vector<LeftOutRow> rows() {
    undecided_limit_ = std::clamp<std::size_t>(
        settings_.budget_bytes / (2 * sizeof(float) * n_free_), 16, 16 + support_.size());
    factors_ = workspace_.take<float>(undecided_limit_ * n_free_);
    follow_free();
    follow_others();
    meet_rows();
    std::vector<LeftOutRow> found;
    found.reserve(support_.size());
    for (std::size_t p = 0; p < support_.size(); ++p) found.push_back(estimate(p));
    return found;
  }

 private:
  bool is_free(std::size_t place) const { return place < n_free_; }
  double beta(const Support& row) const { return fit_.beta[row.number]; }

  // How far the offset leaps where the other free rows have no room for a coefficient: they all end
  // at bounds then, and values move until the next row becomes free.
  void find_leaps() {
    TotalRoom fall, rise;
    for (const Room& room : rooms_) {
      fall.add(room.fall);
      rise.add(room.rise);
    }
    double down = kInfinity, up = kInfinity;
    for (const JoiningRow& column : columns_) {
      down = std::min(down, column.slack.fall);
      up = std::min(up, column.slack.rise);
    }
    for (std::size_t p = 0; p < support_.size(); ++p) {
      const double coefficient = beta(support_[p]);
      if (coefficient == 0.0) continue;
      const Room own = is_free(p) ? rooms_[p] : Room{0.0, 0.0};
      const double room = coefficient > 0.0 ? rise.without(own.rise) : fall.without(own.fall);
      if (room > std::abs(coefficient) * (1.0 + kRounding)) continue;
      support_[p].leap = kCaution * (coefficient > 0.0 ? down : up);
    }
  }

  // ---- free rows that meet bounds ---------------------------------------------------------------

  // How the other free rows follow one of them.
  void follow_free() {
    for (std::size_t p = 0; p < n_free_; ++p) {
      Support& row = support_[p];
      const T* inverse = members_.inverse + p * n_free_;
      row.span = 1.0 / own_[p];
      const double coefficient = beta(row);
      for_each_beyond(inverse, static_cast<T>(-coefficient / own_[p]), least_.data(), most_.data(),
                      n_free_, [&](std::size_t v, double step) {
                        if (v != p) meet_bound(row, v, step, own_[p]);
                      });
      if (!needs_following(p)) continue;
      float* per_unit = take_undecided(p, static_cast<double>(border_[p]) / own_[p]);
      const double inverse_own = 1.0 / own_[p];
      for (std::size_t v = 0; v < n_free_; ++v) {
        per_unit[v] = static_cast<float>(static_cast<double>(inverse[v]) * inverse_own);
      }
    }
  }

  // How the free rows follow one that is at a bound.
  void follow_others() {
    const std::size_t at_a_time = std::clamp<std::size_t>(
        settings_.budget_bytes / (4 * sizeof(T) * n_free_), 16, kRowsAtATime);
    const std::size_t most = std::min(at_a_time, support_.size() - n_free_);
    T* entries = workspace_.take<T>(most * n_free_);
    T* products = workspace_.take<T>(most * n_free_);
    for (std::size_t first = n_free_; first < support_.size(); first += at_a_time) {
      const std::size_t end = std::min(support_.size(), first + at_a_time);
      std::vector<std::int32_t> rows;
      for (std::size_t p = first; p < end; ++p) rows.push_back(fit_.rows[support_[p].number]);
      free_columns_.rows(rows, entries);
      project(entries, end - first, products);
      for (std::size_t p = first; p < end; ++p) {
        follow_other(p, entries + (p - first) * n_free_, products + (p - first) * n_free_);
      }
    }
  }

  // Rows times the inverse.
  void project(const T* entries, std::size_t count, T* products) const {
    given_blas<T>().multiply(n_free_, count, n_free_, members_.inverse, entries, products);
  }

  void follow_other(std::size_t p, const T* entries, T* per_unit) {
    Support& row = support_[p];
    for (std::size_t v = 0; v < n_free_; ++v) per_unit[v] += border_[v];
    const double shift = dot(entries, border_.data(), n_free_) + members_.corner;
    row.span = fit_.diagonal[row.number] - dot(entries, per_unit, n_free_) - shift;
    for_each_beyond(per_unit, static_cast<T>(beta(row)), least_.data(), most_.data(), n_free_,
                    [&](std::size_t v, double step) { meet_bound(row, v, step, 0.0); });
    if (!needs_following(p)) return;
    float* out = take_undecided(p, -shift);
    for (std::size_t v = 0; v < n_free_; ++v) out[v] = -static_cast<float>(per_unit[v]);
  }

  // Note that the coefficient of a free row meets a bound; `own` of the one that leaves, or 0.
  void meet_bound(Support& row, std::size_t v, double step, double own) {
    const double room = step > 0.0 ? rooms_[v].rise : rooms_[v].fall;
    const double share = std::min(room / std::abs(step), 1.0);
    const double per_unit = step / beta(row);
    // Where others stand in for it, it does nothing alone; but these meet their bounds in turn.
    if (own_[v] * kDependent * longest_ > 1.0) row.leap = kInfinity;
    const double width = own_[v] - per_unit * per_unit * own;  // 0 for the last that is left
    row.note(share, row.added, width > 0.0 ? (1.0 - share) * per_unit * per_unit / width : 0.0);
  }

  // Where the value ends at most.
  double farthest(const Support& row) const {
    const double coefficient = beta(row);
    const double step = coefficient * (std::max(row.span, 0.0) + kCaution * row.added);
    return fit_.values[row.number] - step - std::copysign(row.leap, coefficient);
  }

  // Whether rows that become free matter for this one, of which all else is known.
  bool needs_following(std::size_t p) {
    Support& row = support_[p];
    // Without a free row there is no step; nor with a kernel that is not positive semidefinite.
    const auto left = static_cast<std::int64_t>(n_free_) - row.changes - (is_free(p) ? 1 : 0);
    const bool is_negative = row.span < -10.0 * members_.kNoise * fit_.diagonal[row.number];
    row.is_known = left > 0 && !is_negative && !(is_free(p) && std::isinf(own_[p]));
    row.is_met = beta(row) != 0.0;
    if (settings_.signs_only && !(fit_.values[row.number] * farthest(row) <= 0.0)) {
      row.is_met = false;
      row.share = 0.0;
    }
    return row.is_met;
  }

  // ---- rows that become free --------------------------------------------------------------------

  // Place for what S of a row with others is found from: the row's factors for their entries with
  // the free rows, and what is added.
  float* take_undecided(std::size_t p, double added) {
    if (undecided_.size() == undecided_limit_) meet_rows();
    undecided_.push_back({p, static_cast<float>(added)});
    return factors_ + (undecided_.size() - 1) * n_free_;
  }

  // Note which rows that are not free would become so as the undecided rows leave. Where signs are
  // enough, and there are many, those of the least slack are looked at first.
  void meet_rows() {
    std::vector<JoiningRow> columns = within_reach(columns_);
    if (settings_.signs_only && columns.size() >= kMany) {
      std::vector<double> nearness;
      for (const JoiningRow& column : columns) nearness.push_back(column.nearness);
      const auto first = static_cast<std::ptrdiff_t>(kFirst * static_cast<double>(columns.size()));
      std::nth_element(nearness.begin(), nearness.begin() + first, nearness.end());
      const double limit = nearness[static_cast<std::size_t>(first)];
      const auto rest = std::stable_partition(
          columns.begin(), columns.end(),
          [limit](const JoiningRow& column) { return column.nearness <= limit; });
      meet_columns({columns.begin(), rest});
      forget_lost();
      columns = within_reach({rest, columns.end()});
    }
    meet_columns(columns);
    undecided_.clear();
  }

  // Columns that the undecided rows may move far enough.
  std::vector<JoiningRow> within_reach(std::span<const JoiningRow> columns) const {
    double reach = 0.0;
    for (const Undecided& row : undecided_) {
      const Support& support = support_[row.place];
      reach = std::max(reach, std::abs(beta(support)) * std::sqrt(std::max(support.span, 0.0)));
    }
    std::vector<JoiningRow> found;
    std::copy_if(columns.begin(), columns.end(), std::back_inserter(found),
                 [reach](const JoiningRow& column) { return column.nearness < reach; });
    return found;
  }

  // Keep the undecided rows that columns of larger slack may keep on their side. The others would
  // fall to the other side even if these did as much as what has been seen.
  void forget_lost() {
    std::size_t kept = 0;
    for (std::size_t u = 0; u < undecided_.size(); ++u) {
      Support& row = support_[undecided_[u].place];
      const double value = fit_.values[row.number];
      const double fall = beta(row) * row.span * std::exp(2.0 * kCaution * row.kept);
      if (value * (value - fall) > 0.0) {
        if (kept != u) {
          std::copy_n(factors_ + u * n_free_, n_free_, factors_ + kept * n_free_);
          undecided_[kept] = undecided_[u];
        }
        ++kept;
      } else {
        row.share = 0.0;
      }
    }
    undecided_.resize(kept);
  }

  void meet_columns(std::span<const JoiningRow> columns) {
    const std::size_t most = std::clamp<std::size_t>(
        settings_.budget_bytes / (8 * sizeof(float) * n_free_), 16, kColumnsAtATime);
    for (std::size_t c = 0; c < columns.size(); c += most) {
      meet_some(columns.subspan(c, std::min(most, columns.size() - c)));
      if (met_.size() >= most) count_meetings();
    }
    count_meetings();
  }

  // Note which of some columns become free.
  void meet_some(std::span<const JoiningRow> columns) {
    const std::size_t n = columns.size();
    std::vector<std::int32_t> rows;
    std::vector<float> most(n), least(n);
    for (std::size_t c = 0; c < n; ++c) {
      rows.push_back(fit_.rows[columns[c].number]);
      most[c] = static_cast<float>(columns[c].slack.fall);
      least[c] = -static_cast<float>(columns[c].slack.rise);
    }
    const Gathered gathered(store_, rows);
    kernel_.at_least(n_free_ * n);
    gathered.rows(free_rows_, kernel_.data());
    // There are most of these, and what counts as a change need not be exact: single precision.
    between_.at_least(undecided_.size() * n);
    given_blas<float>().multiply(n, undecided_.size(), n_free_, kernel_.data(), factors_,
                                 between_.data());
    std::vector<float> own(n);
    std::vector<std::size_t> met(n, kNotMet);
    for (std::size_t u = 0; u < undecided_.size(); ++u) {
      const Support& row = support_[undecided_[u].place];
      float* between = between_.data() + u * n;
      for (std::size_t c = 0; c < n; ++c) between[c] += undecided_[u].added;
      if (!is_free(undecided_[u].place)) {
        gathered.rows({&fit_.rows[row.number], 1}, own.data());
        for (std::size_t c = 0; c < n; ++c) between[c] += own[c];
      }
      const double size = std::abs(beta(row));
      for_each_beyond(
          between, static_cast<float>(beta(row)), least.data(), most.data(), n,
          [&](std::size_t c, double step) {
            const double fall = std::abs(step);
            const double room = static_cast<double>(step > 0.0 ? most[c] : -least[c]);
            const std::size_t number = columns[c].number;
            const double noise = members_.kNoise * size * fit_.diagonal[number];
            if (number == row.number || fall <= room + noise) return;
            if (met[c] == kNotMet) {
              met[c] = met_.size();
              met_.push_back(number);
            }
            const auto entry = static_cast<double>(between[c]);
            meetings_.push_back({undecided_[u].place, met[c], room / fall, entry * entry});
          });
    }
    keep_entries(met);
  }

  // Keep the entries of columns that were met with the free rows.
  void keep_entries(const std::vector<std::size_t>& met) {
    entries_.resize(met_.size() * n_free_);
    for (std::size_t c = 0; c < met.size(); ++c) {
      if (met[c] == kNotMet) continue;
      T* entries = entries_.data() + met[c] * n_free_;
      for (std::size_t v = 0; v < n_free_; ++v) {
        entries[v] = static_cast<T>(kernel_[v * met.size() + c]);
      }
    }
  }

  // Count what the columns that were met do.
  void count_meetings() {
    const std::vector<double> widths = widths_of_met();
    for (const Meeting& meeting : meetings_) {
      Support& row = support_[meeting.place];
      // The leaving of a free row makes the others wider.
      const double more = is_free(meeting.place) ? meeting.square * own_[meeting.place] : 0.0;
      const double whole = row.span * (widths[meeting.column] + more);
      // S_ij^2 is at most S_ii S_jj.
      const double part = meeting.square < whole ? meeting.square / whole : 1.0;
      row.note(meeting.share, row.kept,
               std::log(std::max(1.0 - (1.0 - meeting.share) * part, kRounding)));
    }
    meetings_.clear();
    met_.clear();
    entries_.clear();
  }

  // S of the columns that were met with themselves.
  std::vector<double> widths_of_met() {
    products_.at_least(met_.size() * n_free_);
    if (!met_.empty()) project(entries_.data(), met_.size(), products_.data());
    std::vector<double> widths;
    for (std::size_t k = 0; k < met_.size(); ++k) {
      const T* entries = entries_.data() + k * n_free_;
      const double explained = dot(entries, products_.data() + k * n_free_, n_free_);
      // Border and corner: twice the part of the offset, as it is in both.
      const double shift = 2.0 * dot(entries, border_.data(), n_free_) + members_.corner;
      widths.push_back(fit_.diagonal[met_[k]] - explained - shift);
    }
    return widths;
  }

  // ---- what it comes to -------------------------------------------------------------------------

  LeftOutRow estimate(std::size_t p) const {
    const Support& row = support_[p];
    const double value = fit_.values[row.number];
    const double coefficient = beta(row);
    const double span = std::max(row.span, 0.0);
    double likely = span;
    // Until the first change the span is what it is, and afterwards it is never negative.
    double least = row.share * span;
    if (row.is_met) {
      // Rows that leave, one after another, add less than the sum of what each would.
      likely = std::max(least, (span + std::min(row.added, span)) * std::exp(row.kept));
      least = std::max(least, span * std::exp(kCaution * row.kept));
    }
    const double near = value - coefficient * least;
    const double far = farthest(row);
    return {row.number,          value - coefficient * likely,
            std::min(near, far), std::max(near, far),
            row.share,           row.changes,
            row.is_known};
  }

  struct Undecided {
    std::size_t place;
    float added;
  };
  struct Meeting {
    std::size_t place;
    std::size_t column;  // of those that were met
    double share;
    double square;  // of S of both
  };

  KernelStore& store_;
  const FittedRows& fit_;
  const LeftOutSettings& settings_;
  std::vector<std::size_t> free_;
  std::size_t n_free_;
  FreeSet<T> members_;
  std::vector<T> border_;
  std::vector<std::int32_t> free_rows_;  // of the store
  Gathered free_columns_;
  std::vector<JoiningRow> columns_;
  std::vector<Support> support_;  // free rows, then others
  std::vector<double> own_;       // diagonal entries of the inverse
  double longest_ = 0.0;          // squared, of the free rows
  std::vector<Room> rooms_;       // of the free rows
  std::vector<T> most_, least_;   // the same as limits of a step
  std::vector<Undecided> undecided_;
  std::size_t undecided_limit_ = 0;
  float* factors_ = nullptr;  // of the undecided
  Workspace& workspace_;
  Scratch<float> kernel_, between_;
  Scratch<T> products_;
  std::vector<Meeting> meetings_;
  std::vector<std::size_t> met_;  // numbers of columns
  std::vector<T> entries_;        // of these with the free rows
};

}  // namespace

std::vector<LeftOutRow> left_out_rows(KernelStore& store, const FittedRows& fit,
                                      const LeftOutSettings& settings) {
  std::vector<std::size_t> free;
  std::vector<std::int32_t> rows;
  for (std::size_t k = 0; k < fit.rows.size(); ++k) {
    if (!fit.is_free(k)) continue;
    free.push_back(k);
    rows.push_back(fit.rows[k]);
  }
  if (free.empty()) return {};
  auto of_kernel = std::make_unique<Workspace>();
  auto* kernel = of_kernel->take<float>(free.size() * free.size());
  const Gathered among(store, rows);
  among.rows(rows, kernel);
  Workspace workspace;
  if (free.size() >= settings.single_from) {
    if (auto members = single_free_set(kernel, free.size())) {
      return Departure(store, fit, settings, std::move(free), std::move(*members), workspace)
          .rows();
    }
    among.rows(rows, kernel);
  }
  FreeSet<double> members = double_free_set(kernel, free.size(), workspace);
  of_kernel.reset();
  return Departure(store, fit, settings, std::move(free), std::move(members), workspace).rows();
}

}  // namespace onefit
