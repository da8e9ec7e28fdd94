// Chains of problems for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "cells.hpp"
#include "chains.hpp"
#include "kernel_sums.hpp"
#include "python_interrupt.hpp"

namespace onefit {

using namespace nb::literals;

namespace {

// Calls a function of Python with what a step or line has come to; whether it stops the work. What
// it raises is kept.
template <class Call>
bool ask(std::optional<nb::python_error>& raised, const Call& call) {
  const nb::gil_scoped_acquire gil;
  try {
    return is_true(call());
  } catch (nb::python_error& error) {
    raised.emplace(std::move(error));
    return true;
  }
}

// Where a chain goes on: the factor, coefficients and gradients of the step before.
using Before = std::tuple<double, Vector<double>, Vector<double>>;

Solution solution_of(const Problem& problem, const Vector<double>& beta,
                     const Vector<double>& gradient) {
  if (beta.shape(0) != problem.size() || gradient.shape(0) != problem.size()) {
    throw std::invalid_argument("a solution must have an entry for each variable of its problem");
  }
  Solution solution;
  solution.beta.assign(beta.data(), beta.data() + beta.shape(0));
  solution.gradient.assign(gradient.data(), gradient.data() + gradient.shape(0));
  return solution;
}

std::vector<std::vector<Solution>> solve_chains_from_python(
    const nb::typed<nb::list, KernelStore>& stores, const nb::typed<nb::list, Problem>& problems,
    const nb::typed<nb::list, Vector<double>>& bounds,
    const std::vector<std::vector<double>>& factors,
    const nb::typed<nb::list, std::optional<Before>>& before, double tol, std::int64_t max_iter,
    bool shrinking, std::size_t threads, bool cold, nb::object finished) {
  const std::size_t count = stores.size();
  if (problems.size() != count || bounds.size() != count || factors.size() != count ||
      before.size() != count) {
    throw std::invalid_argument(
        "stores, problems, bounds, factors and before have different lengths");
  }
  std::vector<Chain> chains;
  std::vector<Vector<double>> arrays;  // as long as they are used
  std::vector<std::unique_ptr<Solution>> starts;
  for (std::size_t k = 0; k < count; ++k) {
    KernelStore& store = nb::cast<KernelStore&>(stores[k]);
    const Problem& problem = nb::cast<const Problem&>(problems[k]);
    arrays.push_back(nb::cast<Vector<double>>(bounds[k]));
    check_rows(store, problem.rows);
    if (arrays.back().shape(0) != store.size()) {
      throw std::invalid_argument("bounds must have an entry for each row of the store");
    }
    if (!std::is_sorted(factors[k].begin(), factors[k].end())) {
      throw std::invalid_argument("the factors of a chain must not fall");
    }
    chains.push_back({&store, &problem, {arrays.back().data(), store.size()}, factors[k]});
    if (before[k].is_none()) continue;
    const auto [factor, beta, gradient] = nb::cast<Before>(before[k]);
    starts.push_back(std::make_unique<Solution>(solution_of(problem, beta, gradient)));
    chains.back().before = starts.back().get();
    chains.back().before_factor = factor;
  }
  Settings settings;
  settings.tol = tol;
  settings.max_iter = max_iter;
  settings.shrinking = shrinking;
  std::vector<std::vector<Solution>> solutions(count);
  std::optional<nb::python_error> raised;
  Finished take;
  if (finished.is_none()) {
    for (std::size_t k = 0; k < count; ++k) solutions[k].resize(factors[k].size());
    take = [&](std::size_t chain, std::size_t step, Solution&& solution) {
      solutions[chain][step] = std::move(solution);
      return false;
    };
  } else {
    take = [&](std::size_t chain, std::size_t step, Solution&& solution) {
      return ask(raised, [&] { return finished(chain, step, nb::cast(std::move(solution))); });
    };
  }
  PythonInterrupt interrupt{nb::object(nb::none())};
  {
    const nb::gil_scoped_release release;
    solve_chains(chains, cold, settings, threads, take, interrupt);
  }
  if (raised) throw nb::python_error(std::move(*raised));
  interrupt.rethrow();
  return solutions;
}

Solution solve_on_from_python(KernelStore& store, const Problem& problem,
                              const Vector<double>& bounds, double factor, const Solution& solution,
                              double tol, std::int64_t max_iter, bool shrinking,
                              std::size_t threads) {
  check_rows(store, problem.rows);
  if (bounds.shape(0) != store.size()) {
    throw std::invalid_argument("bounds must have an entry for each row of the store");
  }
  if (solution.beta.size() != problem.size()) {
    throw std::invalid_argument("a solution must have an entry for each variable of its problem");
  }
  Settings settings = make_settings(tol, max_iter, shrinking);
  settings.threads = threads;
  PythonInterrupt interrupt{nb::object(nb::none())};
  Solution further;
  {
    const nb::gil_scoped_release release;
    const TrainedPart part(store, problem, {bounds.data(), bounds.shape(0)});
    further = part.on_all_rows(solve_on(store, part, factor, part.of_part(solution), settings,
                                        store.spare_bytes(), interrupt));
  }
  interrupt.rethrow();
  return further;
}

Block kernel_sums_from_python(KernelStore& store,
                              const nb::typed<nb::list, Vector<std::int32_t>>& rows,
                              const nb::typed<nb::list, Vector<double>>& coef,
                              const Vector<std::int32_t>& queries) {
  if (rows.size() != coef.size()) {
    throw std::invalid_argument("rows and coef have different lengths");
  }
  std::vector<Vector<std::int32_t>> of_rows;  // as long as they are used
  std::vector<Vector<double>> of_coef;
  std::vector<Combination> combinations;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    of_rows.push_back(nb::cast<Vector<std::int32_t>>(rows[k]));
    of_coef.push_back(nb::cast<Vector<double>>(coef[k]));
    if (of_rows.back().shape(0) != of_coef.back().shape(0)) {
      throw std::invalid_argument("there must be a coefficient for each row");
    }
    combinations.push_back(
        {{of_rows.back().data(), of_rows.back().shape(0)}, of_coef.back().data()});
    check_rows(store, combinations.back().rows);
  }
  const std::span<const std::int32_t> asked{queries.data(), queries.shape(0)};
  check_rows(store, asked);
  auto* sums = new std::vector<double>(combinations.size() * asked.size());
  const nb::capsule owner(sums,
                          [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  {
    const nb::gil_scoped_release release;
    kernel_sums(store, combinations, asked, sums->data());
  }
  return {sums->data(), {combinations.size(), asked.size()}, owner};
}

nb::ndarray<nb::numpy, double, nb::ndim<3>> values_of(Said& said, const Line& line) {
  auto* kept = new std::vector<double>(std::move(said.values));
  const nb::capsule owner(kept,
                          [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return {kept->data(), {line.factors.size(), line.pairs.size(), line.queries.size()}, owner};
}

void check_line(const Line& line) {
  const std::vector<std::size_t>& starts = line.starts;
  const bool sorted = starts.size() > 2 && std::is_sorted(starts.begin(), starts.end());
  if (!sorted || starts[0] != 0 || starts.back() != line.store->size()) {
    throw std::invalid_argument("starts does not fit to the store");
  }
  std::size_t pair = 0;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    for (std::size_t j = i + 1; j + 1 < starts.size(); ++j, ++pair) {
      if (pair >= line.pairs.size() ||
          line.pairs[pair]->size() != starts[i + 1] - starts[i] + starts[j + 1] - starts[j]) {
        throw std::invalid_argument("there must be a problem for each pair of classes");
      }
      check_rows(*line.store, line.pairs[pair]->rows);
    }
  }
  if (pair != line.pairs.size()) {
    throw std::invalid_argument("there must be a problem for each pair of classes");
  }
  if (line.bounds.size() != line.store->size()) {
    throw std::invalid_argument("bounds must have an entry for each row of the store");
  }
  if (line.codes.size() != line.queries.size()) {
    throw std::invalid_argument("queries and codes have different lengths");
  }
  check_rows(*line.store, line.queries);
  if (!std::is_sorted(line.factors.begin(), line.factors.end())) {
    throw std::invalid_argument("the factors of a chain must not fall");
  }
}

void solve_cells_from_python(const nb::typed<nb::list, KernelStore>& stores,
                             const nb::typed<nb::list, nb::typed<nb::list, Problem>>& problems,
                             const std::vector<std::size_t>& starts,
                             const nb::typed<nb::list, Vector<double>>& bounds,
                             const std::vector<std::vector<double>>& factors,
                             const nb::typed<nb::list, Vector<std::int32_t>>& queries,
                             const nb::typed<nb::list, Vector<std::int32_t>>& codes, double share,
                             double tightest, double tol, std::int64_t max_iter, bool shrinking,
                             std::size_t threads, bool cold, nb::object finished) {
  const std::size_t count = stores.size();
  if (problems.size() != count || bounds.size() != count || factors.size() != count ||
      queries.size() != count || codes.size() != count) {
    throw std::invalid_argument(
        "stores, problems, bounds, factors, queries and codes have different lengths");
  }
  std::vector<Line> lines;
  std::vector<Vector<double>> of_rows;  // as long as they are used
  std::vector<Vector<std::int32_t>> of_queries;
  for (std::size_t l = 0; l < count; ++l) {
    std::vector<const Problem*> pairs;
    for (const nb::handle problem : nb::cast<nb::list>(problems[l])) {
      pairs.push_back(&nb::cast<const Problem&>(problem));
    }
    of_rows.push_back(nb::cast<Vector<double>>(bounds[l]));
    const auto asked = nb::cast<Vector<std::int32_t>>(queries[l]);
    const auto truth = nb::cast<Vector<std::int32_t>>(codes[l]);
    lines.push_back({&nb::cast<KernelStore&>(stores[l]),
                     std::move(pairs),
                     starts,
                     {of_rows.back().data(), of_rows.back().shape(0)},
                     factors[l],
                     {asked.data(), asked.shape(0)},
                     {truth.data(), truth.shape(0)}});
    of_queries.push_back(asked);
    of_queries.push_back(truth);
    check_line(lines.back());
  }
  Settings settings;
  settings.tol = tol;
  settings.max_iter = max_iter;
  settings.shrinking = shrinking;
  std::optional<nb::python_error> raised;
  const auto take = [&](Said&& said) {
    return ask(raised, [&] {
      const Line& line = lines[said.line];
      return finished(said.line, values_of(said, line), nb::cast(said.right), nb::cast(said.n_iter),
                      nb::cast(said.finite), nb::cast(std::move(said.unfinished)));
    });
  };
  PythonInterrupt interrupt{nb::object(nb::none())};
  {
    const nb::gil_scoped_release release;
    solve_cells(lines, cold, settings, {share, tightest}, threads, take, interrupt);
  }
  if (raised) throw nb::python_error(std::move(*raised));
  interrupt.rethrow();
}

}  // namespace

void bind_chains(nb::module_& m) {
  m.def("solve_chains", &solve_chains_from_python, "stores"_a, "problems"_a, "bounds"_a,
        "factors"_a, "before"_a, "tol"_a = 1e-3, "max_iter"_a = -1, "shrinking"_a = true,
        "threads"_a = 1, "cold"_a = false, "finished"_a = nb::none(),
        "Solves each problem with its bounds, one for each row of its store, times each of its "
        "factors in turn, which must not fall; each starts from the one before, or cold. Rows "
        "whose bound is 0 have no part in it: their coefficients are 0, their gradients NaN. The "
        "first step starts from `before`, the factor, coefficients and gradients of another "
        "solution, or cold where that is None. Returns "
        "the solutions, or gives each to `finished(chain, step, solution)`, which stops the work "
        "by returning True, and returns nothing. Ctrl-C stops it.");
  m.def("solve_on", &solve_on_from_python, "store"_a, "problem"_a, "bounds"_a, "factor"_a,
        "solution"_a, "tol"_a, "max_iter"_a = -1, "shrinking"_a = true, "threads"_a = 1,
        "Solves a step of a chain to another tolerance, from its solution.");
  m.def("kernel_sums", &kernel_sums_from_python, "store"_a, "rows"_a, "coef"_a, "queries"_a,
        "For each list of rows and their coefficients, the sum of coefficients times kernel values "
        "for each query. Terms are added in the order of the store, and those of 0 leave no trace: "
        "equal queries get equal sums, to the last bit.");
  m.def("solve_cells", &solve_cells_from_python, "stores"_a, "problems"_a, "starts"_a, "bounds"_a,
        "factors"_a, "queries"_a, "codes"_a, "share"_a, "tightest"_a, "tol"_a = 1e-3,
        "max_iter"_a = -1, "shrinking"_a = true, "threads"_a = 1, "cold"_a = false,
        "finished"_a = nb::none(),
        "Solves the problems of all pairs of classes of C-SVC, for each store with its bounds and "
        "factors, as solve_chains does, and says what the steps come to for the rows in `queries`: "
        "`finished(number, values, right, n_iter, finite, unfinished)` gets the values of each "
        "step, pair and query, how many queries of each step get the class in `codes` by the "
        "votes, the iterations of each step, whether its values are finite, and, if there are any, "
        "the solutions of each step that did not converge. Steps are solved on where more than a "
        "`share` of their values are "
        "smaller than `tol`, and not below `tightest`. Class k has the rows from starts[k] on.");
}

}  // namespace onefit
