// The stage in double precision, on kernels of low rank, where float32 entries do not do.
#include <algorithm>
#include <numeric>

#include "check.hpp"
#include "precise.hpp"
#include "smo.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;

// One feature and a linear kernel.
struct Line {
  std::vector<double> x;
  KernelStore store() const {
    return KernelStore(
        points_source(DenseView<double>{x.data(), x.size(), 1}, {KernelKind::Linear, 1.0, 0.0, 1}),
        kPlenty);
  }
};

// On this one a solver with float32 entries goes on for millions of iterations at tol = 1e-6.
const Line kEight{{-0.86531174, 0.30574772, -1.83746576, 1.82758033, 0.72558016, -0.71100622,
                   -0.6762839, 1.41267073}};

Problem box(std::vector<double> linear, double lower, double upper) {
  Problem p;
  p.linear = std::move(linear);
  p.rows.resize(p.linear.size());
  std::iota(p.rows.begin(), p.rows.end(), 0);
  p.lower.assign(p.size(), lower);
  p.upper.assign(p.size(), upper);
  p.split = p.size();
  return p;
}

Problem classes_of_eight() {
  Problem p = box({-1, -1, -1, -1, -1, 1, 1, 1}, -10.0, 10.0);
  for (std::size_t v = 0; v < p.size(); ++v) {
    (p.linear[v] > 0.0 ? p.lower[v] : p.upper[v]) = 0.0;
  }
  return p;
}

Settings to(double tol, std::int64_t max_iter = 2000000) {
  Settings settings;
  settings.tol = tol;
  settings.max_iter = max_iter;
  return settings;
}

Solution precisely(const Line& line, const Problem& p, const Settings& settings) {
  NeverInterrupt never;
  return solve_precisely(line.store(), p, settings,
                         p.start.empty() ? std::vector<double>(p.size(), 0.0) : p.start, 0, never);
}

// Feasible, and optimal by a gradient that is computed here.
void check_solution(const Line& line, const Problem& p, const Solution& s, double tol) {
  CHECK(s.status == Status::Converged);
  CHECK(s.gap < tol);
  const auto x = [&](std::size_t v) { return line.x[static_cast<std::size_t>(p.rows[v])]; };
  double weight = 0.0;
  for (std::size_t v = 0; v < p.size(); ++v) weight += s.beta[v] * x(v);
  double sum[2] = {0.0, 0.0};
  double max_up[2] = {-1e300, -1e300};
  double min_low[2] = {1e300, 1e300};
  for (std::size_t v = 0; v < p.size(); ++v) {
    const double b = s.beta[v];
    const double g = p.linear[v] - weight * x(v);
    const std::size_t group = v < p.split ? 0 : 1;
    CHECK(b >= p.lower[v] && b <= p.upper[v]);
    CHECK(std::abs(s.gradient[v] - g) < 1e-11);
    sum[group] += b - (p.start.empty() ? 0.0 : p.start[v]);
    if (b < p.upper[v]) max_up[group] = std::max(max_up[group], g + (b < 0 ? p.kink : -p.kink));
    if (b > p.lower[v]) min_low[group] = std::min(min_low[group], g + (b > 0 ? -p.kink : p.kink));
  }
  for (std::size_t k = 0; k < 2; ++k) {
    CHECK(std::abs(sum[k]) < 1e-10);
    CHECK(max_up[k] - min_low[k] < tol + 1e-11);
  }
}

TEST(eight_rows_on_a_line_converge) {
  const Problem p = classes_of_eight();
  for_each_isa([&] {
    for (const double tol : {1e-6, 1e-10}) {
      const Solution alone = precisely(kEight, p, to(tol));
      check_solution(kEight, p, alone, tol);
      CHECK(alone.n_iter < 100);
      KernelStore store = kEight.store();
      NeverInterrupt never;
      const Solution whole = solve(store, p, to(tol), 0, never);
      check_solution(kEight, p, whole, tol);
      CHECK(whole.n_iter < 50000);  // until float32 entries are suspected
      CHECK(std::abs(whole.objective - alone.objective) < 1e-4 * tol / 1e-6);
    }
  });
}

TEST(a_kink_on_a_line) {
  for (const double C : {0.1, 10.0}) {
    for (const double kink : {0.1, 0.7}) {  // neither is a float32
      Line line{normal(40, 1)};
      Problem p = box(normal(40, 2), -C, C);
      for (std::size_t v = 0; v < p.size(); ++v) p.linear[v] += line.x[v];
      p.kink = kink;
      check_solution(line, p, precisely(line, p, to(1e-9)), 1e-9);
    }
  }
}

TEST(two_groups_that_share_rows_on_a_line) {
  // nu-SVR: every row is a variable of both groups.
  const Line line{normal(30, 3)};
  auto y = normal(30, 4);
  for (std::size_t i = 0; i < 30; ++i) y[i] += line.x[i];
  auto both = y;
  both.insert(both.end(), y.begin(), y.end());
  Problem p = box(both, 0.0, 1.0);
  p.split = 30;
  p.start.assign(60, 0.0);
  for (std::size_t v = 30; v < 60; ++v) {
    p.rows[v] -= 30;
    p.lower[v] = -1.0;
    p.upper[v] = 0.0;
  }
  for (std::size_t v = 0; v < 8; ++v) {
    p.start[v] = 1.0;
    p.start[30 + v] = -1.0;
  }
  check_solution(line, p, precisely(line, p, to(1e-9)), 1e-9);
}

TEST(every_way_the_stage_ends) {
  const Problem p = classes_of_eight();
  const KernelStore store = kEight.store();
  const std::vector<double> zero(8, 0.0);
  NeverInterrupt never;
  const Solution limited = solve_precisely(store, p, to(1e-6, 103), zero, 100, never);
  CHECK(limited.status == Status::MaxIter && limited.n_iter == 103);
  const Solution hopeless = solve_precisely(store, p, to(0.0, -1), zero, 0, never);
  CHECK(hopeless.status == Status::Stalled);
  CHECK(hopeless.gap < 1e-9);
  StopFlag stop;
  stop.raise();
  CHECK(solve_precisely(store, p, to(1e-6), zero, 0, stop).status == Status::Interrupted);
  CHECK(can_solve_precisely(1000) && !can_solve_precisely(10000));
}

TEST(an_indefinite_matrix_ends_at_a_stationary_point) {
  constexpr std::size_t n = 20;
  auto k = normal(n * n, 5);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) k[i * n + j] = k[j * n + i];
  }
  std::vector<std::int32_t> rows(n);
  std::iota(rows.begin(), rows.end(), 0);
  KernelStore store(matrix_source({k.data(), n, n}, rows), kPlenty);
  Problem p = box(normal(n, 6), -1.0, 1.0);
  p.kink = 0.1;
  NeverInterrupt never;
  for (const Solution& s :
       {solve(store, p, to(1e-9), 0, never),
        solve_precisely(store, p, to(1e-9), std::vector<double>(n, 0.0), 0, never)}) {
    CHECK(s.status == Status::Converged);
    CHECK(s.gap < 1e-9);
  }
}

}  // namespace
