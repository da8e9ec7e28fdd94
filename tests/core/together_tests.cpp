// Problems that share memory, take turns with others or are solved in one call, against the same
// problems solved alone: to the bit.
#include <algorithm>
#include <memory>
#include <random>

#include "check.hpp"
#include "folds.hpp"
#include "kkt.hpp"
#include "smo.hpp"
#include "smo_memory.hpp"
#include "together.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;
constexpr std::size_t kCols = 3;

struct Data {
  std::size_t n;
  std::vector<double> x;

  // A third of the rows, then another third and so on are classes.
  explicit Data(std::size_t rows, unsigned seed) : n(rows), x(normal(rows * kCols, seed)) {
    for (std::size_t i = 0; i < n; ++i) x[i * kCols] += 0.8 * static_cast<double>(3 * i / n);
  }
  std::unique_ptr<KernelStore> store(std::size_t budget = kPlenty,
                                     std::vector<std::size_t> starts = {0},
                                     std::size_t packed = kPackedBytes) const {
    return std::make_unique<KernelStore>(
        points_source(DenseView<double>{x.data(), n, kCols}, {KernelKind::Rbf, 0.4, 0.0, 1}),
        budget, std::move(starts), packed);
  }
};

// A C-SVC, or with a kink an epsilon-SVR, of some rows; every `held_out`-th takes no part.
Problem problem_of(const Data& data, std::vector<std::int32_t> rows, double C, double kink,
                   std::size_t held_out) {
  Problem p;
  p.rows = std::move(rows);
  p.kink = kink;
  p.split = p.rows.size();
  for (std::size_t v = 0; v < p.rows.size(); ++v) {
    const bool first = v < p.rows.size() / 2;
    const double c = held_out > 0 && v % held_out == 1 ? 0.0 : C;
    const auto row = static_cast<std::size_t>(p.rows[v]);
    p.linear.push_back(kink > 0.0 ? data.x[row * kCols + 1] : first ? 1.0 : -1.0);
    p.lower.push_back(kink > 0.0 || !first ? -c : 0.0);
    p.upper.push_back(kink > 0.0 || first ? c : 0.0);
  }
  return p;
}

std::vector<std::int32_t> run_of(std::int32_t first, std::int32_t last) {
  std::vector<std::int32_t> rows;
  for (std::int32_t row = first; row < last; ++row) rows.push_back(row);
  return rows;
}

// Problems of all kinds on rows of the data: in runs and scattered, small and large enough to
// shrink, and some twice in a row.
std::vector<Problem> some_problems(const Data& data, unsigned seed, std::size_t count) {
  const auto n = static_cast<std::int32_t>(data.n);
  std::mt19937 random(seed);
  std::vector<Problem> problems;
  std::vector<std::int32_t> rows;
  for (std::size_t k = 0; k < count; ++k) {
    if (k % 3 != 2) {
      const auto first = static_cast<std::int32_t>(random() % static_cast<unsigned>(n / 2));
      rows = run_of(first, random() % 3 == 0 ? n : first + n / 3);
      if (random() % 3 == 0) std::shuffle(rows.begin(), rows.end(), random);
    }
    const double kink = random() % 4 == 0 ? 0.125 : 0.0;
    problems.push_back(problem_of(data, rows, random() % 2 == 0 ? 1.0 : 50.0, kink, random() % 7));
  }
  return problems;
}

void check_equal(const Solution& a, const Solution& b) {
  CHECK(a.status == b.status);
  CHECK(a.n_iter == b.n_iter);
  CHECK(a.beta == b.beta);
  CHECK(a.gradient == b.gradient);
  CHECK(a.offset[0] == b.offset[0]);
  CHECK(a.objective == b.objective && a.gap == b.gap && a.free_rows == b.free_rows);
}

// Stores of every kind: in one piece, in blocks, and with rows that make room for others.
template <class Body>
void on_every_store(const Data& data, const Body& body) {
  body(*data.store());
  body(*data.store(kPlenty, {0, data.n / 3, data.n / 2}, 0));
  body(*data.store(std::size_t{1} << 18));
}

TEST(memory_of_other_problems_changes_nothing) {
  const Data data(700, 1);
  NeverInterrupt never;
  const std::vector<Problem> problems = some_problems(data, 2, 24);
  on_every_store(data, [&](KernelStore& store) {
    SmoMemory memory;
    for (const Problem& problem : problems) {
      const Solution kept = solve(store, problem, {}, store.spare_bytes(), never, memory);
      check_equal(kept, solve(store, problem, {}, store.spare_bytes(), never));
    }
  });
}

TEST(memory_knows_what_a_store_has_forgotten) {
  const Data data(300, 3);
  const std::unique_ptr<KernelStore> store = data.store(kPlenty, {0, 100, 200}, 0);
  NeverInterrupt never;
  SmoMemory memory;
  const Problem problem = problem_of(data, run_of(0, 200), 1.0, 0.0, 0);
  const Solution before = solve(*store, problem, {}, 0, never, memory);
  store->forget(0, 1);
  store->forget(0, 0);
  // The memory of the forgotten blocks is written to by others.
  const Problem other = problem_of(data, run_of(100, 300), 1.0, 0.0, 0);
  solve(*store, other, {}, 0, never);
  check_equal(solve(*store, problem, {}, 0, never, memory), before);
}

TEST(solves_that_take_turns_end_as_they_do_alone) {
  const Data data(700, 4);
  NeverInterrupt never;
  const std::vector<Problem> problems = some_problems(data, 5, 16);
  Settings tight;
  tight.tol = 1e-7;  // goes on in double precision
  Settings limited;
  limited.max_iter = 37;
  for_each_isa([&] {
    on_every_store(data, [&](KernelStore& store) {
      for (std::size_t k = 0; k + 1 < problems.size(); ++k) {
        SmoMemory memories[2];
        const Settings& of_a = k % 5 == 4 ? tight : Settings{};
        const Settings& of_b = k % 4 == 3 ? limited : k % 5 == 4 ? tight : Settings{};
        StepwiseSolve a(store, problems[k], of_a, 0, never, memories[0]);
        StepwiseSolve b(store, problems[k + 1], of_b, 0, never, memories[1]);
        while (!a.has_ended() && !b.has_ended()) StepwiseSolve::step(a, b);
        while (!a.has_ended()) a.step();
        while (!b.has_ended()) b.step();
        check_equal(a.take(), solve(store, problems[k], of_a, 0, never));
        check_equal(b.take(), solve(store, problems[k + 1], of_b, 0, never));
      }
    });
  });
}

TEST(gradients_shift_with_few_slots_for_rows) {
  // Rows that are scattered are copied into slots, of which there are fewer than rows: those of one
  // sum must not take each other's place, whichever are there already.
  const Data data(120, 6);
  const std::unique_ptr<KernelStore> store = data.store();
  std::vector<std::int32_t> rows;
  for (std::int32_t row = 0; row < 120; row += 2) rows.push_back(row);
  NeverInterrupt never;
  ActiveSet few;
  few.set(*store, rows, rows.size(), 0);
  few.note_rows();
  std::mt19937 random(7);
  for (int turn = 0; turn < 50; ++turn) {
    std::vector<std::size_t> positions;
    for (std::size_t p = 0; p < rows.size(); ++p) {
      if (random() % 4 == 0) positions.push_back(p);
    }
    const std::vector<double> coef = normal(positions.size(), static_cast<unsigned>(turn));
    std::vector<double> sum(rows.size(), 0.0);
    std::vector<double> expected(rows.size(), 0.0);
    CHECK(add_rows(few, positions, coef, 1, never, sum.data()));
    for (std::size_t k = 0; k < positions.size(); ++k) {
      const HeldRow row = store->hold(rows[positions[k]], 1, {}, 1);
      for (std::size_t p = 0; p < rows.size(); ++p) {
        expected[p] += coef[k] * static_cast<double>(row.block(0)[rows[p]]);
      }
    }
    for (std::size_t p = 0; p < rows.size(); ++p) CHECK(std::abs(sum[p] - expected[p]) < 1e-12);
  }
}

// ---- folds --------------------------------------------------------------------------------------

// Bounds of folds one after another; fold f holds out every row i with i % count == f.
std::vector<double> bounds_of_folds(const Data& data, std::size_t count, double C) {
  std::vector<double> bounds(count * data.n, C);
  for (std::size_t i = 0; i < data.n; ++i) bounds[(i % count) * data.n + i] = 0.0;
  return bounds;
}

std::vector<Problem> pairs_of(const Data& data, double C) {
  const auto third = static_cast<std::int32_t>(data.n / 3);
  std::vector<Problem> pairs;
  for (std::int32_t i = 0; i < 3; ++i) {
    for (std::int32_t j = i + 1; j < 3; ++j) {
      std::vector<std::int32_t> rows = run_of(i * third, (i + 1) * third);
      for (const std::int32_t row : run_of(j * third, (j + 1) * third)) rows.push_back(row);
      pairs.push_back(problem_of(data, rows, C, 0.0, 0));
    }
  }
  return pairs;
}

TEST(a_fold_that_loses_no_coefficient_has_the_solution_of_all_rows) {
  const Data data(300, 8);
  const std::unique_ptr<KernelStore> store = data.store();
  NeverInterrupt never;
  Settings settings;
  const Problem all = pairs_of(data, 1.0)[0];
  const Solution full = solve(*store, all, settings, 0, never);
  std::vector<double> c(data.n, 1.0);
  std::size_t row_of_zero = 0;
  std::size_t row_of_one = 0;
  for (std::size_t v = 0; v < all.size(); ++v) {
    const auto row = static_cast<std::size_t>(all.rows[v]);
    if (full.beta[v] == 0.0) {
      row_of_zero = row;
    } else {
      row_of_one = row;
    }
  }
  const auto same = [&](const Solution& solved) {
    return has_same_solution(with_bounds(all, c), solved, settings.tol);
  };
  c[row_of_zero] = 0.0;
  CHECK(same(full));
  const auto solved = solve_folds(*store, {{&all, c, &full}}, true, settings, 1, never);
  CHECK(solved[0].n_iter == 0 && solved[0].status == Status::Converged);
  CHECK(solved[0].beta == full.beta && solved[0].gradient == full.gradient);
  CHECK(solved[0].offset[0] == full.offset[0]);
  // What cold iterations on such a fold come to.
  const Solution cold = solve(*store, with_bounds(all, c), settings, 0, never);
  CHECK(std::abs(cold.objective - full.objective) <
        settings.tol * (1.0 + std::abs(full.objective)));
  CHECK(std::abs(cold.offset[0] - full.offset[0]) < 2.0 * settings.tol);

  // Not without a row that has a coefficient, nor with room where there was none, nor from a solve
  // that did not end, or whose offset is not unique.
  c[row_of_one] = 0.0;
  CHECK(!same(full));
  std::fill(c.begin(), c.end(), 2.0);
  CHECK(!same(full));
  std::fill(c.begin(), c.end(), 1.0);
  CHECK(same(full));
  Solution other = full;
  other.status = Status::MaxIter;
  CHECK(!same(other));
  other = full;
  other.free_rows = false;
  CHECK(!same(other));
  settings.tol = full.gap / 2;
  CHECK(!same(full));
}

TEST(folds_in_one_call_are_those_solved_alone) {
  const Data data(240, 9);
  NeverInterrupt never;
  const Settings settings;
  for (const double C : {1.0, 1e-6}) {  // with free rows and without
    const std::vector<Problem> pairs = pairs_of(data, C);
    const std::vector<double> bounds = bounds_of_folds(data, 6, C);
    const std::unique_ptr<KernelStore> store = data.store();
    std::vector<Solution> full;
    std::vector<const Problem*> problems;
    for (const Problem& pair : pairs) {
      problems.push_back(&pair);
      full.push_back(solve(*store, pair, settings, 0, never));
    }
    std::size_t without = 0;
    for (const bool seeded : {false, true}) {
      std::vector<const Solution*> solved;
      for (const Solution& s : full) solved.push_back(seeded ? &s : nullptr);
      for (const std::size_t threads : {1, 3}) {
        const std::vector<FoldPaths*> no_paths(problems.size(), nullptr);
        const FoldSolutions found =
            solve_together(*store, problems, bounds, solved, no_paths, settings, threads, never);
        CHECK(found.n_folds() == 6 && found.n_problems() == pairs.size());
        for (std::size_t k = 0; k < found.size(); ++k) {
          const std::size_t p = k % pairs.size();
          const std::span<const double> c(&bounds[k / pairs.size() * data.n], data.n);
          const auto alone = [&](const Solution* from) {
            return solve_folds(*store, {{problems[p], c, from}}, true, settings, 1, never)[0];
          };
          Solution expected = alone(solved[p]);
          std::int64_t spent = expected.n_iter;
          without += expected.free_rows ? 0 : 1;
          if (seeded && !expected.free_rows) {
            expected = alone(nullptr);
            spent += expected.n_iter;
          }
          check_equal(found.whole(k), expected);
          CHECK(found[k].spent == spent);
        }
        // Pair by pair, and put together.
        std::vector<FoldSolutions> parts;
        for (std::size_t p = 0; p < pairs.size(); ++p) {
          parts.push_back(solve_together(*store, {problems[p]}, bounds, {solved[p]}, {nullptr},
                                         settings, 1, never));
        }
        const FoldSolutions whole = joined(std::move(parts));
        CHECK(whole.n_folds() == 6 && whole.n_problems() == pairs.size());
        for (std::size_t k = 0; k < whole.size(); ++k) {
          check_equal(whole.whole(k), found.whole(k));
          CHECK(whole[k].spent == found[k].spent);
        }
      }
    }
    CHECK((without > 0) == (C < 1.0));
  }
}

TEST(folds_without_a_class_or_without_any_row) {
  const Data data(150, 10);
  const std::unique_ptr<KernelStore> store = data.store();
  NeverInterrupt never;
  const std::vector<Problem> pairs = pairs_of(data, 1.0);
  std::vector<const Problem*> problems;
  std::vector<Solution> full;
  for (const Problem& pair : pairs) {
    problems.push_back(&pair);
    full.push_back(solve(*store, pair, {}, 0, never));
  }
  const std::vector<const Solution*> solved = {&full[0], &full[1], &full[2]};
  std::vector<double> bounds(2 * data.n, 1.0);
  std::fill_n(bounds.begin(), data.n / 3, 0.0);  // the first fold has no row of the first class
  std::fill_n(bounds.begin() + static_cast<std::ptrdiff_t>(data.n), data.n, 0.0);
  const std::vector<FoldPaths*> no_paths(problems.size(), nullptr);
  const FoldSolutions found =
      solve_together(*store, problems, bounds, solved, no_paths, {}, 1, never);
  for (std::size_t k = 0; k < found.size(); ++k) {
    CHECK(found[k].ends.status == Status::Converged);
    const bool empty = k >= 3 || k < 2;  // only the pair of the two other classes has a coefficient
    CHECK(empty == std::ranges::all_of(found[k].beta, [](double b) { return b == 0.0; }));
  }
}

}  // namespace
