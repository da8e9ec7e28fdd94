// Paths of folds against the folds, solved cold.
#include <algorithm>
#include <cmath>
#include <memory>

#include "check.hpp"
#include "fold_paths.hpp"
#include "folds.hpp"
#include "plain_blas.hpp"
#include "smo.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;
constexpr std::size_t kCols = 3;
constexpr double kTol = 1e-3;

struct Case {
  std::size_t n;
  std::vector<double> x;
  std::vector<double> bounds;  // by row
  Problem problem;

  // Every seventh row has a smaller bound, and the last `n_twins` are those before them once more.
  Case(std::size_t rows, double C, double kink, std::size_t n_twins, unsigned seed)
      : n(rows), x(normal(rows * kCols, seed)) {
    for (std::size_t i = 0; i < n; ++i) {
      const bool first = i % 2 == 0;
      if (first) x[i * kCols] += 1.0;
      if (i + n_twins >= n) std::copy_n(&x[(i - n_twins) * kCols], kCols, &x[i * kCols]);
      const double bound = i % 7 == 0 ? C / 2 : C;
      bounds.push_back(bound);
      problem.rows.push_back(static_cast<std::int32_t>(i));
      problem.lower.push_back(kink > 0.0 || !first ? -bound : 0.0);
      problem.upper.push_back(kink > 0.0 || first ? bound : 0.0);
      problem.linear.push_back(kink > 0.0 ? x[i * kCols] * x[i * kCols + 1] : first ? 1.0 : -1.0);
    }
    problem.kink = kink;
    problem.split = n;
  }

  std::unique_ptr<KernelStore> store() const {
    return std::make_unique<KernelStore>(
        points_source(DenseView<double>{x.data(), n, kCols}, {KernelKind::Rbf, 0.5, 0.0, 1}),
        kPlenty);
  }

  // Fold f of k holds out every k-th row.
  std::vector<double> bounds_of(std::size_t f, std::size_t k) const {
    std::vector<double> of_fold = bounds;
    for (std::size_t i = f; i < n; i += k) of_fold[i] = 0.0;
    return of_fold;
  }
};

Solution solved(KernelStore& store, const Problem& problem, double tol) {
  Settings settings;
  settings.tol = tol;
  NeverInterrupt never;
  return solve(store, problem, settings, kPlenty, never);
}

std::vector<std::optional<Solution>> ends_of(const Case& c, KernelStore& store,
                                             const Solution& full, std::size_t bytes,
                                             const std::vector<std::vector<double>>& bounds,
                                             std::size_t threads, double products = 1e9) {
  PathMemory memory;
  NeverInterrupt never;
  FoldPaths paths(store, c.problem, full, {bytes, products}, memory, never);
  const std::vector<std::span<const double>> views(bounds.begin(), bounds.end());
  return paths.ends(views, kTol, threads, never);
}

TEST(paths_of_folds_end_in_their_optimum) {
  const WithBlas routines;
  for (const double kink : {0.0, 0.1}) {
    for (const double C : {0.3, 20.0}) {
      for (const std::size_t n_twins : {0UL, 10UL}) {
        const Case c(80, C, kink, n_twins, 3);
        const auto store = c.store();
        const Solution full = solved(*store, c.problem, kTol / 10);
        for_each_isa([&] {
          for (const std::size_t k : {10UL, 20UL}) {
            std::vector<std::vector<double>> bounds;
            for (std::size_t f = 0; f < k; ++f) bounds.push_back(c.bounds_of(f, k));
            const auto ends = ends_of(c, *store, full, kPlenty, bounds, k % 3 + 1);
            std::size_t converged = 0;
            for (std::size_t f = 0; f < k; ++f) {
              if (!ends[f]) continue;
              const Problem fold = with_bounds(c.problem, bounds[f]);
              const Solution truth = solved(*store, fold, 1e-9);
              double sum = 0.0;
              for (std::size_t v = 0; v < c.n; ++v) {
                CHECK(ends[f]->beta[v] >= fold.lower[v] && ends[f]->beta[v] <= fold.upper[v]);
                sum += ends[f]->beta[v];
              }
              CHECK(std::abs(sum) < 1e-9 * C);
              if (ends[f]->status != Status::Converged) continue;
              ++converged;
              CHECK(ends[f]->gap < kTol);
              CHECK(std::abs(ends[f]->objective - truth.objective) <
                    kTol * C * static_cast<double>(c.n));
              for (std::size_t v = 0; v < c.n; ++v) {
                const double value = ends[f]->gradient[v] - ends[f]->offset[0];
                CHECK(std::abs(value - (truth.gradient[v] - truth.offset[0])) < 0.05);
              }
            }
            if (k == 20) CHECK(converged >= (kink > 0.0 ? k : k / 2));
          }
        });
      }
    }
  }
}

TEST(what_is_no_path_has_no_end) {
  const WithBlas routines;
  const Case c(60, 5.0, 0.0, 0, 5);
  const auto store = c.store();
  const Solution full = solved(*store, c.problem, kTol / 10);
  std::vector<double> other = c.bounds_of(1, 10);
  other[2] *= 0.5;  // another bound is no row that leaves
  // All of a class: nothing is left to be free.
  std::vector<double> one_class = c.bounds;
  for (std::size_t i = 0; i < c.n; i += 2) one_class[i] = 0.0;
  const auto ends = ends_of(c, *store, full, kPlenty, {c.bounds_of(0, 10), other, one_class}, 1);
  CHECK(ends[0] && !ends[1] && !ends[2]);
  // No room for the matrix.
  CHECK(!ends_of(c, *store, full, 1000, {c.bounds_of(0, 10)}, 1)[0]);
  // No time for it.
  CHECK(!ends_of(c, *store, full, kPlenty, {c.bounds_of(0, 10)}, 1, 100.0)[0]);
  // Room for columns of free variables alone: paths that need others have no end.
  const auto n_free =
      static_cast<std::size_t>(std::ranges::count_if(c.problem.rows, [&](std::int32_t i) {
        const auto v = static_cast<std::size_t>(i);
        return full.beta[v] > c.problem.lower[v] && full.beta[v] < c.problem.upper[v];
      }));
  std::vector<std::vector<double>> bounds;
  for (std::size_t f = 0; f < 10; ++f) bounds.push_back(c.bounds_of(f, 10));
  const auto few =
      ends_of(c, *store, full, n_free * (4 * n_free + 2 * c.n) * sizeof(double), bounds, 1);
  const auto plenty = ends_of(c, *store, full, kPlenty, bounds, 1);
  const auto has_end = [](const std::optional<Solution>& end) { return end.has_value(); };
  CHECK(std::ranges::count_if(few, has_end) <= std::ranges::count_if(plenty, has_end));
  // A solution that is none.
  Solution unfinished = full;
  unfinished.status = Status::MaxIter;
  CHECK(!ends_of(c, *store, unfinished, kPlenty, {c.bounds_of(0, 10)}, 1)[0]);
}

// Stops at once.
class Stopped final : public Interrupt {
 public:
  bool requested() override { return true; }
};

TEST(an_interrupt_ends_paths) {
  const WithBlas routines;
  const Case c(60, 5.0, 0.0, 0, 5);
  const auto store = c.store();
  const Solution full = solved(*store, c.problem, kTol / 10);
  PathMemory memory;
  NeverInterrupt never;
  Stopped stopped;
  const FoldPaths interrupted(*store, c.problem, full, {kPlenty, 1e9}, memory, stopped);
  CHECK(!interrupted.available());
  FoldPaths paths(*store, c.problem, full, {kPlenty, 1e9}, memory, never);
  CHECK(paths.available());
  const std::vector<double> bounds = c.bounds_of(0, 10);
  const std::vector<std::span<const double>> views{bounds};
  CHECK(!paths.ends(views, kTol, 1, stopped)[0]);
  CHECK(paths.ends(views, kTol, 1, never)[0].has_value());
}

}  // namespace
