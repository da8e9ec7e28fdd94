#include "trend.hpp"

#include <algorithm>
#include <cmath>

#include "kkt.hpp"

namespace onefit {
namespace {

// Arrays are whole vectors, of whatever instruction set.
constexpr std::size_t kPad = 8;
// Windows of which the newer ones leave less than this share are not used: gradients of seven
// digits do not tell more.
constexpr double kIndependent = 1e-4;
// And so are those whose D' K D is less than so many times what rounding makes of it.
constexpr double kOfRounding = 30.0;
// A variable that meets its bound on this first part of the way stays where it is, and the others
// go on; each costs a kernel row.
constexpr double kSoon = 0.3;
// Windows are followed so many times as far as they went at most, and not farther than where the
// rounding that goes along is this share of the tolerance: what it changes has to be mended again.
constexpr double kFarthest = 50.0;
constexpr double kOfTolerance = 0.3;
constexpr double kLongest = 2.0;  // of the way that was found, without those that are left out
constexpr std::size_t kMostBlocked = 32;
constexpr std::size_t kBlockedPer = 32;  // one of so many, where there are many

std::size_t padded(std::size_t n) { return (n + kPad - 1) / kPad * kPad; }

}  // namespace

void Trend::forget() {
  begun_ = false;
  count_ = 0;
}

double* Trend::gradients(std::size_t n) {
  n_ = n;
  if (!begun_) g_.assign(padded(n), 0.0);
  return g_.data();
}

double Trend::follow(const ActiveState& state, double resolution, double tol, std::size_t threads,
                     Interrupt& interrupt) {
  if (!begun_) {
    begin(state);
    return 0.0;
  }
  for (std::size_t p = 0; p < n_; ++p) {
    b_[p] = state.beta[static_cast<std::size_t>(state.variable[p])];
  }
  const TrendArrays arrays{padded(n_),        state.problem.kink, state.up,    state.low,
                           lower_.data(),     upper_.data(),      b_.data(),   g_.data(),
                           direction_.data(), rate_.data(),       end_.data(), room_.data()};
  end_window(arrays, resolution, tol);
  double gain = 0.0;
  double nearest = 0.0;
  if (farthest_ >= 1.0 && find_direction() &&
      leave_out_blocked(state, arrays, threads, interrupt, &nearest)) {
    const TrendSlope way = loops().measure_direction(arrays);
    if (way.slope > 0.0 && way.curvature > 0.0) {
      const double length = std::min({way.slope / way.curvature, nearest, kLongest});
      gain = length * (way.slope - 0.5 * length * way.curvature);
      loops().go_along(arrays, length);
      loops().shifts(n_, b_.data(), lower_.data(), upper_.data(), state.problem.kink, state.up,
                     state.low);
      for (std::size_t p = 0; p < n_; ++p) {
        state.beta[static_cast<std::size_t>(state.variable[p])] = b_[p];
      }
    }
  }
  std::copy(b_.begin(), b_.end(), b_before_.begin());
  std::copy(g_.begin(), g_.end(), g_before_.begin());
  return gain;
}

void Trend::begin(const ActiveState& state) {
  const std::size_t size = padded(n_);
  for (auto* values : {&lower_, &upper_, &b_, &slopes_, &direction_, &rate_, &end_, &room_}) {
    values->assign(size, 0.0);
  }
  newest_ = 0;
  for (std::size_t w = 0; w < most_windows(); ++w) {
    windows_[w].change.resize(size);
    windows_[w].gradient_change.resize(size);
  }
  for (std::size_t p = 0; p < n_; ++p) {
    const auto v = static_cast<std::size_t>(state.variable[p]);
    lower_[p] = state.problem.lower[v];
    upper_[p] = state.problem.upper[v];
    b_[p] = state.beta[v];
  }
  positions_.reserve(n_ + 2);
  b_before_ = b_;
  g_before_ = g_;
  begun_ = true;
}

void Trend::end_window(const TrendArrays& arrays, double resolution, double tol) {
  newest_ = (newest_ + 1) % most_windows();
  count_ = std::min(count_ + 1, most_windows());
  const Window& window = windows_[newest_];
  const TrendSizes sizes = loops().end_window(
      arrays, b_before_.data(), g_before_.data(), windows_[newest_].change.data(),
      windows_[newest_].gradient_change.data(), slopes_.data());
  for (std::size_t age = 0; age < count_; ++age) {
    const std::size_t other = number(age);
    const double product =
        -loops().dot(n_, windows_[other].change.data(), window.gradient_change.data());
    products_[newest_][other] = products_[other][newest_] = product;
  }
  windows_[newest_].rounding = kOfRounding * resolution * sizes.largest * sizes.changed;
  farthest_ = std::min(kFarthest, kOfTolerance * tol / (resolution * sizes.largest));
}

// direction_ and rate_, through the Cholesky factor of the products; the newest windows come first.
bool Trend::find_direction() {
  std::array<std::array<double, kWindows>, kWindows> factor{};
  std::array<std::size_t, kWindows> used{};
  std::array<double, kWindows> t{};
  std::size_t m = 0;
  for (std::size_t age = 0; age < count_; ++age) {
    const std::size_t w = number(age);
    std::array<double, kWindows>& row = factor[m];
    double pivot = products_[w][w];
    double value = loops().dot(n_, windows_[w].change.data(), slopes_.data());
    for (std::size_t j = 0; j < m; ++j) {
      double entry = products_[w][used[j]];
      for (std::size_t i = 0; i < j; ++i) entry -= row[i] * factor[j][i];
      row[j] = entry / factor[j][j];
      pivot -= row[j] * row[j];
      value -= row[j] * t[j];
    }
    if (!(pivot > std::max(kIndependent * products_[w][w], windows_[w].rounding))) continue;
    row[m] = std::sqrt(pivot);
    t[m] = value / row[m];
    used[m++] = w;
  }
  std::array<const double*, kWindows> changes{};
  std::array<const double*, kWindows> gradient_changes{};
  for (std::size_t j = m; j-- > 0;) {
    for (std::size_t i = j + 1; i < m; ++i) t[j] -= factor[i][j] * t[i];
    t[j] /= factor[j][j];
    changes[j] = windows_[used[j]].change.data();
    gradient_changes[j] = windows_[used[j]].gradient_change.data();
  }
  if (m == 0) return false;
  double sum = 0.0;
  for (const double times : t) sum += std::abs(times);
  for (double& times : t) times *= std::min(1.0, farthest_ / sum);
  loops().combine(n_, direction_.data(), changes.data(), t.data(), m);
  loops().combine(n_, rate_.data(), gradient_changes.data(), t.data(), m);
  return true;
}

// Takes variables out of the direction that would soon end the way; what they had goes to the one
// of their group with most room. `nearest`: where the first of the others meets its end.
bool Trend::leave_out_blocked(const ActiveState& state, const TrendArrays& arrays,
                              std::size_t threads, Interrupt& interrupt, double* nearest) {
  *nearest = 1.0 / loops().find_rooms(arrays);
  if (*nearest >= kSoon) return true;
  positions_.resize(n_);
  std::size_t count = 0;
  for (std::size_t p = 0; p < n_; ++p) {
    positions_[count] = p;
    count += room_[p] < kSoon * std::abs(direction_[p]) ? 1 : 0;
  }
  if (count > (are_many() ? n_ / kBlockedPer : kMostBlocked)) return false;
  positions_.resize(count);
  amounts_.clear();
  double sum[2] = {0.0, 0.0};
  for (const std::size_t p : positions_) {
    amounts_.push_back(direction_[p]);
    sum[state.active.group(p)] += direction_[p];
    direction_[p] = 0.0;
  }
  for (std::size_t group = 0; group < 2; ++group) {
    if (sum[group] == 0.0) continue;
    const std::size_t p = widest(state, group);
    if (p == n_) return false;
    direction_[p] += sum[group];
    positions_.push_back(p);
    amounts_.push_back(-sum[group]);
  }
  *nearest = 1.0 / loops().find_rooms(arrays);
  return add_rows(state.active, positions_, amounts_, threads, interrupt, rate_.data());
}

std::size_t Trend::widest(const ActiveState& state, std::size_t group) const {
  double most = 0.0;
  std::size_t found = n_;
  for (std::size_t p = 0; p < n_; ++p) {
    if (state.active.group(p) != group) continue;
    const auto v = static_cast<std::size_t>(state.variable[p]);
    const double room =
        std::min(room_up(state.problem, v, b_[p]), room_down(state.problem, v, b_[p]));
    if (room > most) {
      most = room;
      found = p;
    }
  }
  return found;
}

}  // namespace onefit
