#include "path.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

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
// Longer paths are left open: something goes round in circles.
constexpr std::int64_t kMostSwaps = 1000;

struct Limits {
  double low = -kInfinity;
  double high = kInfinity;
};

class Path {
 public:
  explicit Path(const PivotedSolution& start)
      : start_(start), kink_(start.problem->kink), n_(start.order.size()) {
    const Solution& solution = *start.solution;
    for (auto* values : {&b0_, &lower_, &upper_, &output0_, &input0_, &low0_, &high0_, &output_,
                         &input_, &low_, &high_, &rate_}) {
      values->resize(n_);
    }
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

  PathEnd leave(std::size_t leaving) {
    PathEnd end = leave(leaving, start_.n_near);
    if (end.kind == PathEnd::Kind::Reached && !far_ones_stay()) end = leave(leaving, n_);
    return end;
  }

 private:
  // A variable whose output is held and whose input moves.
  struct Swapped {
    std::size_t place;
    double output;
    Limits limits;  // of its input
    double rate = 0.0;
  };

  struct Hit {
    double distance;
    std::size_t index = 0;  // a place, or a number among the swapped ones
    bool is_swapped = false;
    bool rises = false;  // whether the upper limit was met
    bool nothing = false;
  };

  PathEnd leave(std::size_t leaving, std::size_t n_near) {
    begin(leaving, n_near);
    PathEnd end;
    for (double left = 1.0;; ++end.n_swapped) {
      if (end.n_swapped == kMostSwaps) return end;
      if (!find_rates()) return end;
      const Hit hit = next_hit(left);
      move(hit.distance);
      left -= hit.distance;
      if (hit.nothing) break;
      if (hit.is_swapped) {
        put_back(hit.index, hit.rises);
      } else if (start_.column_of[hit.index] >= 0) {
        swap(hit.index, hit.rises);
      } else {
        end.kind = PathEnd::Kind::ColumnMissing;
        end.missing = hit.index;
        return end;
      }
    }
    if (!any_is_free()) return end;  // the offset is not that of this path alone
    end.kind = PathEnd::Kind::Reached;
    find_far_outputs();
    end.gap = gap();
    end.u = true_u(leaving);
    return end;
  }

  // Outputs at places that are not near, from all inputs that have changed.
  void find_far_outputs() {
    std::ranges::sort(touched_);
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    columns_.clear();
    coef_.clear();
    for (const std::size_t p : touched_) {
      columns_.push_back(column(p) + n_near_);
      coef_.push_back(input_[p] - input0_[p]);
    }
    loops().combine(n_ - n_near_, rate_.data() + n_near_, columns_.data(), coef_.data(),
                    columns_.size());
    for (std::size_t p = n_near_; p < n_; ++p) output_[p] = output0_[p] + rate_[p];
  }

  bool far_ones_stay() const {
    for (std::size_t p = n_near_; p < n_; ++p) {
      if (p != leaving_ && !(output_[p] >= low0_[p] && output_[p] <= high0_[p])) return false;
    }
    return true;
  }

  const double* column(std::size_t p) const {
    return start_.columns + static_cast<std::size_t>(start_.column_of[p]) * (n_ + 1) + 1;
  }
  bool in_pivot(std::size_t p) const { return p < start_.n_pivot; }
  double b_of(std::size_t p) const { return in_pivot(p) ? output_[p] : input_[p]; }
  double u_of(std::size_t p) const { return in_pivot(p) ? input_[p] : output_[p]; }

  // ---- limits -----------------------------------------------------------------------------------

  // A free variable is between two points: its bounds, and zero where there is a kink. On which
  // side of zero it is says the sign of u.
  Limits limits_of_free(std::size_t p, double b, double u) const {
    if (kink_ == 0.0) return {lower_[p], upper_[p]};
    const bool above = b != 0.0 ? b > 0.0 : u > 0.0;
    return above ? Limits{0.0, upper_[p]} : Limits{lower_[p], 0.0};
  }

  // A held variable wants to rise when u is above the one limit, and to fall when it is below the
  // other. Where it is beyond already, by less than the tolerance of the solution, it may stay.
  Limits limits_of_held(std::size_t p, double b, double u) const {
    const double lower = lower_[p];
    const double upper = upper_[p];
    if (!(lower < upper)) return {};
    Limits limits;
    if (b < upper) limits.high = std::max(u, kink_ > 0.0 && b < 0.0 ? -kink_ : kink_);
    if (b > lower) limits.low = std::min(u, kink_ > 0.0 && b > 0.0 ? kink_ : -kink_);
    return limits;
  }

  // ---- the path ---------------------------------------------------------------------------------

  void begin(std::size_t leaving, std::size_t n_near) {
    n_near_ = n_near;
    std::copy_n(output0_.begin(), n_near, output_.begin());
    std::copy_n(input0_.begin(), n_near, input_.begin());
    std::copy_n(low0_.begin(), n_near, low_.begin());
    std::copy_n(high0_.begin(), n_near, high_.begin());
    input_[leaving] = input0_[leaving];
    swapped_.clear();
    factor_.clear();
    touched_.assign(1, leaving);
    leaving_ = leaving;
    leaving_b_ = b0_[leaving];
    low_[leaving] = -kInfinity;
    high_[leaving] = kInfinity;
    changed_from_ = 0;
    if (in_pivot(leaving)) swapped_.push_back({leaving, leaving_b_, {}});
  }

  // Outputs of swapped variables stay (or go to zero with the variable that leaves): that gives
  // their inputs, and these the outputs of all others.
  bool find_rates() {
    if (!factorise()) return false;
    const std::size_t count = swapped_.size();
    const bool known = !in_pivot(leaving_);  // its b is an input
    right_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t p = swapped_[i].place;
      double value = p == leaving_ ? -leaving_b_ : 0.0;
      if (known) value += leaving_b_ * column(leaving_)[p];
      right_[i] = in_pivot(p) ? value : -value;
    }
    solve(right_);
    columns_.clear();
    coef_.clear();
    if (known) {
      columns_.push_back(column(leaving_));
      coef_.push_back(-leaving_b_);
    }
    for (std::size_t i = 0; i < count; ++i) {
      swapped_[i].rate = right_[i];
      columns_.push_back(column(swapped_[i].place));
      coef_.push_back(right_[i]);
    }
    loops().combine(n_near_, rate_.data(), columns_.data(), coef_.data(), columns_.size());
    return true;
  }

  Hit next_hit(double left) const {
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

  void move(double distance) {
    loops().advance(n_near_, output_.data(), rate_.data(), distance);
    for (Swapped& one : swapped_) {
      if (one.place == leaving_) one.output -= distance * leaving_b_;
      output_[one.place] = one.output;  // whatever rounding did to it
      input_[one.place] += distance * one.rate;
    }
    if (!in_pivot(leaving_)) input_[leaving_] -= distance * leaving_b_;
  }

  // The output of a variable has met a limit and is held there.
  void swap(std::size_t p, bool rises) {
    output_[p] = rises ? high_[p] : low_[p];
    low_[p] = -kInfinity;
    high_[p] = kInfinity;
    Limits limits;
    if (in_pivot(p)) {
      limits = limits_of_held(p, output_[p], input_[p]);
    } else {
      limits = limits_of_free(p, input_[p], rises ? kInfinity : -kInfinity);
    }
    changed_from_ = std::min(changed_from_, swapped_.size());
    swapped_.push_back({p, output_[p], limits});
    touched_.push_back(p);
  }

  // The input of a swapped variable has met a limit, and its output moves again.
  void put_back(std::size_t i, bool rises) {
    const Swapped one = swapped_[i];
    const std::size_t p = one.place;
    input_[p] = rises ? one.limits.high : one.limits.low;
    const Limits limits = in_pivot(p)
                              ? limits_of_free(p, output_[p], rises ? kInfinity : -kInfinity)
                              : limits_of_held(p, input_[p], output_[p]);
    low_[p] = limits.low;
    high_[p] = limits.high;
    swapped_.erase(swapped_.begin() + static_cast<std::ptrdiff_t>(i));
    changed_from_ = std::min(changed_from_, i);
  }

  // ---- the system of the swapped variables
  // --------------------------------------------------------

  // With the signs of the rows outside of the pivot turned it is symmetric and quasi-definite:
  // negative for variables of the pivot and positive for the others, so that L D L' exists in any
  // order. Rows before the first change stay.
  bool factorise() {
    const std::size_t count = swapped_.size();
    factor_.resize(count);
    for (std::size_t i = std::min(changed_from_, count); i < count; ++i) {
      const std::size_t p = swapped_[i].place;
      const double sign = in_pivot(p) ? 1.0 : -1.0;
      std::vector<double>& row = factor_[i];
      row.resize(i + 1);
      for (std::size_t j = 0; j < i; ++j) {
        double value = sign * column(swapped_[j].place)[p];
        for (std::size_t k = 0; k < j; ++k) value -= row[k] * factor_[j][k];
        row[j] = value;  // L D so far
      }
      double pivot = sign * column(p)[p];
      const double size = std::abs(pivot);
      for (std::size_t j = 0; j < i; ++j) {
        const double scaled = row[j] / factor_[j][j];
        pivot -= row[j] * scaled;
        row[j] = scaled;
      }
      row[i] = pivot;
      if (!(-sign * pivot > kSmallestPivot * size)) return false;
    }
    changed_from_ = count;
    return true;
  }

  void solve(std::vector<double>& x) const {
    const std::size_t count = x.size();
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < i; ++j) x[i] -= factor_[i][j] * x[j];
    }
    for (std::size_t i = 0; i < count; ++i) x[i] /= factor_[i][i];
    for (std::size_t i = count; i-- > 0;) {
      for (std::size_t j = 0; j < i; ++j) x[j] -= factor_[i][j] * x[i];
    }
  }

  // ---- the end ----------------------------------------------------------------------------------

  // T has a ridge, the kernel has none.
  double true_u(std::size_t p) const {
    const double b = p == leaving_ ? 0.0 : b_of(p);
    return u_of(p) + start_.ridge * (b - b0_[p]);
  }

  bool any_is_free() const {
    double largest = 0.0;
    for (std::size_t p = 0; p < n_near_; ++p) largest = std::max(largest, std::abs(b_of(p)));
    const double near = kAtBound * largest;
    for (std::size_t p = 0; p < n_near_; ++p) {
      const double b = b_of(p);
      if (p != leaving_ && b - lower_[p] > near && upper_[p] - b > near &&
          (kink_ == 0.0 || std::abs(b) > near)) {
        return true;
      }
    }
    return false;
  }

  // Those that are not near are within their limits, as they were.
  double gap() const {
    double most = -kInfinity;
    double least = kInfinity;
    for (std::size_t p = 0; p < n_near_; ++p) {
      if (p == leaving_) continue;
      const double b = b_of(p);
      const double u = true_u(p);
      if (b < upper_[p]) most = std::max(most, u - (b < 0.0 ? -kink_ : kink_));
      if (b > lower_[p]) least = std::min(least, u + (b > 0.0 ? -kink_ : kink_));
    }
    return std::max({0.0, most - least, start_.solution->gap});
  }

  const PivotedSolution& start_;
  const double kink_;
  const std::size_t n_;

  // By place: bounds, where every path starts, and where this one is.
  std::vector<double> b0_, lower_, upper_;
  std::vector<double> output0_, input0_, low0_, high0_;
  std::vector<double> output_, input_, low_, high_, rate_;

  std::size_t leaving_ = 0;
  double leaving_b_ = 0.0;
  std::size_t n_near_ = 0;
  std::vector<Swapped> swapped_;
  std::vector<std::size_t> touched_;         // places whose inputs may have changed
  std::vector<std::vector<double>> factor_;  // rows of L, with D on the diagonal
  std::size_t changed_from_ = 0;

  // Work space.
  std::vector<double> right_;
  std::vector<const double*> columns_;
  std::vector<double> coef_;
};

}  // namespace

std::vector<PathEnd> follow_paths(const PivotedSolution& start,
                                  std::span<const std::int32_t> leaving, std::size_t threads) {
  std::vector<PathEnd> ends(leaving.size());
  parallel_for(leaving.size(), threads, [&](std::size_t first, std::size_t last) {
    Path path(start);
    for (std::size_t k = first; k < last; ++k) {
      ends[k] = path.leave(static_cast<std::size_t>(leaving[k]));
    }
  });
  return ends;
}

}  // namespace onefit
