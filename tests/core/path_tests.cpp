// Paths against what they lead to: problems without a variable, solved cold.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "check.hpp"
#include "path.hpp"
#include "smo.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;
constexpr std::size_t kCols = 3;
constexpr double kGamma = 0.5;
constexpr double kRidge = 1e-7;

struct Case {
  std::size_t n;
  std::vector<double> x;
  Problem problem;

  Case(std::size_t rows, double C, double kink, unsigned seed)
      : n(rows), x(normal(rows * kCols, seed)) {
    for (std::size_t i = 0; i < n; ++i) {
      const bool first = i < n / 2;
      if (first) x[i * kCols] += 1.0;
      problem.rows.push_back(static_cast<std::int32_t>(i));
      problem.lower.push_back(kink > 0.0 || !first ? -C : 0.0);
      problem.upper.push_back(kink > 0.0 || first ? C : 0.0);
      problem.linear.push_back(kink > 0.0 ? x[i * kCols] * x[i * kCols + 1] : first ? 1.0 : -1.0);
    }
    problem.kink = kink;
    problem.split = n;
  }
  double k(std::size_t i, std::size_t j) const {
    double sq = 0.0;
    for (std::size_t c = 0; c < kCols; ++c) {
      sq += (x[i * kCols + c] - x[j * kCols + c]) * (x[i * kCols + c] - x[j * kCols + c]);
    }
    return std::exp(-kGamma * sq);
  }
  std::unique_ptr<KernelStore> store() const {
    return std::make_unique<KernelStore>(
        points_source(DenseView<double>{x.data(), n, kCols}, {KernelKind::Rbf, kGamma, 0.0, 1}),
        kPlenty);
  }
  Solution solve_without(std::size_t leaving) const {
    Problem other = problem;
    if (leaving < n) other.lower[leaving] = other.upper[leaving] = 0.0;
    return solved(other);
  }
  Solution solved(const Problem& other, double tol = 1e-10) const {
    Settings settings;
    settings.tol = tol;
    NeverInterrupt never;
    return solve(*store(), other, settings, kPlenty, never);
  }
};

// Solves a system by elimination, for the columns of the right side.
void eliminate(std::vector<std::vector<double>>& a) {
  const std::size_t m = a.size();
  for (std::size_t c = 0; c < m; ++c) {
    std::size_t best = c;
    for (std::size_t r = c; r < m; ++r) {
      if (std::abs(a[r][c]) > std::abs(a[best][c])) best = r;
    }
    std::swap(a[c], a[best]);
    for (std::size_t r = 0; r < m; ++r) {
      if (r == c) continue;
      const double factor = a[r][c] / a[c][c];
      for (std::size_t q = c; q < a[r].size(); ++q) a[r][q] -= factor * a[c][q];
    }
  }
  for (std::size_t c = 0; c < m; ++c) {
    for (std::size_t q = m; q < a[c].size(); ++q) a[c][q] /= a[c][c];
  }
}

// A solution with all columns of its matrix.
struct Pivoted {
  std::vector<std::int32_t> order;
  std::size_t n_pivot = 0;
  std::vector<double> columns;
  std::vector<std::int32_t> column_of;

  Pivoted(const Case& c, const Solution& solution) : order(c.n), column_of(c.n) {
    std::iota(order.begin(), order.end(), 0);
    std::iota(column_of.begin(), column_of.end(), 0);
    const auto is_free = [&](std::int32_t i) {
      const auto v = static_cast<std::size_t>(i);
      const double b = solution.beta[v];
      return b > c.problem.lower[v] && b < c.problem.upper[v] &&
             (c.problem.kink == 0.0 || b != 0.0);
    };
    n_pivot = static_cast<std::size_t>(std::partition(order.begin(), order.end(), is_free) -
                                       order.begin());
    // Outputs (offset, b of the pivot) from inputs, by definition:
    // offset + sum K b = -u at the pivot, sum b = 0.
    const std::size_t m = n_pivot + 1;
    std::vector<std::vector<double>> a(m, std::vector<double>(m + c.n, 0.0));
    const auto entry = [&](std::size_t p, std::size_t q) {
      const auto i = static_cast<std::size_t>(order[p]);
      const auto j = static_cast<std::size_t>(order[q]);
      return c.k(i, j) + (i == j ? kRidge : 0.0);
    };
    for (std::size_t p = 0; p < n_pivot; ++p) {
      a[0][1 + p] = a[1 + p][0] = 1.0;
      for (std::size_t q = 0; q < n_pivot; ++q) a[1 + p][1 + q] = entry(p, q);
      a[1 + p][m + p] = -1.0;
      for (std::size_t q = n_pivot; q < c.n; ++q) a[1 + p][m + q] = -entry(p, q);
    }
    for (std::size_t q = n_pivot; q < c.n; ++q) a[0][m + q] = -1.0;
    eliminate(a);
    columns.resize(c.n * (c.n + 1));
    for (std::size_t q = 0; q < c.n; ++q) {
      double* column = columns.data() + q * (c.n + 1);
      for (std::size_t p = 0; p < m; ++p) column[p] = a[p][m + q];
      for (std::size_t p = n_pivot; p < c.n; ++p) {
        double u = -column[0] - (q >= n_pivot ? entry(p, q) : 0.0);
        for (std::size_t f = 0; f < n_pivot; ++f) u -= entry(p, f) * column[1 + f];
        column[1 + p] = u;
      }
    }
  }
  PivotedSolution view(const Case& c, const Solution& solution, std::size_t n_near) const {
    return {&c.problem, &solution, order, n_pivot, n_near, kRidge};
  }
  std::vector<PathEnd> follow(const Case& c, const Solution& solution, std::size_t n_near,
                              std::span<const std::int32_t> leaving, std::size_t threads) const {
    GivenColumns given(columns.data(), column_of);
    return follow_paths(view(c, solution, n_near), given, leaving, threads);
  }
};

TEST(paths_end_in_the_optimum_without_a_variable) {
  for (const double kink : {0.0, 0.1}) {
    for (const double C : {0.5, 20.0}) {
      const Case c(60, C, kink, 3);
      const Solution full = c.solve_without(c.n);
      const Pivoted pivoted(c, full);
      CHECK(pivoted.n_pivot > 2);
      std::vector<std::int32_t> places(c.n);
      std::iota(places.begin(), places.end(), 0);
      for_each_isa([&] {
        for (const std::size_t n_near : {pivoted.n_pivot, (pivoted.n_pivot + c.n) / 2, c.n}) {
          const auto ends = pivoted.follow(c, full, n_near, places, n_near % 3 + 1);
          std::size_t reached = 0;
          for (std::size_t p = 0; p < c.n; ++p) {
            if (ends[p].kind != Path::Kind::Reached) continue;
            ++reached;
            const auto v = static_cast<std::size_t>(pivoted.order[p]);
            const Solution truth = c.solve_without(v);
            CHECK(std::abs(ends[p].u - (truth.gradient[v] - truth.offset[0])) < 1e-4);
            CHECK(ends[p].gap < 1e-4);
          }
          CHECK(reached == c.n);
        }
      });
    }
  }
}

TEST(a_path_says_which_column_it_needs) {
  const Case c(60, 20.0, 0.0, 5);
  const Solution full = c.solve_without(c.n);
  Pivoted pivoted(c, full);
  const std::vector<std::int32_t> leaving{0};
  const auto whole = pivoted.follow(c, full, c.n, leaving, 1);
  CHECK(whole[0].kind == Path::Kind::Reached);
  CHECK(whole[0].n_swapped > 0);
  std::fill(pivoted.column_of.begin() + 1, pivoted.column_of.end(), -1);
  for (std::size_t turn = 0; turn <= c.n; ++turn) {
    const PathEnd end = pivoted.follow(c, full, c.n, leaving, 1)[0];
    if (end.kind == Path::Kind::Reached) {
      CHECK(turn > 0);
      CHECK(end.u == whole[0].u);
      return;
    }
    CHECK(end.kind == Path::Kind::ColumnMissing);
    CHECK(pivoted.column_of[end.missing] < 0);
    pivoted.column_of[end.missing] = static_cast<std::int32_t>(end.missing);
  }
  CHECK(false);
}

TEST(a_path_that_leaves_nothing_free_is_left_open) {
  // Two rows, one of each class: without one of them there is no problem.
  const Case c(2, 20.0, 0.0, 7);
  const Solution full = c.solve_without(c.n);
  const Pivoted pivoted(c, full);
  const std::vector<std::int32_t> leaving{0};
  CHECK(pivoted.follow(c, full, c.n, leaving, 1)[0].kind == Path::Kind::LeftOpen);
}

}  // namespace
