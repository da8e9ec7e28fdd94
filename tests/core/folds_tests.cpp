// Folds against what they are by definition: problems with other bounds, solved cold.
#include <algorithm>
#include <limits>
#include <numeric>

#include "check.hpp"
#include "folds.hpp"
#include "held_out.hpp"
#include "smo.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;
constexpr std::size_t kCols = 3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Kind { CSvc, Svr, NuSvc, NuSvr };
constexpr Kind kKinds[] = {Kind::CSvc, Kind::Svr, Kind::NuSvc, Kind::NuSvr};

// Points; the first half of them is one class.
struct Data {
  std::size_t n;
  std::vector<double> x;

  explicit Data(std::size_t rows, unsigned seed) : n(rows), x(normal(rows * kCols, seed)) {
    for (std::size_t i = 0; i < n / 2; ++i) x[i * kCols] += 1.5;
  }
  std::unique_ptr<RowSource> source(double gamma) const {
    return points_source(DenseView<double>{x.data(), n, kCols}, {KernelKind::Rbf, gamma, 0.0, 1});
  }
  double k(std::size_t i, std::size_t j, double gamma) const {
    double sq = 0.0;
    for (std::size_t c = 0; c < kCols; ++c) {
      sq += (x[i * kCols + c] - x[j * kCols + c]) * (x[i * kCols + c] - x[j * kCols + c]);
    }
    return std::exp(-gamma * sq);
  }
};

constexpr double kGamma = 0.5;

// The problem of a machine on all rows, with the bound C for each.
Problem on_all_rows(const Data& data, Kind kind, double C) {
  Problem p;
  const bool twice = kind == Kind::NuSvr;
  const std::size_t n = data.n;
  for (std::size_t v = 0; v < (twice ? 2 * n : n); ++v) {
    const std::size_t row = v % n;
    const double target = data.x[row * kCols] * data.x[row * kCols] + data.x[row * kCols + 1];
    const bool first = twice ? v < n : row < n / 2;
    p.rows.push_back(static_cast<std::int32_t>(row));
    p.lower.push_back(kind == Kind::Svr || !first ? -C : 0.0);
    p.upper.push_back(kind == Kind::Svr || first ? C : 0.0);
    p.linear.push_back(kind == Kind::CSvc    ? (first ? 1.0 : -1.0)
                       : kind == Kind::NuSvc ? 0.0
                                             : target);
  }
  p.kink = kind == Kind::Svr ? 0.2 : 0.0;
  p.split = twice ? n : kind == Kind::NuSvc ? n / 2 : p.rows.size();
  if (p.split < p.size()) {
    p.nu = twice ? 0.9 : 0.45;
    set_nu_start(p);
  }
  return p;
}

double sum_of(const std::vector<double>& values, std::size_t first, std::size_t last) {
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(first),
                         values.begin() + static_cast<std::ptrdiff_t>(last), 0.0);
}

void check_within(const Problem& p, const std::vector<double>& beta) {
  CHECK(beta.size() == p.size());
  for (std::size_t v = 0; v < beta.size(); ++v) {
    CHECK(beta[v] >= p.lower[v] && beta[v] <= p.upper[v]);
  }
}

Solution run(KernelStore& store, const Problem& problem, double tol) {
  Settings settings;
  settings.tol = tol;
  NeverInterrupt never;
  return solve(store, problem, settings, store.spare_bytes(), never);
}

TEST(a_fold_has_other_bounds_and_its_share_of_the_sums) {
  const Data data(40, 1);
  std::mt19937 random(1);
  std::vector<double> c(data.n);
  for (double& bound : c) bound = random() % 4 == 0 ? 0.0 : 0.5 + 0.1 * double(random() % 20);
  for (const Kind kind : kKinds) {
    const Problem all = on_all_rows(data, kind, 2.0);
    const Problem fold = with_bounds(all, c);
    CHECK(fold.rows == all.rows && fold.linear == all.linear);
    CHECK(fold.kink == all.kink && fold.split == all.split);
    check_within(fold, fold.start.empty() ? std::vector<double>(fold.size(), 0.0) : fold.start);
    double before = 0.0;
    double now = 0.0;
    for (std::size_t v = 0; v < all.size(); ++v) {
      const double bound = c[static_cast<std::size_t>(all.rows[v])];
      CHECK(fold.lower[v] == (all.lower[v] < 0.0 ? -bound : 0.0));
      CHECK(fold.upper[v] == (all.upper[v] > 0.0 ? bound : 0.0));
      before += all.upper[v] - all.lower[v];
      now += fold.upper[v] - fold.lower[v];
    }
    CHECK(fold.start.empty() == (kind == Kind::CSvc || kind == Kind::Svr));
    if (fold.start.empty()) continue;
    const std::size_t ends[] = {0, all.split, all.size()};
    for (std::size_t g = 0; g < 2; ++g) {
      const double wanted = sum_of(all.start, ends[g], ends[g + 1]) * now / before;
      CHECK(std::abs(sum_of(fold.start, ends[g], ends[g + 1]) - wanted) < 1e-12);
      std::size_t between = 0;  // at their bounds one after another
      for (std::size_t v = ends[g]; v < ends[g + 1]; ++v) {
        between += fold.start[v] != fold.lower[v] && fold.start[v] != fold.upper[v];
      }
      CHECK(between <= 1);
    }
  }
}

TEST(bounds_may_be_infinite_and_everything_may_be_held_out) {
  const Data data(30, 2);
  std::vector<double> c(data.n, kInfinity);
  std::fill(c.begin(), c.begin() + 5, 0.0);
  for (const Kind kind : {Kind::CSvc, Kind::Svr}) {
    for (const double C : {1.0, kInfinity}) {
      const Problem fold = with_bounds(on_all_rows(data, kind, C), c);
      CHECK(fold.start.empty());
      for (std::size_t v = 0; v < fold.size(); ++v) {
        CHECK(fold.upper[v] - fold.lower[v] == (v < 5 ? 0.0 : kInfinity));
      }
    }
  }
  KernelStore store(data.source(kGamma), kPlenty);
  const std::vector<double> nothing(data.n, 0.0);
  NeverInterrupt never;
  for (const Kind kind : kKinds) {
    const Problem all = on_all_rows(data, kind, 1.0);
    const Solution full = run(store, all, 1e-6);
    const Problem fold = with_bounds(all, nothing);
    check_within(fold, std::vector<double>(fold.size(), 0.0));
    CHECK(fold.start.empty() || fold.start == std::vector<double>(fold.size(), 0.0));
    for (const Solution* from : {static_cast<const Solution*>(nullptr), &full}) {
      const auto solved = solve_folds(store, {{&all, nothing, from}}, true, {}, 1, never);
      CHECK(solved[0].status == Status::Converged);
      CHECK(solved[0].beta == std::vector<double>(fold.size(), 0.0));
      for (std::size_t v = 0; v < fold.size(); ++v) {
        CHECK(std::abs(solved[0].gradient[v] - all.linear[v]) < 1e-5);
      }
    }
  }
}

// make_feasible as it is said to be: what is lacking is spread in equal shares, the size of which
// is found by bisection.
std::vector<double> spread(const Problem& p, const std::vector<bool>& first,
                           std::vector<double> beta) {
  for (std::size_t v = 0; v < beta.size(); ++v) {
    beta[v] = std::clamp(beta[v], p.lower[v], p.upper[v]);
  }
  const std::size_t ends[] = {0, p.split, p.size()};
  for (std::size_t g = 0; g < 2; ++g) {
    const double total = p.start.empty() ? 0.0 : sum_of(p.start, ends[g], ends[g + 1]);
    for (int turn = 0; turn < 3; ++turn) {
      const double lack = total - sum_of(beta, ends[g], ends[g + 1]);
      if (std::abs(lack) < 1e-12) break;
      const auto with_share = [&](double share) {
        std::vector<double> moved = beta;
        for (std::size_t v = ends[g]; v < ends[g + 1]; ++v) {
          if ((turn == 0 && !first[v]) || (turn == 1 && beta[v] == 0.0)) continue;
          moved[v] = std::clamp(beta[v] + (lack > 0.0 ? share : -share), p.lower[v], p.upper[v]);
        }
        return moved;
      };
      double low = 0.0;
      double high = std::abs(lack);
      for (int halving = 0; halving < 100; ++halving) {
        const double middle = (low + high) / 2;
        const double left = total - sum_of(with_share(middle), ends[g], ends[g + 1]);
        (left * lack > 0.0 ? low : high) = middle;
      }
      beta = with_share(high);
    }
  }
  return beta;
}

TEST(any_point_is_made_feasible) {
  std::mt19937 random(3);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t n = 1 + random() % 12;
    Problem p;
    p.split = random() % 2 == 0 ? n : random() % (n + 1);
    std::vector<double> beta;
    std::vector<bool> first;
    const bool infinite = random() % 4 == 0;
    const double scale = std::pow(10.0, uniform(-3.0, 3.0));
    for (std::size_t v = 0; v < n; ++v) {
      p.rows.push_back(static_cast<std::int32_t>(v));
      p.linear.push_back(0.0);
      const auto bound = [&] {
        const double size = infinite && random() % 3 == 0 ? kInfinity : uniform(0.0, scale);
        return random() % 3 == 0 ? 0.0 : size;
      };
      p.lower.push_back(-bound());
      p.upper.push_back(bound());
      // Outside, at the bounds, 0 or between.
      const double at[] = {uniform(-5.0, 5.0) * scale, std::max(p.lower[v], -scale),
                           std::min(p.upper[v], scale), 0.0};
      beta.push_back(at[random() % 4]);
      first.push_back(random() % 3 == 0);
    }
    if (random() % 2 == 0) {  // sums that are not 0, and may be out of reach
      for (std::size_t v = 0; v < n; ++v) p.start.push_back(uniform(-0.7, 0.7) * scale);
    }
    const std::vector<double> expected = spread(p, first, beta);
    make_feasible(p, first, beta);
    check_within(p, beta);
    for (std::size_t v = 0; v < n; ++v) CHECK(std::abs(beta[v] - expected[v]) < 1e-10 * scale);
    const std::size_t ends[] = {0, p.split, n};
    for (std::size_t g = 0; g < 2; ++g) {
      const double total = p.start.empty() ? 0.0 : sum_of(p.start, ends[g], ends[g + 1]);
      const double possible = std::clamp(total, sum_of(p.lower, ends[g], ends[g + 1]),
                                         sum_of(p.upper, ends[g], ends[g + 1]));
      CHECK(std::abs(sum_of(beta, ends[g], ends[g + 1]) - possible) < 1e-11 * scale);
    }
  }
}

TEST(free_variables_first_then_those_that_are_not_0_then_all) {
  Problem p;
  p.rows = {0, 1, 2, 3};
  p.linear.assign(4, 0.0);
  p.lower.assign(4, 0.0);
  p.upper = {1.0, 1.0, 1.0, 1.0};
  p.split = 4;
  const auto from = [&](double total) {
    p.start = {total, 0.0, 0.0, 0.0};
    std::vector<double> beta = {0.25, 0.75, 0.5, 0.0};
    make_feasible(p, {true, true, false, false}, beta);
    return beta;
  };
  CHECK((from(1.75) == std::vector<double>{0.375, 0.875, 0.5, 0.0}));  // equal shares
  CHECK((from(2.25) == std::vector<double>{0.75, 1.0, 0.5, 0.0}));     // as far as there is room
  CHECK((from(2.75) == std::vector<double>{1.0, 1.0, 0.75, 0.0}));     // then those not 0
  CHECK((from(3.5) == std::vector<double>{1.0, 1.0, 1.0, 0.5}));       // then all
  CHECK((from(1.25) == std::vector<double>{0.125, 0.625, 0.5, 0.0}));  // and downwards
  CHECK((from(9.0) == std::vector<double>{1.0, 1.0, 1.0, 1.0}));       // not possible
}

TEST(an_average_start_keeps_what_the_bounds_allow) {
  const Data data(60, 4);
  KernelStore store(data.source(kGamma), kPlenty);
  std::vector<double> c(data.n, 2.0);
  for (std::size_t i = 0; i < data.n; i += 4) c[i] = 0.0;
  c[1] = 0.7;  // and one whose bound becomes smaller
  for (const Kind kind : kKinds) {
    const Problem all = on_all_rows(data, kind, 2.0);
    const Solution full = run(store, all, 1e-6);
    const Problem fold = with_bounds(all, c);
    std::vector<bool> free;
    for (std::size_t v = 0; v < fold.size(); ++v) {
      const double b = std::clamp(full.beta[v], fold.lower[v], fold.upper[v]);
      free.push_back(b > fold.lower[v] && b < fold.upper[v] && (kind != Kind::Svr || b != 0.0));
    }
    const std::vector<double> start = average_start(fold, full);
    const std::vector<double> expected = spread(fold, free, full.beta);
    check_within(fold, start);
    for (std::size_t v = 0; v < fold.size(); ++v) CHECK(std::abs(start[v] - expected[v]) < 1e-9);
  }
}

// Bounds of `count` folds.
std::vector<std::vector<double>> bounds_of_folds(std::size_t n, std::size_t count, double C) {
  std::vector<std::vector<double>> bounds(count, std::vector<double>(n, C));
  for (std::size_t i = 0; i < n; ++i) bounds[i % count][i] = 0.0;
  return bounds;
}

TEST(folds_have_the_solutions_of_cold_starts) {
  const Data data(120, 5);
  const auto bounds = bounds_of_folds(data.n, 5, 3.0);
  Settings settings;
  settings.tol = 1e-9;
  NeverInterrupt never;
  for (const Kind kind : kKinds) {
    const Problem all = on_all_rows(data, kind, 3.0);
    KernelStore store(data.source(kGamma), kPlenty);
    const Solution full = run(store, all, 1e-9);
    Solution foreign = full;  // a start for another kernel: its gradient says nothing here
    foreign.gradient = normal(full.gradient.size(), 50);
    std::vector<Solution> cold;
    for (const auto& c : bounds) cold.push_back(run(store, with_bounds(all, c), 1e-9));
    for (const bool same_kernel : {true, false}) {
      std::vector<FoldProblem> problems;
      for (std::size_t f = 0; f < bounds.size(); ++f) {
        const Solution* from = same_kernel ? &full : &foreign;
        problems.push_back({&all, bounds[f], f == 2 ? nullptr : from});
      }
      for (const std::size_t threads : {1, 4}) {
        const auto solved = solve_folds(store, problems, same_kernel, settings, threads, never);
        CHECK(solved.size() == bounds.size());
        for (std::size_t f = 0; f < bounds.size(); ++f) {
          CHECK(solved[f].status == Status::Converged);
          CHECK(solved[f].gap < 1e-9);
          check_within(with_bounds(all, bounds[f]), solved[f].beta);
          CHECK(std::abs(solved[f].objective - cold[f].objective) <
                1e-9 * (1.0 + std::abs(cold[f].objective)));
          for (std::size_t v = 0; v < all.size(); ++v) {
            if (bounds[f][static_cast<std::size_t>(all.rows[v])] != 0.0) continue;
            CHECK(solved[f].beta[v] == 0.0);
            CHECK(std::abs(solved[f].gradient[v] - cold[f].gradient[v]) < 1e-5);
          }
        }
      }
    }
  }
}

TEST(what_folds_change_in_common_is_in_their_gradients) {
  const Data data(300, 9);
  const auto bounds = bounds_of_folds(data.n, 6, 50.0);
  Settings settings;
  settings.max_iter = 1;  // all but the start is left out
  NeverInterrupt never;
  for (const Kind kind : kKinds) {
    const Problem all = on_all_rows(data, kind, 50.0);
    KernelStore store(data.source(kGamma), kPlenty);
    const Solution full = run(store, all, kind == Kind::NuSvr ? 1e-3 : 1e-6);
    std::size_t free = 0;
    for (std::size_t v = 0; v < all.size(); ++v) {
      free += full.beta[v] > all.lower[v] && full.beta[v] < all.upper[v] ? 1 : 0;
    }
    if (kind == Kind::CSvc) CHECK(free >= 64);  // or each fold would read rows of its own
    std::vector<FoldProblem> problems;
    for (const auto& c : bounds) problems.push_back({&all, c, &full});
    for (const std::size_t threads : {1, 3}) {
      for (const Solution& fold : solve_folds(store, problems, true, settings, threads, never)) {
        for (std::size_t v = 0; v < all.size(); v += 7) {
          double expected = all.linear[v];
          for (std::size_t w = 0; w < all.size(); ++w) {
            const auto i = static_cast<std::size_t>(all.rows[v]);
            const auto j = static_cast<std::size_t>(all.rows[w]);
            expected -= data.k(i, j, kGamma) * fold.beta[w];
          }
          CHECK(std::abs(fold.gradient[v] - expected) < 1e-3);
        }
      }
    }
  }
}

TEST(proven_signs_are_those_of_the_optimum) {
  const Data data(120, 6);
  NeverInterrupt never;
  int proven = 0;
  for (const double C : {0.1, 1.0, 30.0}) {
    const Problem all = on_all_rows(data, Kind::CSvc, C);
    KernelStore store(data.source(kGamma), kPlenty);
    const Solution full = run(store, all, 1e-3);
    for (std::size_t row = 0; row < data.n; row += 3) {
      std::vector<double> c(data.n, C);
      c[row] = 0.0;
      // A tolerance that leaves everything open: what is said then has to be proven.
      Settings settings;
      settings.tol = 1e-12;
      const auto early = solve_folds(store, {{&all, c, &full, row}}, true, settings, 1, never);
      if (early[0].status != Status::SignProven) continue;
      ++proven;
      const Solution cold = run(store, with_bounds(all, c), 1e-9);
      const auto value = [&](const Solution& s) {
        return all.linear[row] - s.gradient[row] + s.offset[0];
      };
      CHECK(value(early[0]) * value(cold) > 0.0);
      CHECK(early[0].n_iter <= 64);
    }
  }
  CHECK(proven > 20);
}

TEST(the_gradient_of_a_start_counts_for_the_same_kernel_only) {
  const Data data(100, 12);
  const auto bounds = bounds_of_folds(data.n, 4, 1.0);
  NeverInterrupt never;
  for (const Kind kind : kKinds) {
    const Problem all = on_all_rows(data, kind, 1.0);
    KernelStore store(data.source(kGamma), kPlenty);
    Solution solved = run(store, with_bounds(all, bounds[0]), 1e-6);
    const std::vector<FoldProblem> again = {{&all, bounds[0], &solved}};
    CHECK(solve_folds(store, again, true, {}, 1, never)[0].n_iter == 0);
    solved.gradient = normal(solved.gradient.size(), 50);
    CHECK(solve_folds(store, again, false, {}, 1, never)[0].n_iter == 0);
  }
}

TEST(a_fold_starts_from_any_other) {
  const Data data(100, 6);
  const auto bounds = bounds_of_folds(data.n, 4, 1.0);
  Settings settings;
  settings.tol = 1e-9;
  NeverInterrupt never;
  for (const Kind kind : kKinds) {
    const Problem all = on_all_rows(data, kind, 1.0);
    KernelStore store(data.source(kGamma), kPlenty);
    Solution before = run(store, with_bounds(all, bounds[0]), 1e-9);
    for (std::size_t f = 1; f < bounds.size(); ++f) {
      const Solution cold = run(store, with_bounds(all, bounds[f]), 1e-9);
      const std::vector<FoldProblem> one = {{&all, bounds[f], &before}};
      Solution next = solve_folds(store, one, true, settings, 1, never)[0];
      CHECK(next.status == Status::Converged);
      CHECK(std::abs(next.objective - cold.objective) < 1e-9 * (1.0 + std::abs(cold.objective)));
      before = std::move(next);
    }
  }
}

// Asks to stop after a number of questions.
class After final : public Interrupt {
 public:
  explicit After(int questions) : left_(questions) {}
  bool requested() override { return left_-- <= 0; }

 private:
  int left_;
};

TEST(an_interrupt_leaves_whole_solutions_or_none) {
  const Data data(200, 7);
  const Problem all = on_all_rows(data, Kind::CSvc, 100.0);
  const auto bounds = bounds_of_folds(data.n, 6, 100.0);
  KernelStore store(data.source(kGamma), kPlenty);
  const Solution full = run(store, all, 1e-3);
  std::vector<FoldProblem> problems;
  for (const auto& c : bounds) problems.push_back({&all, c, &full});
  Settings settings;
  settings.tol = 1e-6;
  for (const std::size_t threads : {1, 4}) {
    StopFlag stop;
    stop.raise();
    for (const Solution& s : solve_folds(store, problems, true, settings, threads, stop)) {
      CHECK(s.status == Status::Interrupted || s.status == Status::Converged);
      CHECK(s.beta.empty() || s.beta.size() == all.size());
      CHECK(threads > 1 || s.beta.empty());  // never begun
    }
    for (const int questions : {1, 2, 5, 20}) {
      After after(questions);
      const auto solved = solve_folds(store, problems, true, settings, threads, after);
      CHECK(solved.size() == problems.size());
      for (std::size_t f = 0; f < solved.size(); ++f) {
        if (!solved[f].beta.empty()) check_within(with_bounds(all, bounds[f]), solved[f].beta);
        CHECK(!solved[f].beta.empty() || solved[f].status == Status::Interrupted);
        // On one thread they are solved in turn.
        CHECK(threads > 1 || f == 0 || solved[f].beta.empty() || !solved[f - 1].beta.empty());
      }
    }
  }
  NeverInterrupt never;
  CHECK(solve_folds(store, {}, true, settings, 4, never).empty());
}

}  // namespace
