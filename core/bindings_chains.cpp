// Chains of problems for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "cells.hpp"
#include "chains.hpp"
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

std::vector<std::vector<Solution>> solve_chains_from_python(
    const nb::typed<nb::list, KernelStore>& stores, const nb::typed<nb::list, Problem>& problems,
    const nb::typed<nb::list, Vector<double>>& bounds,
    const std::vector<std::vector<double>>& factors, double tol, std::int64_t max_iter,
    bool shrinking, std::size_t threads, bool cold, nb::object finished) {
  const std::size_t count = stores.size();
  if (problems.size() != count || bounds.size() != count || factors.size() != count) {
    throw std::invalid_argument("stores, problems, bounds and factors have different lengths");
  }
  std::vector<Chain> chains;
  std::vector<Vector<double>> arrays;  // as long as they are used
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
        "factors"_a, "tol"_a = 1e-3, "max_iter"_a = -1, "shrinking"_a = true, "threads"_a = 1,
        "cold"_a = false, "finished"_a = nb::none(),
        "Solves each problem with its bounds, one for each row of its store, times each of its "
        "factors in turn, which must not fall; each starts from the one before, or cold. Returns "
        "the solutions, or gives each to `finished(chain, step, solution)`, which stops the work "
        "by returning True, and returns nothing. Ctrl-C stops it.");
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
