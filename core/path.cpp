#include "path.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kkt.hpp"
#include "loops.hpp"
#include "parallel.hpp"

namespace onefit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A pivot that is smaller than this share of its diagonal entry is rounding.
constexpr double kSmallestPivot = 1e-10;
// Longer paths are left open: something goes round in circles.
constexpr std::int64_t kMostSwaps = 1000;

struct Limits {
  double low = -kInfinity;
  double high = kInfinity;
};

class Path {
 public:
  explicit Path(const PivotedSolution& start)
      : start_(start), problem_(*start.problem), n_(problem_.size()) {
    const Solution& solution = *start.solution;
    output0_.resize(n_);
    input0_.resize(n_);
    low0_.resize(n_);
    high0_.resize(n_);
    for (std::size_t v = 0; v < n_; ++v) {
      const double b = solution.beta[v];
      const double u = solution.gradient[v] - solution.offset[0];
      output0_[v] = start.in_pivot[v] ? b : u;
      input0_[v] = start.in_pivot[v] ? u : b;
      const Limits limits = start.in_pivot[v] ? limits_of_free(v, b, u) : limits_of_held(v, b, u);
      low0_[v] = limits.low;
      high0_[v] = limits.high;
    }
    rate_.resize(n_);
  }

  PathEnd leave(std::size_t leaving) {
    begin(leaving);
    PathEnd end;
    for (double left = 1.0;; ++end.n_swapped) {
      if (end.n_swapped == kMostSwaps) return end;
      if (!find_rates()) return end;
      const Hit hit = next_hit(left);
      move(hit.distance);
      left -= hit.distance;
      if (hit.nothing) break;
      const std::size_t v = hit.is_swapped ? swapped_[hit.index].variable : hit.index;
      if (hit.is_swapped) {
        put_back(hit.index, hit.rises);
      } else {
        if (start_.column_of[v] < 0) {
          end.kind = PathEnd::Kind::ColumnMissing;
          end.missing = v;
          return end;
        }
        swap(v, hit.rises);
      }
    }
    end.kind = PathEnd::Kind::Reached;
    end.gap = gap();
    end.u = true_u(leaving);
    return end;
  }

 private:
  // A variable whose output is held and whose input moves.
  struct Swapped {
    std::size_t variable;
    double output;
    Limits limits;  // of its input
    double rate = 0.0;
  };

  struct Hit {
    double distance;
    std::size_t index = 0;  // of a variable, or among the swapped ones
    bool is_swapped = false;
    bool rises = false;  // whether the upper limit was met
    bool nothing = false;
  };

  const double* column(std::size_t v) const {
    return start_.columns + static_cast<std::size_t>(start_.column_of[v]) * (n_ + 1) + 1;
  }
  bool in_pivot(std::size_t v) const { return start_.in_pivot[v]; }
  double b_of(std::size_t v) const { return in_pivot(v) ? output_[v] : input_[v]; }
  double u_of(std::size_t v) const { return in_pivot(v) ? input_[v] : output_[v]; }

  // ---- limits -----------------------------------------------------------------------------------

  // A free variable is between two points: its bounds, and zero where there is a kink. On which
  // side of zero it is says the sign of u.
  Limits limits_of_free(std::size_t v, double b, double u) const {
    if (problem_.kink == 0.0) return {problem_.lower[v], problem_.upper[v]};
    const bool above = b != 0.0 ? b > 0.0 : u > 0.0;
    return above ? Limits{0.0, problem_.upper[v]} : Limits{problem_.lower[v], 0.0};
  }

  // A held variable wants to rise when u is above the one limit, and to fall when it is below the
  // other. Where it is beyond already, by less than the tolerance of the solution, it may stay.
  Limits limits_of_held(std::size_t v, double b, double u) const {
    const double lower = problem_.lower[v];
    const double upper = problem_.upper[v];
    if (!(lower < upper)) return {};
    Limits limits;
    if (b < upper)
      limits.high = std::max(u, problem_.kink > 0.0 && b < 0.0 ? -problem_.kink : problem_.kink);
    if (b > lower)
      limits.low = std::min(u, problem_.kink > 0.0 && b > 0.0 ? problem_.kink : -problem_.kink);
    return limits;
  }

  // ---- the path ---------------------------------------------------------------------------------

  void begin(std::size_t leaving) {
    output_ = output0_;
    input_ = input0_;
    low_ = low0_;
    high_ = high0_;
    swapped_.clear();
    factor_.clear();
    leaving_ = leaving;
    leaving_b_ = start_.solution->beta[leaving];
    low_[leaving] = -kInfinity;
    high_[leaving] = kInfinity;
    if (in_pivot(leaving)) {
      swapped_.push_back({leaving, leaving_b_, {}});
      changed_from_ = 0;
    }
  }

  // Outputs of swapped variables stay (or go to zero with the variable that leaves): that gives
  // their inputs, and these the outputs of all others.
  bool find_rates() {
    if (!factorise()) return false;
    const std::size_t count = swapped_.size();
    const bool known = !in_pivot(leaving_);  // its b is an input
    right_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t v = swapped_[i].variable;
      double value = v == leaving_ ? -leaving_b_ : 0.0;
      if (known) value += leaving_b_ * column(leaving_)[v];
      right_[i] = in_pivot(v) ? value : -value;
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
      columns_.push_back(column(swapped_[i].variable));
      coef_.push_back(right_[i]);
    }
    loops().combine(n_, rate_.data(), columns_.data(), coef_.data(), columns_.size());
    return true;
  }

  Hit next_hit(double left) const {
    Hit hit{left};
    hit.nothing = true;
    Nearest nearest;
    loops().nearest(n_, output_.data(), low_.data(), high_.data(), rate_.data(), &nearest);
    if (nearest.inverse * left > 1.0) {
      hit = {1.0 / nearest.inverse, nearest.index, false, rate_[nearest.index] > 0.0, false};
    }
    for (std::size_t i = 0; i < swapped_.size(); ++i) {
      const Swapped& one = swapped_[i];
      const double input = input_[one.variable];
      const double room = one.rate > 0.0 ? one.limits.high - input : input - one.limits.low;
      const double distance = std::max(room, 0.0) / std::abs(one.rate);
      if (distance < hit.distance) hit = {distance, i, true, one.rate > 0.0, false};
    }
    return hit;
  }

  void move(double distance) {
    loops().advance(n_, output_.data(), rate_.data(), distance);
    for (Swapped& one : swapped_) {
      if (one.variable == leaving_) one.output -= distance * leaving_b_;
      output_[one.variable] = one.output;  // whatever rounding did to it
      input_[one.variable] += distance * one.rate;
    }
    if (!in_pivot(leaving_)) input_[leaving_] -= distance * leaving_b_;
  }

  // The output of a variable has met a limit and is held there.
  void swap(std::size_t v, bool rises) {
    output_[v] = rises ? high_[v] : low_[v];
    low_[v] = -kInfinity;
    high_[v] = kInfinity;
    Limits limits;
    if (in_pivot(v)) {
      limits = limits_of_held(v, output_[v], input_[v]);
    } else {
      limits = limits_of_free(v, input_[v], rises ? kInfinity : -kInfinity);
    }
    changed_from_ = std::min(changed_from_, swapped_.size());
    swapped_.push_back({v, output_[v], limits});
  }

  // The input of a swapped variable has met a limit, and its output moves again.
  void put_back(std::size_t i, bool rises) {
    const Swapped one = swapped_[i];
    const std::size_t v = one.variable;
    input_[v] = rises ? one.limits.high : one.limits.low;
    const Limits limits = in_pivot(v)
                              ? limits_of_free(v, output_[v], rises ? kInfinity : -kInfinity)
                              : limits_of_held(v, input_[v], output_[v]);
    low_[v] = limits.low;
    high_[v] = limits.high;
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
      const std::size_t v = swapped_[i].variable;
      const double sign = in_pivot(v) ? 1.0 : -1.0;
      std::vector<double>& row = factor_[i];
      row.resize(i + 1);
      for (std::size_t j = 0; j < i; ++j) {
        double value = sign * column(swapped_[j].variable)[v];
        for (std::size_t k = 0; k < j; ++k) value -= row[k] * factor_[j][k];
        row[j] = value;  // L D so far
      }
      double pivot = sign * column(v)[v];
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
  double true_u(std::size_t v) const {
    const double b = v == leaving_ ? 0.0 : b_of(v);
    return u_of(v) + start_.ridge[v] * (b - start_.solution->beta[v]);
  }

  double gap() const {
    double most = -kInfinity;
    double least = kInfinity;
    for (std::size_t v = 0; v < n_; ++v) {
      if (v == leaving_ || !(problem_.lower[v] < problem_.upper[v])) continue;
      const double b = b_of(v);
      const double u = true_u(v);
      if (b < problem_.upper[v]) most = std::max(most, u + up_shift<double>(problem_, v, b));
      if (b > problem_.lower[v]) least = std::min(least, u + low_shift<double>(problem_, v, b));
    }
    return std::max(0.0, most - least);
  }

  const PivotedSolution& start_;
  const Problem& problem_;
  const std::size_t n_;

  // Per variable: where every path starts, and where this one is.
  std::vector<double> output0_, input0_, low0_, high0_;
  std::vector<double> output_, input_, low_, high_, rate_;

  std::size_t leaving_ = 0;
  double leaving_b_ = 0.0;
  std::vector<Swapped> swapped_;
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
