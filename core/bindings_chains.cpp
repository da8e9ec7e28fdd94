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
#include "chains.hpp"
#include "python_interrupt.hpp"

namespace onefit {

using namespace nb::literals;

namespace {

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
      const nb::gil_scoped_acquire gil;
      try {
        return nb::cast<bool>(finished(chain, step, nb::cast(std::move(solution))));
      } catch (nb::python_error& error) {
        raised.emplace(std::move(error));
        return true;
      }
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

}  // namespace

void bind_chains(nb::module_& m) {
  m.def("solve_chains", &solve_chains_from_python, "stores"_a, "problems"_a, "bounds"_a,
        "factors"_a, "tol"_a = 1e-3, "max_iter"_a = -1, "shrinking"_a = true, "threads"_a = 1,
        "cold"_a = false, "finished"_a = nb::none(),
        "Solves each problem with its bounds, one for each row of its store, times each of its "
        "factors in turn, which must not fall; each starts from the one before, or cold. Returns "
        "the solutions, or gives each to `finished(chain, step, solution)`, which stops the work "
        "by returning True, and returns nothing. Ctrl-C stops it.");
}

}  // namespace onefit
