#include "path.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "loops.hpp"
#include "parallel.hpp"

namespace onefit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A pivot that is smaller than this share of its diagonal entry is rounding.
constexpr double kSmallestPivot = 1e-10;
// Nearer than this to a bound, relative to the largest coefficient, a variable may be there but for
// rounding.
constexpr double kAtBound = 1e-9;
// Rounds of refinement at the end of a path, as long as residuals come down by this share; and how
// far beyond its limit a coefficient may then be, relative to the largest.
constexpr int kMostRefinements = 4;
constexpr double kHardlyLess = 0.5;
constexpr double kBeyond = 1e-9;
// Before, the sum of coefficients is right to this share of the largest only.
constexpr double kAtBoundRefined = 1e-6;
// Longer paths are left open: something goes round in circles.
constexpr std::int64_t kMostSwaps = 1000;

}  // namespace

Path::Path(const PivotedSolution& start, PathColumns& columns)
    : start_(start), source_(columns), kink_(start.problem->kink), n_(start.order.size()) {
  const Solution& solution = *start.solution;
  for (auto* values : {&b0_, &lower_, &upper_, &output0_, &input0_, &low0_, &high0_, &output_,
                       &input_, &low_, &high_, &rate_}) {
    values->resize(n_);
  }
  leaves_.assign(n_, 0);
  for (std::size_t p = 0; p < n_; ++p) {
    const auto v = static_cast<std::size_t>(start.order[p]);
    const double b = b0_[p] = solution.beta[v];
    const double u = solution.gradient[v] - solution.offset[0];
    lower_[p] = start.problem->lower[v];
    upper_[p] = start.problem->upper[v];
    output0_[p] = in_pivot(p) ? b : u;
    input0_[p] = in_pivot(p) ? u : b;
    const Limits limits = in_pivot(p) ? limits_of_free(p, b, u) : limits_of_held(p, b, u);
    low0_[p] = limits.low;
    high0_[p] = limits.high;
  }
}

Path::Kind Path::leave(const Leaving& leaving, std::size_t n_near) {
  n_swapped_ = 0;
  if (!begin(leaving, n_near)) return Kind::ColumnMissing;
  for (double left = 1.0;; ++n_swapped_) {
    if (n_swapped_ == kMostSwaps) return Kind::LeftOpen;
    if (!find_rates()) return Kind::LeftOpen;
    const Hit hit = next_hit(left);
    move(hit.distance);
    left -= hit.distance;
    if (hit.nothing) break;
    if (hit.is_swapped) {
      put_back(hit.index, hit.rises);
    } else if (!swap(hit.index, hit.rises)) {
      return Kind::ColumnMissing;
    }
  }
  if (!any_is_free(kAtBound)) return Kind::LeftOpen;  // the offset is not that of this path alone
  find_far_outputs();
  return Kind::Reached;
}

// Outputs at places that are not near, from all inputs that have changed.
void Path::find_far_outputs() {
  if (n_near_ == n_) return;
  std::ranges::sort(touched_);
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  columns_.clear();
  coef_.clear();
  for (const std::size_t p : touched_) {
    columns_.push_back(source_.at(p) + n_near_);
    coef_.push_back(input_[p] - input0_[p]);
  }
  loops().combine(n_ - n_near_, rate_.data() + n_near_, columns_.data(), coef_.data(),
                  columns_.size());
  for (std::size_t p = n_near_; p < n_; ++p) output_[p] = output0_[p] + rate_[p];
}

bool Path::far_ones_stay() const {
  for (std::size_t p = n_near_; p < n_; ++p) {
    if (leaves_[p] == 0 && !(output_[p] >= low0_[p] && output_[p] <= high0_[p])) return false;
  }
  return true;
}

// ---- limits -------------------------------------------------------------------------------------

// A free variable is between two points: its bounds, and zero where there is a kink. On which side
// of zero it is says the sign of u.
Path::Limits Path::limits_of_free(std::size_t p, double b, double u) const {
  if (kink_ == 0.0) return {lower_[p], upper_[p]};
  const bool above = b != 0.0 ? b > 0.0 : u > 0.0;
  return above ? Limits{0.0, upper_[p]} : Limits{lower_[p], 0.0};
}

// A held variable wants to rise when u is above the one limit, and to fall when it is below the
// other. Where it is beyond already, by less than the tolerance of the solution, it may stay.
Path::Limits Path::limits_of_held(std::size_t p, double b, double u) const {
  const double lower = lower_[p];
  const double upper = upper_[p];
  Limits limits{-kInfinity, kInfinity};
  if (!(lower < upper)) return limits;
  if (b < upper) limits.high = std::max(u, kink_ > 0.0 && b < 0.0 ? -kink_ : kink_);
  if (b > lower) limits.low = std::min(u, kink_ > 0.0 && b > 0.0 ? kink_ : -kink_);
  return limits;
}

// ---- the path -----------------------------------------------------------------------------------

bool Path::begin(const Leaving& leaving, std::size_t n_near) {
  n_near_ = n_near;
  std::copy_n(output0_.begin(), n_near, output_.begin());
  std::copy_n(input0_.begin(), n_near, input_.begin());
  std::copy_n(low0_.begin(), n_near, low_.begin());
  std::copy_n(high0_.begin(), n_near, high_.begin());
  swapped_.clear();
  factor_.clear();
  n_factorised_ = 0;
  for (const std::size_t p : left_places_) leaves_[p] = 0;
  left_places_.assign(leaving.places.begin(), leaving.places.end());
  touched_ = left_places_;
  leaving_ = leaving;
  leaving_.places = left_places_;
  for (const std::size_t p : left_places_) {
    leaves_[p] = 1;
    input_[p] = input0_[p];
    low_[p] = -kInfinity;
    high_[p] = kInfinity;
    if (!in_pivot(p)) continue;
    missing_ = p;
    const double* column = source_.at(p);
    if (column == nullptr) return false;
    swapped_.push_back({p, column, b0_[p], {-kInfinity, kInfinity}});
  }
  return true;
}

// Outputs of swapped variables stay (or go to zero with the variables that leave): that gives their
// inputs, and these the outputs of all others.
bool Path::find_rates() {
  if (!factorise()) return false;
  const std::size_t count = swapped_.size();
  right_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t p = swapped_[i].place;
    double value = leaves_[p] != 0 && in_pivot(p) ? -b0_[p] : 0.0;
    if (leaving_.column != nullptr) value -= leaving_.factor * leaving_.column[p];
    right_[i] = in_pivot(p) ? value : -value;
  }
  solve(right_);
  columns_.clear();
  coef_.clear();
  if (leaving_.column != nullptr) {
    columns_.push_back(leaving_.column);
    coef_.push_back(leaving_.factor);
  }
  for (std::size_t i = 0; i < count; ++i) {
    swapped_[i].rate = right_[i];
    columns_.push_back(swapped_[i].column);
    coef_.push_back(right_[i]);
  }
  loops().combine(n_near_, rate_.data(), columns_.data(), coef_.data(), columns_.size());
  return true;
}

Path::Hit Path::next_hit(double left) const {
  Hit hit{left};
  hit.nothing = true;
  Nearest nearest;
  loops().nearest(n_near_, output_.data(), low_.data(), high_.data(), rate_.data(), &nearest);
  if (nearest.inverse * left > 1.0) {
    hit = {1.0 / nearest.inverse, nearest.index, false, rate_[nearest.index] > 0.0, false};
  }
  for (std::size_t i = 0; i < swapped_.size(); ++i) {
    const Swapped& one = swapped_[i];
    const double input = input_[one.place];
    const double room = one.rate > 0.0 ? one.limits.high - input : input - one.limits.low;
    const double distance = std::max(room, 0.0) / std::abs(one.rate);
    if (distance < hit.distance) hit = {distance, i, true, one.rate > 0.0, false};
  }
  return hit;
}

void Path::move(double distance) {
  loops().advance(n_near_, output_.data(), rate_.data(), distance);
  for (Swapped& one : swapped_) {
    if (leaves_[one.place] != 0) one.output -= distance * b0_[one.place];
    output_[one.place] = one.output;  // whatever rounding did to it
    input_[one.place] += distance * one.rate;
  }
  for (const std::size_t p : left_places_) {
    if (!in_pivot(p)) input_[p] -= distance * b0_[p];
  }
}

// The output of a variable has met a limit and is held there; false where its column is missing.
bool Path::swap(std::size_t p, bool rises) {
  missing_ = p;
  const double* column = source_.at(p);
  if (column == nullptr) return false;
  output_[p] = rises ? high_[p] : low_[p];
  low_[p] = -kInfinity;
  high_[p] = kInfinity;
  const Limits limits = in_pivot(p) ? limits_of_held(p, output_[p], input_[p])
                                    : limits_of_free(p, input_[p], rises ? kInfinity : -kInfinity);
  swapped_.push_back({p, column, output_[p], limits});
  touched_.push_back(p);
  return true;
}

// The input of a swapped variable has met a limit, and its output moves again.
void Path::put_back(std::size_t i, bool rises) {
  const Swapped one = swapped_[i];
  const std::size_t p = one.place;
  input_[p] = rises ? one.limits.high : one.limits.low;
  const Limits limits = in_pivot(p) ? limits_of_free(p, output_[p], rises ? kInfinity : -kInfinity)
                                    : limits_of_held(p, input_[p], output_[p]);
  low_[p] = limits.low;
  high_[p] = limits.high;
  swapped_.erase(swapped_.begin() + static_cast<std::ptrdiff_t>(i));
  drop_from_factor(i);
}

// ---- the system of the swapped variables --------------------------------------------------------

// With the signs of the rows outside of the pivot turned it is symmetric and quasi-definite:
// negative for variables of the pivot and positive for the others, so that L D L' exists in any
// order. Rows that are there stay.
bool Path::factorise() {
  const std::size_t count = swapped_.size();
  factor_.resize(count);
  for (std::size_t i = n_factorised_; i < count; ++i) {
    const std::size_t p = swapped_[i].place;
    const double sign = in_pivot(p) ? 1.0 : -1.0;
    std::vector<double>& row = factor_[i];
    row.resize(i + 1);
    for (std::size_t j = 0; j < i; ++j) {
      // L D so far
      row[j] = sign * swapped_[j].column[p] - loops().dot(j, row.data(), factor_[j].data());
    }
    double pivot = sign * swapped_[i].column[p];
    const double size = std::abs(pivot);
    for (std::size_t j = 0; j < i; ++j) {
      const double scaled = row[j] / factor_[j][j];
      pivot -= row[j] * scaled;
      row[j] = scaled;
    }
    row[i] = pivot;
    if (!(-sign * pivot > kSmallestPivot * size)) return false;
  }
  n_factorised_ = count;
  return true;
}

// Without row and column i the rest is L D L' + d w w', with w and d of column i (Gill, Golub,
// Murray & Saunders, "Methods for modifying matrix factorizations", Math. Comp. 28, 1974, method
// C1).
void Path::drop_from_factor(std::size_t i) {
  const std::size_t count = factor_.size();
  std::vector<double> w;
  for (std::size_t r = i + 1; r < count; ++r) w.push_back(factor_[r][i]);
  double d = factor_[i][i];
  factor_.erase(factor_.begin() + static_cast<std::ptrdiff_t>(i));
  for (std::size_t r = i; r + 1 < count; ++r) {
    factor_[r].erase(factor_[r].begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::size_t j = i; j + 1 < count; ++j) {
    const double p = w[j - i];
    const double before = factor_[j][j];
    const double after = before + d * p * p;
    const double share = d * p / after;
    d *= before / after;
    factor_[j][j] = after;
    for (std::size_t r = j + 1; r + 1 < count; ++r) {
      w[r - i] -= p * factor_[r][j];
      factor_[r][j] += share * w[r - i];
    }
  }
  n_factorised_ = factor_.size();
}

void Path::solve(std::vector<double>& x) const {
  const std::size_t count = x.size();
  for (std::size_t i = 0; i < count; ++i) x[i] -= loops().dot(i, factor_[i].data(), x.data());
  for (std::size_t i = 0; i < count; ++i) x[i] /= factor_[i][i];
  for (std::size_t i = count; i-- > 0;) {
    for (std::size_t j = 0; j < i; ++j) x[j] -= factor_[i][j] * x[i];
  }
}

// ---- the end ------------------------------------------------------------------------------------

double Path::true_u(std::size_t p) const {
  const double b = leaves_[p] != 0 ? 0.0 : b_of(p);
  const double u = in_pivot(p) ? input_[p] : output_[p];
  return u + start_.ridge * (b - b0_[p]);
}

bool Path::any_is_free(double at_bound) const {
  double largest = 0.0;
  for (std::size_t p = 0; p < n_near_; ++p) largest = std::max(largest, std::abs(b_of(p)));
  const double near = at_bound * largest;
  for (std::size_t p = 0; p < n_near_; ++p) {
    const double b = b_of(p);
    if (leaves_[p] == 0 && b - lower_[p] > near && upper_[p] - b > near &&
        (kink_ == 0.0 || std::abs(b) > near)) {
      return true;
    }
  }
  return false;
}

// u of a free variable with these limits of b: zero, or the slope of the kink on its side.
double Path::free_u(const Limits& limits) const {
  if (kink_ == 0.0) return 0.0;
  return limits.low >= 0.0 && limits.high > 0.0 ? kink_ : -kink_;
}

void Path::find_kernel_changes() {
  changed_.clear();
  columns_.clear();
  change_.clear();
  const auto note = [&](std::size_t p) {
    const double b = leaves_[p] != 0 ? 0.0 : b_of(p);
    if (b == b0_[p]) return;
    changed_.push_back(p);
    columns_.push_back(source_.kernel_at(p));
    change_.push_back(b - b0_[p]);
  };
  for (std::size_t p = 0; p < start_.n_pivot; ++p) note(p);
  for (const std::size_t p : touched_) {
    if (!in_pivot(p)) note(p);
  }
  kernel_changes_.resize(start_.n_pivot);
  loops().combine(start_.n_pivot, kernel_changes_.data(), columns_.data(), change_.data(),
                  columns_.size());
}

// The same at a place outside of the pivot that has entries of its own.
double Path::kernel_change(std::size_t p) {
  if (in_pivot(p)) return kernel_changes_[p];
  const double* entries = source_.kernel_at(p);
  double sum = 0.0;
  for (std::size_t k = 0; k < changed_.size(); ++k) sum += change_[k] * entries[changed_[k]];
  return sum;
}

std::optional<double> Path::refine() {
  if (!any_is_free(kAtBoundRefined)) return std::nullopt;
  std::ranges::sort(touched_);
  touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  const std::size_t n_pivot = start_.n_pivot;
  const std::size_t count = swapped_.size();
  std::vector<char> is_swapped(n_pivot, 0);
  for (const Swapped& one : swapped_) {
    if (in_pivot(one.place)) is_swapped[one.place] = 1;
  }
  double largest_b = 0.0;
  for (std::size_t p = 0; p < n_pivot; ++p) largest_b = std::max(largest_b, std::abs(output_[p]));
  double before = kInfinity;
  for (int round = 0;; ++round) {
    find_kernel_changes();
    // What rounding has left of the sum of b.
    const double lack = -std::accumulate(change_.begin(), change_.end(), 0.0);
    // u of the free variables, less what it has to be and the offset: at the places of the pivot,
    // then of the swapped ones.
    residual_.assign(n_pivot + count, 0.0);
    double sum = 0.0;
    std::size_t n_free = 0;
    const auto u0 = [&](std::size_t p) { return in_pivot(p) ? input0_[p] : output0_[p]; };
    for (std::size_t p = 0; p < n_pivot; ++p) {
      if (is_swapped[p] != 0) continue;
      residual_[p] = u0(p) - kernel_changes_[p] - free_u({low_[p], high_[p]});
      sum += residual_[p];
      ++n_free;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t p = swapped_[i].place;
      if (in_pivot(p)) continue;
      residual_[n_pivot + i] = u0(p) - kernel_change(p) - free_u(swapped_[i].limits);
      sum += residual_[n_pivot + i];
      ++n_free;
    }
    offset_change_ = sum / static_cast<double>(n_free);
    double largest = std::abs(lack);
    columns_.clear();
    coef_.clear();
    for (std::size_t p = 0; p < n_pivot; ++p) {
      if (is_swapped[p] != 0) continue;
      residual_[p] -= offset_change_;
      largest = std::max(largest, std::abs(residual_[p]));
      columns_.push_back(source_.at(p));
      coef_.push_back(-residual_[p]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (in_pivot(swapped_[i].place)) continue;
      residual_[n_pivot + i] -= offset_change_;
      largest = std::max(largest, std::abs(residual_[n_pivot + i]));
    }
    if (round == kMostRefinements || !(largest < kHardlyLess * before)) {
      return largest;
    }
    before = largest;
    // As rates are found, with these changes of what is held.
    right_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t p = swapped_[i].place;
      // Columns have the offset before the first place: what it owes to u or b, b or u owe to the
      // sum of b.
      const double of_sum = lack * swapped_[i].column[-1];
      double value = in_pivot(p) ? of_sum : -residual_[n_pivot + i] - of_sum;
      for (std::size_t k = 0; k < columns_.size(); ++k) value -= coef_[k] * columns_[k][p];
      right_[i] = in_pivot(p) ? value : -value;
    }
    solve(right_);
    for (std::size_t i = 0; i < count; ++i) {
      columns_.push_back(swapped_[i].column);
      coef_.push_back(right_[i]);
    }
    loops().combine(n_pivot, rate_.data(), columns_.data(), coef_.data(), columns_.size());
    const auto within = [&](double b, const Limits& limits) {
      const double room = kBeyond * largest_b;
      return b >= limits.low - room && b <= limits.high + room;
    };
    for (std::size_t p = 0; p < n_pivot; ++p) {
      if (is_swapped[p] != 0) continue;
      output_[p] += rate_[p] - lack * source_.at(p)[-1];
      if (!within(output_[p], {low_[p], high_[p]})) return std::nullopt;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t p = swapped_[i].place;
      if (in_pivot(p)) continue;
      input_[p] += right_[i];
      if (!within(input_[p], swapped_[i].limits)) return std::nullopt;
    }
  }
}

double Path::refined_u(std::size_t p) {
  const double u0 = in_pivot(p) ? input0_[p] : output0_[p];
  return u0 - kernel_change(p) - offset_change_;
}

// Those that are not near are within their limits, as they were.
double Path::gap() const {
  double most = -kInfinity;
  double least = kInfinity;
  for (std::size_t p = 0; p < n_near_; ++p) {
    if (leaves_[p] != 0) continue;
    const double b = b_of(p);
    const double u = true_u(p);
    if (b < upper_[p]) most = std::max(most, u - (b < 0.0 ? -kink_ : kink_));
    if (b > lower_[p]) least = std::min(least, u + (b > 0.0 ? -kink_ : kink_));
  }
  return std::max({0.0, most - least, start_.solution->gap});
}

// ---- paths of single variables ------------------------------------------------------------------

std::vector<PathEnd> follow_paths(const PivotedSolution& start, PathColumns& columns,
                                  std::span<const std::int32_t> leaving, std::size_t threads) {
  std::vector<PathEnd> ends(leaving.size());
  parallel_for(leaving.size(), threads, [&](std::size_t first, std::size_t last) {
    Path path(start, columns);
    for (std::size_t k = first; k < last; ++k) {
      const auto p = static_cast<std::size_t>(leaving[k]);
      Leaving alone{std::span(&p, 1)};
      if (p >= start.n_pivot) {
        alone.column = columns.at(p);
        alone.factor = -start.solution->beta[static_cast<std::size_t>(start.order[p])];
      }
      Path::Kind kind = path.leave(alone, start.n_near);
      if (kind == Path::Kind::Reached && !path.far_ones_stay()) {
        kind = path.leave(alone, start.order.size());
      }
      PathEnd& end = ends[k];
      end.kind = kind;
      end.n_swapped = path.n_swapped();
      end.missing = path.missing();
      if (kind != Path::Kind::Reached) continue;
      end.gap = path.gap();
      end.u = path.true_u(p);
      if (columns.kernel_at(p) == nullptr) continue;
      if (const std::optional<double> left = path.refine()) {
        end.residual = *left;
        end.u = path.refined_u(p);
      } else {
        end.kind = Path::Kind::LeftOpen;
      }
    }
  });
  return ends;
}

}  // namespace onefit
