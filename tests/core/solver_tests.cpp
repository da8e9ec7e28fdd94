// Solutions are judged by what is unique: feasibility, the KKT gap and the objective, computed here
// from a plain double-precision kernel matrix.
#include <algorithm>
#include <atomic>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>

#include "active.hpp"
#include "check.hpp"
#include "folds.hpp"
#include "smo.hpp"
#include "solve_many.hpp"

// Counts allocations, to show that iterating makes none.
static std::atomic<std::size_t> g_allocations{0};
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++g_allocations;
  if (void* p = std::malloc(size == 0 ? 1 : size)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;

struct Data {
  std::size_t n;
  std::size_t d = 3;
  std::vector<double> x;
  std::vector<double> y;

  explicit Data(std::size_t rows, unsigned seed) : n(rows), x(normal(rows * 3, seed)), y(rows) {
    const auto noise = normal(rows, seed + 1000);
    for (std::size_t i = 0; i < n; ++i) {
      y[i] = x[i * d] * x[i * d] + x[i * d + 1] + noise[i] > 1.0 ? 1.0 : -1.0;
    }
  }
  std::shared_ptr<KernelStore> store(std::size_t budget = kPlenty) const {
    return std::make_shared<KernelStore>(
        points_source(DenseView<double>{x.data(), n, d}, {KernelKind::Rbf, 0.5, 0.0, 1}), budget);
  }
  double k(std::size_t i, std::size_t j) const {
    double sq = 0.0;
    for (std::size_t c = 0; c < d; ++c) {
      sq += (x[i * d + c] - x[j * d + c]) * (x[i * d + c] - x[j * d + c]);
    }
    return std::exp(-0.5 * sq);
  }
};

Problem c_svc(const Data& data, double C, std::vector<std::int32_t> rows) {
  Problem p;
  p.rows = std::move(rows);
  for (const std::int32_t row : p.rows) {
    const double y = data.y[static_cast<std::size_t>(row)];
    p.linear.push_back(y);
    p.lower.push_back(std::min(0.0, y * C));
    p.upper.push_back(std::max(0.0, y * C));
  }
  p.split = p.rows.size();
  return p;
}

std::vector<std::int32_t> all_rows(std::size_t n) {
  std::vector<std::int32_t> rows(n);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

Problem c_svc(const Data& data, double C) { return c_svc(data, C, all_rows(data.n)); }

Solution run(KernelStore& store, const Problem& problem, double tol = 1e-6, bool shrinking = true,
             std::int64_t max_iter = -1) {
  Settings settings;
  settings.tol = tol;
  settings.shrinking = shrinking;
  settings.max_iter = max_iter;
  NeverInterrupt never;
  return solve(store, problem, settings, store.spare_bytes(), never);
}

struct Quality {
  double gap;
  double objective;
};

// Feasibility is checked; the gap and the objective are computed from scratch.
Quality judge(const Data& data, const Problem& p, const std::vector<double>& beta) {
  const std::size_t n = p.size();
  std::vector<double> g = p.linear;
  double objective = 0.0;
  double sums[2] = {0.0, 0.0};
  double start_sums[2] = {0.0, 0.0};
  for (std::size_t v = 0; v < n; ++v) {
    CHECK(beta[v] >= p.lower[v] && beta[v] <= p.upper[v]);
    sums[v < p.split ? 0 : 1] += beta[v];
    if (!p.start.empty()) start_sums[v < p.split ? 0 : 1] += p.start[v];
    for (std::size_t w = 0; w < n; ++w) {
      g[v] -= beta[w] *
              data.k(static_cast<std::size_t>(p.rows[v]), static_cast<std::size_t>(p.rows[w]));
    }
  }
  double scale = 1.0;
  for (const double b : beta) scale += std::abs(b);
  for (std::size_t k = 0; k < 2; ++k) CHECK(std::abs(sums[k] - start_sums[k]) < 1e-12 * scale);
  double max_up[2] = {-1e300, -1e300};
  double min_low[2] = {1e300, 1e300};
  for (std::size_t v = 0; v < n; ++v) {
    objective += -0.5 * beta[v] * (p.linear[v] + g[v]) + p.kink * std::abs(beta[v]);
    const std::size_t group = v < p.split ? 0 : 1;
    if (beta[v] < p.upper[v]) {
      max_up[group] = std::max(max_up[group], g[v] + (beta[v] < 0.0 ? p.kink : -p.kink));
    }
    if (beta[v] > p.lower[v]) {
      min_low[group] = std::min(min_low[group], g[v] + (beta[v] > 0.0 ? -p.kink : p.kink));
    }
  }
  return {std::max(max_up[0] - min_low[0], max_up[1] - min_low[1]), objective};
}

void check_solution(const Data& data, const Problem& p, const Solution& s, double tol) {
  CHECK(s.status == Status::Converged);
  CHECK(s.gap < tol);
  const Quality q = judge(data, p, s.beta);
  double total = 0.0;
  for (const double b : s.beta) total += std::abs(b);
  // Kernel entries are rounded to float32: that much separates the two gaps, and the objectives.
  CHECK(q.gap < tol + 2e-7 * total);
  CHECK(std::abs(q.objective - s.objective) <= 1e-6 * std::abs(q.objective) + 3e-8 * total * total);
}

TEST(solves_to_the_tolerance_on_every_instruction_set) {
  const Data data(300, 1);
  for_each_isa([&] {
    for (const double C : {1e-6, 0.1, 1.0, 100.0}) {
      for (const double tol : {1e-1, 1e-3, 1e-6, 1e-9}) {
        const auto store = data.store();
        const Problem p = c_svc(data, C);
        check_solution(data, p, run(*store, p, tol), tol);
      }
    }
  });
}

TEST(the_answer_does_not_depend_on_the_way) {
  const Data data(1500, 2);
  const Problem p = c_svc(data, 20.0);
  const auto store = data.store();
  const Solution reference = run(*store, p, 1e-7, false);
  check_solution(data, p, reference, 1e-7);
  const auto same = [&](const Solution& s) {
    CHECK(s.status == Status::Converged);
    CHECK(std::abs(s.objective - reference.objective) <= 1e-8 * std::abs(reference.objective));
    CHECK(std::abs(s.offset[0] - reference.offset[0]) < 1e-5);
  };
  same(run(*store, p, 1e-7, true));                // shrinking
  same(run(*data.store(1), p, 1e-7, true));        // rows evicted all the time
  same(run(*data.store(4 << 20), p, 1e-7, true));  // about half of the rows fit
  auto shuffled = all_rows(data.n);
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(3));
  const Solution s = run(*store, c_svc(data, 20.0, shuffled), 1e-7);  // rows gathered
  same(s);
}

// A kernel matrix that is given, and two classes in turn.
struct Given {
  std::size_t n;
  std::vector<double> matrix;
  explicit Given(std::size_t rows, double entry) : n(rows), matrix(rows * rows, entry) {}
  KernelStore store() const {
    return KernelStore(matrix_source(DenseView<double>{matrix.data(), n, n}, all_rows(n)), kPlenty);
  }
  Problem problem(double C) const {
    Problem p;
    p.rows = all_rows(n);
    for (std::size_t v = 0; v < n; ++v) {
      p.linear.push_back(v % 2 == 0 ? 1.0 : -1.0);
      p.lower.push_back(v % 2 == 0 ? 0.0 : -C);
      p.upper.push_back(v % 2 == 0 ? C : 0.0);
    }
    p.split = n;
    return p;
  }
};

bool overflows(const Given& given, double C) {
  try {
    KernelStore store = given.store();
    run(store, given.problem(C), 1e-3);
  } catch (const std::overflow_error&) {
    return true;
  }
  return false;
}

TEST(without_curvature_a_step_goes_to_the_bound) {
  for_each_isa([] {
    for (const std::size_t n : {std::size_t{3}, std::size_t{75}, std::size_t{450}}) {
      for (const double C : {1.0, 1e20, 1e300}) {
        for (const double entry : {0.0, 1e-10 / C}) {
          const Given given(n, entry);
          KernelStore store = given.store();
          const Solution s = run(store, given.problem(C), 1e-3);
          CHECK(s.n_iter <= static_cast<std::int64_t>(n));
          const auto at_bound =
              std::ranges::count_if(s.beta, [&](double b) { return std::abs(b) == C; });
          CHECK(static_cast<std::size_t>(at_bound) == n / 2 * 2);
        }
      }
    }
  });
}

TEST(a_problem_without_a_finite_solution_fails) {
  const double infinity = std::numeric_limits<double>::infinity();
  for_each_isa([&] {
    for (const std::size_t n : {std::size_t{3}, std::size_t{75}, std::size_t{450}}) {
      CHECK(overflows(Given(n, 0.0), infinity));
      CHECK(overflows(Given(n, 1.0), infinity));
      CHECK(overflows(Given(n, 0.0), 1e308));  // the objective
    }
  });
}

TEST(kernel_values_beyond_float32_fail_and_others_do_not) {
  CHECK(overflows(Given(3, 1e38), 1.0));
  CHECK(!overflows(Given(3, 1e37), 1.0));
  Given outside(5, 1.0);
  outside.matrix[3] = outside.matrix[15] = -1e38;
  CHECK(overflows(outside, 1.0));
}

TEST(large_kernel_values_crash_on_no_instruction_set) {
  for_each_isa([] {
    for (const std::size_t n : {std::size_t{3}, std::size_t{75}, std::size_t{430}}) {
      for (const double unit : {1e30, 1e34, 1e36}) {
        Given given(n, 0.0);
        const auto x = normal(n, 3);
        for (std::size_t a = 0; a < n; ++a) {
          for (std::size_t b = 0; b < n; ++b) given.matrix[a * n + b] = unit * x[a] * x[b];
        }
        for (const double C : {1e-36, 1.0, 1e10}) {
          KernelStore store = given.store();
          const Solution s = run(store, given.problem(C), 1e-3, true, 20000);
          CHECK(std::isfinite(s.gap) && std::isfinite(s.objective));
          for (const double b : s.beta) CHECK(std::abs(b) <= C);
        }
      }
    }
  });
}

// p - K b of the start.
std::vector<double> start_gradient(KernelStore& store, const Problem& p) {
  NeverInterrupt never;
  std::vector<double> gradient = p.linear;
  shift_gradient(store, p.rows, p.start.data(), never, gradient.data());
  return gradient;
}

#if !defined(__SANITIZE_THREAD__)  // one thread, and it takes minutes there
// So many free variables that kernel rows are coarse; what that leaves in the gradient is mended,
// or rows in float32 take over.
TEST(coarse_rows_lead_to_the_same_answer) {
  const Data data(4800, 21);
  KernelStore store(points_source(DenseView<double>{data.x.data(), data.n, data.d},
                                  {KernelKind::Rbf, 20.0, 0.0, 1}),
                    kPlenty);
  for (const double C : {10.0, 1e4}) {
    Problem p = c_svc(data, C);
    for (std::size_t v = 0; v < data.n; v += 3) {  // at their bounds before long
      p.lower[v] *= 1e-6;
      p.upper[v] *= 1e-6;
    }
    // A start where as many are free as at the end.
    p.start = run(store, p, 1e-3).beta;
    for (double& b : p.start) b *= 0.9;
    Settings settings;
    NeverInterrupt never;
    for (const double tol : {1e-3, 1e-5}) {
      settings.tol = tol;
      settings.shrinking = true;
      SmoMemory memory;
      const Solution s = solve(store, p, settings, store.spare_bytes(), never, memory);
      CHECK(s.status == Status::Converged && s.gap < tol);
      const bool suffices = C < 100.0 || tol > 1e-4;
      CHECK(memory.active.coarse() == suffices);  // until that does not suffice
      Problem first = p;                          // with the free variables
      first.start_gradient = start_gradient(store, p);
      std::vector<std::int32_t> likely;
      for (std::size_t v = 0; v < data.n; ++v) {
        if (v % 3 != 0) likely.push_back(static_cast<std::int32_t>(v));
      }
      first.likely = likely;
      SmoMemory memory_of_first;
      const Solution t = solve(store, first, settings, store.spare_bytes(), never, memory_of_first);
      CHECK(t.status == Status::Converged && t.gap < tol);
      CHECK(memory_of_first.other_active.coarse() == suffices);
      settings.shrinking = false;
      const Solution plain = solve(store, p, settings, store.spare_bytes(), never);
      for (const Solution& found : {s, t}) {
        CHECK(std::abs(found.offset[0] - plain.offset[0]) < tol);
        CHECK(std::abs(found.objective - plain.objective) < tol * std::abs(plain.objective));
        for (std::size_t v = 0; v < data.n; ++v) {
          CHECK(std::abs(found.gradient[v] - plain.gradient[v]) < 5 * tol);
        }
      }
    }
  }
}

// A second sum whose variables are all dropped: rows could be coarse, but its iterations read them
// in float32.
TEST(rows_of_two_sums_are_never_coarse) {
  const Data data(4800, 21);
  KernelStore store(points_source(DenseView<double>{data.x.data(), data.n, data.d},
                                  {KernelKind::Rbf, 60.0, 0.0, 1}),
                    kPlenty);
  Problem p = c_svc(data, 10.0);
  const std::size_t split = 4500;
  for (std::size_t v = 0; v < data.n; ++v) {
    if (v % 8 >= 5 || v >= split) p.lower[v] = p.upper[v] = 0.0;
  }
  p.start = run(store, p, 1e-3).beta;
  for (double& b : p.start) b *= 0.9;
  p.start_gradient = start_gradient(store, p);
  p.split = split;
  Settings settings;
  NeverInterrupt never;
  SmoMemory memory;
  const Solution s = solve(store, p, settings, store.spare_bytes(), never, memory);
  CHECK(s.status == Status::Converged && s.gap < settings.tol);
  CHECK(memory.active.size() < split && !memory.active.coarse());
}
#endif

TEST(likely_variables_come_first_and_no_other_is_forgotten) {
  const Data data(900, 22);
  const auto store = data.store();
  const Problem all = c_svc(data, 20.0);
  const Solution full = run(*store, all, 1e-3);
  std::vector<std::int32_t> near;  // to changing
  std::vector<std::int32_t> random;
  std::mt19937 draw(23);
  for (std::size_t v = 0; v < data.n; ++v) {
    const double distance = std::abs(full.gradient[v] - full.offset[0]);
    if (distance < 0.1) near.push_back(static_cast<std::int32_t>(v));
    if (draw() % 2 == 0) random.push_back(static_cast<std::int32_t>(v));
  }
  const std::vector<std::int32_t> few = {3, 500, 899};
  NeverInterrupt never;
  Settings settings;
  for (const auto& likely : {near, random, few}) {
    CHECK(likely.size() < data.n);
    SmoMemory memory;  // the rows of likely variables are kept in it
    for (const std::size_t out : {0, 1, 2}) {
      Problem fold = all;
      for (std::size_t v = out; v < data.n; v += 5) fold.lower[v] = fold.upper[v] = 0.0;
      fold.start = average_start(fold, full);
      fold.start_gradient = start_gradient(*store, fold);
      fold.likely = likely;
      for (const double tol : {1e-3, 1e-5, 1e-9}) {  // the last in double precision, with all
        settings.tol = tol;
        const Solution s = solve(*store, fold, settings, store->spare_bytes(), never, memory);
        check_solution(data, fold, s, tol);
        CHECK(memory.other_active.size() == likely.size());
      }
    }
    settings.shrinking = false;
    SmoMemory other;
    Problem fold = all;
    fold.start = full.beta;
    fold.start_gradient = full.gradient;
    fold.likely = likely;
    settings.tol = 1e-4;
    check_solution(data, fold, solve(*store, fold, settings, 0, never, other), 1e-4);
    CHECK(other.other_active.size() == 0);
    settings.shrinking = true;
  }
}

TEST(a_start_at_the_solution_needs_no_iterations_and_a_near_one_few) {
  const Data data(400, 4);
  const auto store = data.store();
  Problem p = c_svc(data, 10.0);
  const Solution cold = run(*store, p, 1e-3);
  p.start = cold.beta;
  CHECK(run(*store, p, 1e-3).n_iter == 0);  // the gradient is computed
  p.start_gradient = cold.gradient;
  CHECK(run(*store, p, 1e-3).n_iter == 0);  // the gradient is given
  Problem near = c_svc(data, 10.1);
  near.start = cold.beta;
  const Solution seeded = run(*store, near, 1e-3);
  check_solution(data, near, seeded, 1e-3);
  CHECK(seeded.n_iter < cold.n_iter / 2);
}

TEST(rows_held_out_get_their_decision_values) {
  const Data data(200, 5);
  const auto store = data.store();
  Problem p = c_svc(data, 1.0);
  for (std::size_t v = 0; v < 40; ++v) p.lower[v] = p.upper[v] = 0.0;
  const Solution s = run(*store, p, 1e-6);
  auto kept = all_rows(data.n);
  kept.erase(kept.begin(), kept.begin() + 40);
  const Solution alone = run(*store, c_svc(data, 1.0, kept), 1e-6);
  CHECK(std::abs(s.objective - alone.objective) < 1e-6);
  for (std::size_t v = 0; v < 40; ++v) {
    CHECK(s.beta[v] == 0.0);
    double f = 0.0;
    for (std::size_t w = 0; w < data.n; ++w) f += s.beta[w] * data.k(v, w);
    CHECK(std::abs((p.linear[v] - s.gradient[v]) - f) < 1e-5);
  }
}

TEST(a_kink_gives_regression) {
  const Data data(150, 6);
  const auto store = data.store();
  for (const double C : {0.1, 1.0, 50.0}) {
    Problem p;
    p.rows = all_rows(data.n);
    for (std::size_t i = 0; i < data.n; ++i) p.linear.push_back(data.x[i * data.d]);
    p.lower.assign(data.n, -C);
    p.upper.assign(data.n, C);
    p.kink = 0.1;
    p.split = data.n;
    check_solution(data, p, run(*store, p, 1e-5), 1e-5);
  }
}

TEST(two_groups_keep_their_sums) {
  const Data data(200, 7);
  const auto store = data.store();
  Problem p;
  for (const double side : {1.0, -1.0}) {
    for (std::size_t i = 0; i < data.n; ++i) {
      if (data.y[i] == side) p.rows.push_back(static_cast<std::int32_t>(i));
    }
    if (side > 0) p.split = p.rows.size();
  }
  for (std::size_t v = 0; v < data.n; ++v) {
    const bool first = v < p.split;
    p.linear.push_back(0.0);
    p.lower.push_back(first ? 0.0 : -1.0);
    p.upper.push_back(first ? 1.0 : 0.0);
  }
  p.start.assign(data.n, 0.0);
  for (std::size_t v = 0; v < 30; ++v) p.start[v] = 1.0;
  for (std::size_t v = p.split; v < p.split + 30; ++v) p.start[v] = -1.0;
  check_solution(data, p, run(*store, p, 1e-6), 1e-6);
}

TEST(duplicate_rows_and_tiny_problems) {
  Data data(60, 8);
  for (std::size_t i = 30; i < 60; ++i) {  // every row twice, half of them with the other label
    for (std::size_t c = 0; c < data.d; ++c) data.x[i * data.d + c] = data.x[(i - 30) * data.d + c];
    data.y[i] = i % 2 == 0 ? data.y[i - 30] : -data.y[i - 30];
  }
  const auto store = data.store();
  for (const double C : {1.0, 1e6}) {
    const Problem p = c_svc(data, C);
    check_solution(data, p, run(*store, p, 1e-3), 1e-3);
  }
  std::size_t positive = 0;
  std::size_t negative = 0;
  while (data.y[positive] < 0.0) ++positive;
  while (data.y[negative] > 0.0) ++negative;
  const Problem two =
      c_svc(data, 1.0, {static_cast<std::int32_t>(positive), static_cast<std::int32_t>(negative)});
  check_solution(data, two, run(*store, two, 1e-6), 1e-6);
}

TEST(every_way_to_end_has_its_status) {
  const Data data(300, 9);
  const auto store = data.store();
  const Problem p = c_svc(data, 100.0);
  const Solution limited = run(*store, p, 1e-6, true, 5);
  CHECK(limited.status == Status::MaxIter);
  CHECK(limited.n_iter == 5);
  CHECK(std::abs(judge(data, p, limited.beta).gap - limited.gap) < 1e-3);
  StopFlag stop;
  stop.raise();
  Settings settings;
  CHECK(solve(*store, p, settings, kPlenty, stop).status == Status::Interrupted);
  const Solution hopeless = run(*store, p, 1e-300);
  CHECK(hopeless.status == Status::Stalled);
  CHECK(hopeless.gap < 1e-9);
}

TEST(iterations_do_not_allocate) {
  const Data data(300, 10);
  const auto store = data.store();
  const Problem p = c_svc(data, 100.0);
  run(*store, p, 1e-6);  // evaluates the kernel rows
  const auto allocations = [&](std::int64_t max_iter) {
    const std::size_t before = g_allocations;
    run(*store, p, 1e-9, false, max_iter);  // dropping variables does, a few times a solve
    return g_allocations - before;
  };
  allocations(10);
  CHECK(allocations(300) == allocations(1000));  // what windows are kept in is there by then
}

std::vector<const Problem*> all_of(const std::vector<Problem>& problems) {
  std::vector<const Problem*> pointers;
  for (const Problem& problem : problems) pointers.push_back(&problem);
  return pointers;
}

TEST(many_problems_on_threads_are_the_same) {
  const Data data(400, 11);
  std::vector<Problem> problems;
  for (const double C : {0.1, 1.0, 3.0, 10.0, 30.0}) problems.push_back(c_svc(data, C));
  Settings settings;
  settings.tol = 1e-6;
  NeverInterrupt never;
  const auto alone = data.store();
  const auto serial = solve_many(*alone, all_of(problems), settings, 1, false, never);
  for (const std::size_t budget : {std::size_t{1}, kPlenty}) {
    const auto store = data.store(budget);
    const auto threaded = solve_many(*store, all_of(problems), settings, 4, false, never);
    for (std::size_t k = 0; k < problems.size(); ++k) {
      check_solution(data, problems[k], threaded[k], 1e-6);
      CHECK(std::abs(threaded[k].objective - serial[k].objective) <=
            1e-7 * std::abs(serial[k].objective));
    }
  }
  StopFlag stop;
  stop.raise();
  for (const Solution& s : solve_many(*alone, all_of(problems), settings, 4, false, stop)) {
    CHECK(s.status == Status::Interrupted || s.status == Status::Converged);
  }
  CHECK(solve_many(*alone, {}, settings, 4, false, never).empty());
}

TEST(entries_that_nobody_needs_are_forgotten) {
  Data data(400, 12);
  for (std::size_t i = 0; i < data.n; ++i) data.y[i] = (i / 100) % 2 == 0 ? 1.0 : -1.0;
  std::vector<Problem> pairs;  // blocks of 100 rows: (0, 1), (0, 3), (2, 1), (2, 3)
  for (const std::int32_t first : {0, 200}) {
    for (const std::int32_t second : {100, 300}) {
      std::vector<std::int32_t> rows(200);
      std::iota(rows.begin(), rows.begin() + 100, first);
      std::iota(rows.begin() + 100, rows.end(), second);
      pairs.push_back(c_svc(data, 1.0, rows));
    }
  }
  Settings settings;
  settings.tol = 1e-6;
  NeverInterrupt never;
  for (const std::size_t threads : {1, 3}) {
    for (const bool forget : {false, true}) {
      KernelStore store(points_source(DenseView<double>{data.x.data(), data.n, data.d},
                                      {KernelKind::Rbf, 0.5, 0.0, 1}),
                        kPlenty, {0, 100, 200, 300}, 0);
      const auto solutions = solve_many(store, all_of(pairs), settings, threads, forget, never);
      for (std::size_t k = 0; k < pairs.size(); ++k) {
        check_solution(data, pairs[k], solutions[k], 1e-6);
      }
      std::size_t rows_left = 0;
      for (std::int32_t row = 0; row < 400; ++row) {
        for (std::size_t k = 0; k < 4; ++k) rows_left += store.has(row, std::uint64_t{1} << k);
      }
      CHECK((rows_left == 0) == forget);
      const std::size_t before = store.entries_evaluated();
      const auto again = solve_many(store, {&pairs[1]}, settings, 1, false, never);
      CHECK(std::abs(again[0].objective - solutions[1].objective) < 1e-6);
      CHECK((store.entries_evaluated() > before) == forget);
    }
  }
}

}  // namespace
