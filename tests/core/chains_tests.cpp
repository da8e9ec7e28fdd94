// Chains against what they are by definition: the same problems, each solved cold.
#include <algorithm>
#include <set>

#include "chains.hpp"
#include "check.hpp"
#include "folds.hpp"
#include "smo.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;
constexpr std::size_t kRows = 90;
constexpr std::size_t kCols = 3;
const std::vector<double> kFactors = {0.1, 0.5, 0.5, 2.0, 8.0};

struct Points {
  std::vector<double> x = normal(kRows * kCols, 5);
  Points() {
    for (std::size_t i = 0; i < kRows / 2; ++i) x[i * kCols] += 1.0;
  }
  std::unique_ptr<RowSource> source(double gamma) const {
    return points_source(DenseView<double>{x.data(), kRows, kCols},
                         {KernelKind::Rbf, gamma, 0.0, 1});
  }
};

Problem on_all_rows(bool regression) {
  Problem p;
  const std::vector<double> noise = normal(kRows, 9);
  for (std::size_t v = 0; v < kRows; ++v) {
    const bool first = v < kRows / 2;
    p.rows.push_back(static_cast<std::int32_t>(v));
    p.lower.push_back(regression || !first ? -1.0 : 0.0);
    p.upper.push_back(regression || first ? 1.0 : 0.0);
    p.linear.push_back(regression ? noise[v] : first ? 1.0 : -1.0);
  }
  p.kink = regression ? 0.2 : 0.0;
  p.split = kRows;
  return p;
}

// Every fifth row is held out.
std::vector<double> bounds_of_a_fold() {
  std::vector<double> bounds(kRows, 1.0);
  for (std::size_t v = 0; v < kRows; v += 5) bounds[v] = 0.0;
  return bounds;
}

struct Solved {
  std::vector<std::vector<Solution>> of;
  std::size_t calls = 0;
};

Solved run(const std::vector<Chain>& chains, bool cold, double tol, std::size_t threads) {
  Solved solved;
  for (const Chain& chain : chains) solved.of.emplace_back(chain.factors.size());
  Settings settings;
  settings.tol = tol;
  NeverInterrupt never;
  solve_chains(
      chains, cold, settings, threads,
      [&](std::size_t chain, std::size_t step, Solution&& solution) {
        ++solved.calls;
        solved.of[chain][step] = std::move(solution);
        return false;
      },
      never);
  return solved;
}

TEST(chains_end_where_cold_solves_end) {
  const Points points;
  KernelStore wide(points.source(0.3), kPlenty);
  KernelStore narrow(points.source(2.0), kPlenty);
  const std::vector<double> bounds = bounds_of_a_fold();
  for (const bool regression : {false, true}) {
    const Problem all = on_all_rows(regression);
    const std::vector<Chain> chains = {{&wide, &all, bounds, kFactors},
                                       {&narrow, &all, bounds, kFactors},
                                       {&wide, &all, bounds, {2.0}}};
    for (const std::size_t threads : {1, 3}) {
      const Solved solved = run(chains, false, 1e-7, threads);
      CHECK(solved.calls == 2 * kFactors.size() + 1);
      std::int64_t seeded = 0;
      std::int64_t cold = 0;
      for (std::size_t c = 0; c < chains.size(); ++c) {
        for (std::size_t k = 0; k < chains[c].factors.size(); ++k) {
          std::vector<double> scaled = bounds;
          for (double& b : scaled) b *= chains[c].factors[k];
          const Problem problem = with_bounds(all, scaled);
          Settings settings;
          settings.tol = 1e-7;
          NeverInterrupt never;
          const Solution expected = solve(*chains[c].store, problem, settings, kPlenty, never);
          const Solution& found = solved.of[c][k];
          CHECK(found.status == Status::Converged);
          for (std::size_t v = 0; v < kRows; ++v) {
            CHECK(found.beta[v] >= problem.lower[v] && found.beta[v] <= problem.upper[v]);
            CHECK(std::isnan(found.gradient[v]) == (bounds[v] == 0.0));
            if (bounds[v] == 0.0) continue;
            CHECK(std::abs(found.gradient[v] - found.offset[0] - expected.gradient[v] +
                           expected.offset[0]) < 1e-4);
          }
          seeded += found.n_iter;
          cold += expected.n_iter;
        }
      }
      CHECK(seeded < cold);  // a repeated factor alone is free
      CHECK(solved.of[0][2].n_iter == 0);
    }
    const Solved cold = run(chains, true, 1e-7, 1);
    CHECK(cold.of[0][2].n_iter == cold.of[0][1].n_iter);
  }
}

// From the solution of the step before, as if nothing had been between.
TEST(chains_go_on_where_they_were) {
  const Points points;
  KernelStore store(points.source(0.3), kPlenty);
  const std::vector<double> bounds = bounds_of_a_fold();
  for (const bool regression : {false, true}) {
    const Problem all = on_all_rows(regression);
    const Chain whole{&store, &all, bounds, kFactors};
    const Solved solved = run({whole}, false, 1e-3, 1);
    for (std::size_t k = 1; k < kFactors.size(); ++k) {
      Chain rest = whole;
      rest.factors.assign(kFactors.begin() + static_cast<std::ptrdiff_t>(k), kFactors.end());
      rest.before = &solved.of[0][k - 1];
      rest.before_factor = kFactors[k - 1];
      const Solved again = run({rest}, false, 1e-3, 1);
      for (std::size_t step = k; step < kFactors.size(); ++step) {
        CHECK(again.of[0][step - k].beta == solved.of[0][step].beta);
        CHECK(again.of[0][step - k].offset[0] == solved.of[0][step].offset[0]);
      }
    }
  }
}

TEST(scaled_starts_are_feasible_and_know_their_gradient) {
  const Points points;
  KernelStore store(points.source(0.5), kPlenty);
  const Problem all = on_all_rows(false);
  const std::vector<double> bounds = bounds_of_a_fold();
  std::vector<double> larger = bounds;
  for (double& b : larger) b *= 4.0;
  Settings settings;
  NeverInterrupt never;
  const Solution solved = solve(store, with_bounds(all, bounds), settings, kPlenty, never);
  Problem next = with_bounds(all, larger);
  start_scaled(solved, 4.0, next);
  double sum = 0.0;
  for (std::size_t v = 0; v < kRows; ++v) {
    CHECK(next.start[v] >= next.lower[v] && next.start[v] <= next.upper[v]);
    sum += next.start[v];
    double product = 0.0;
    const HeldRow row = store.hold(static_cast<std::int32_t>(v), 1, {}, 1);
    for (std::size_t u = 0; u < kRows; ++u) {
      product += static_cast<double>(row.block(0)[u]) * next.start[u];
    }
    CHECK(std::abs(next.start_gradient[v] - (next.linear[v] - product)) < 1e-4);
  }
  CHECK(std::abs(sum) < 1e-9);
}

TEST(who_takes_solutions_may_stop_the_rest) {
  const Points points;
  KernelStore store(points.source(0.5), kPlenty);
  const Problem all = on_all_rows(false);
  const std::vector<double> bounds = bounds_of_a_fold();
  const std::vector<Chain> chains(20, Chain{&store, &all, bounds, kFactors});
  for (const std::size_t threads : {1, 3}) {
    std::set<std::pair<std::size_t, std::size_t>> seen;
    Settings settings;
    NeverInterrupt never;
    solve_chains(
        chains, false, settings, threads,
        [&](std::size_t chain, std::size_t step, Solution&&) {
          seen.emplace(chain, step);
          return seen.size() == 3;
        },
        never);
    CHECK(seen.size() == 3);
  }
}

}  // namespace
