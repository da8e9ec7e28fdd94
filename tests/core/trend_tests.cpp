// Steps to where iterations lead: feasible, with the gradient of where they end, and a gain.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "check.hpp"
#include "kkt.hpp"
#include "smo.hpp"
#include "trend.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;
constexpr std::size_t kCols = 3;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

struct Case {
  std::vector<double> x;
  Problem problem;
  std::vector<double> kernel;

  Case(std::size_t n, double C, double kink, std::size_t split, double gamma, unsigned seed)
      : x(normal(n * kCols, seed)), gamma_(gamma) {
    for (std::size_t i = 0; i < n; ++i) {
      const bool first = i % 2 == 0;
      problem.rows.push_back(static_cast<std::int32_t>(i));
      problem.lower.push_back(kink > 0.0 || !first ? -C : 0.0);
      problem.upper.push_back(kink > 0.0 || first ? C : 0.0);
      problem.linear.push_back(kink > 0.0 ? std::sin(3.0 * x[i * kCols]) : first ? 1.0 : -1.0);
    }
    problem.kink = kink;
    problem.split = split;
    std::vector<float> all(n * n);
    const std::unique_ptr<KernelStore> rows = store();
    entries(*rows, problem.rows, problem.rows, all.data());
    kernel.assign(all.begin(), all.end());
  }

  std::unique_ptr<KernelStore> store() const {
    return std::make_unique<KernelStore>(
        points_source(DenseView<double>{x.data(), problem.size(), kCols},
                      {KernelKind::Rbf, gamma_, 0.0, 1}),
        kPlenty);
  }

  std::vector<double> gradient(const std::vector<double>& beta) const {
    const std::size_t n = problem.size();
    std::vector<double> g = problem.linear;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) g[i] -= kernel[i * n + j] * beta[j];
    }
    return g;
  }

  double objective(const std::vector<double>& beta) const {
    const std::vector<double> g = gradient(beta);
    double value = 0.0;
    for (std::size_t i = 0; i < beta.size(); ++i) {
      value += problem.kink * std::abs(beta[i]) - 0.5 * beta[i] * (problem.linear[i] + g[i]);
    }
    return value;
  }

  double sum(const std::vector<double>& beta, std::size_t group) const {
    double total = 0.0;
    for (std::size_t v = 0; v < beta.size(); ++v) {
      total += group_of(problem, v) == group ? beta[v] : 0.0;
    }
    return total;
  }

 private:
  double gamma_;
};

// Steps of two variables, the most violating ones, as SMO takes them.
void take_steps(const Case& c, std::vector<double>& beta, int count) {
  for (int k = 0; k < count; ++k) {
    const std::vector<double> g = c.gradient(beta);
    const std::size_t group = k % 2 == 0 || c.problem.split == c.problem.size() ? 0 : 1;
    std::size_t i = 0, j = 0;
    double most = -1e30, least = 1e30;
    for (std::size_t v = 0; v < beta.size(); ++v) {
      if (group_of(c.problem, v) != group) continue;
      const double up = g[v] + up_shift<double>(c.problem, v, beta[v]);
      const double low = g[v] + low_shift<double>(c.problem, v, beta[v]);
      if (up > most) most = up, i = v;
      if (low < least) least = low, j = v;
    }
    if (!(most > least)) continue;
    const double curvature = 2.0 - 2.0 * c.kernel[i * beta.size() + j];
    move_pair(c.problem, beta, i, j, (most - least) / std::max(curvature, 1e-12));
  }
}

struct Followed {
  int steps = 0;    // that moved anything
  int blocked = 0;  // that ended with more variables at their bounds
};

// Windows of steps with a look at the trend after each, checked against what is so.
Followed follow(const Case& c, int windows, int steps) {
  const std::size_t n = c.problem.size();
  const std::unique_ptr<KernelStore> store = c.store();
  ActiveSet active;
  active.set(*store, c.problem.rows, c.problem.split, kPlenty);
  active.note_rows();
  std::vector<std::int32_t> variable(n);
  std::iota(variable.begin(), variable.end(), 0);
  std::vector<float> up(n + kBurstPad), low(n + kBurstPad);
  std::vector<double> beta(n, 0.0);
  const auto at_bounds = [&] {
    return std::count_if(up.begin(), up.begin() + static_cast<std::ptrdiff_t>(n),
                         [](float shift) { return shift == -kNever; });
  };
  Trend trend;
  NeverInterrupt interrupt;
  Followed followed;
  for (int w = 0; w < windows; ++w) {
    take_steps(c, beta, steps);
    loops().shifts(n, beta.data(), c.problem.lower.data(), c.problem.upper.data(), c.problem.kink,
                   up.data(), low.data());
    const auto bounded = at_bounds();
    const double before = c.objective(beta);
    const std::vector<double> sums{c.sum(beta, 0), c.sum(beta, 1)};
    double* g = trend.gradients(n);
    const std::vector<double> exact = c.gradient(beta);
    std::copy(exact.begin(), exact.end(), g);
    const double gain =
        trend.follow({c.problem, active, variable.data(), up.data(), low.data(), beta}, kEpsilon,
                     1e-3, 1, interrupt);
    CHECK(gain >= 0.0);
    CHECK(std::abs(before - c.objective(beta) - gain) <= 1e-6 * (1.0 + std::abs(before)));
    const std::vector<double> now = c.gradient(beta);
    for (std::size_t v = 0; v < n; ++v) {
      CHECK(std::abs(g[v] - now[v]) < 1e-6);  // entries of both halves differ in their last digit
      CHECK(beta[v] >= c.problem.lower[v] && beta[v] <= c.problem.upper[v]);
      CHECK(up[v] == up_shift<float>(c.problem, v, beta[v]));
      CHECK(low[v] == low_shift<float>(c.problem, v, beta[v]));
    }
    for (std::size_t group = 0; group < 2; ++group) {
      CHECK(std::abs(c.sum(beta, group) - sums[group]) < 1e-10);
    }
    followed.steps += gain > 0.0 ? 1 : 0;
    followed.blocked += at_bounds() > bounded ? 1 : 0;
  }
  return followed;
}

}  // namespace

TEST(trends_are_followed_within_bounds) {
  for_each_isa([] {
    int blocked = 0;
    for (const std::size_t n : {std::size_t{7}, std::size_t{61}}) {
      for (const double C : {1.0, 50.0}) {
        for (const double kink : {0.0, 0.1}) {
          for (const std::size_t split : {n, n / 3}) {
            const Followed f = follow(Case(n, C, kink, split, 0.1, 5), 30, 8);
            if (n == 61 && C == 50.0) CHECK(f.steps >= 5);
            blocked += f.blocked;
          }
        }
      }
    }
    CHECK(blocked > 0);
  });
}

TEST(a_trend_is_forgotten) {
  const Case c(40, 10.0, 0.0, 40, 0.3, 6);
  const std::unique_ptr<KernelStore> store = c.store();
  ActiveSet active;
  active.set(*store, c.problem.rows, 40, kPlenty);
  active.note_rows();
  std::vector<std::int32_t> variable(40);
  std::iota(variable.begin(), variable.end(), 0);
  std::vector<float> up(40 + kBurstPad), low(40 + kBurstPad);
  std::vector<double> beta(40, 0.0);
  Trend trend;
  NeverInterrupt interrupt;
  const auto look = [&] {
    take_steps(c, beta, 10);
    loops().shifts(40, beta.data(), c.problem.lower.data(), c.problem.upper.data(), 0.0, up.data(),
                   low.data());
    const std::vector<double> g = c.gradient(beta);
    std::copy(g.begin(), g.end(), trend.gradients(40));
    return trend.follow({c.problem, active, variable.data(), up.data(), low.data(), beta}, kEpsilon,
                        1e-3, 1, interrupt);
  };
  CHECK(look() == 0.0);  // there is no window yet
  CHECK(look() > 0.0);
  trend.forget();
  CHECK(look() == 0.0);
  CHECK(look() > 0.0);
}

// Dependent rows: windows that change hardly any gradient must not be followed for ever.
TEST(flat_directions_are_followed_within_limits) {
  for_each_isa([] {
    const Followed f = follow(Case(50, 1000.0, 0.0, 50, 1e-3, 7), 30, 8);
    CHECK(f.steps >= 1);
  });
}
