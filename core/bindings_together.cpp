// All problems of all folds in one call, for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "python_interrupt.hpp"
#include "together.hpp"

namespace onefit {

using namespace nb::literals;

namespace {

using Solved = nb::typed<nb::list, std::optional<Solution>>;
using Paths = nb::typed<nb::list, std::optional<FoldPaths>>;

FoldSolutions solve_from_python(KernelStore& store, const Problems& list,
                                const Matrix<double>& bounds, const Solved& solutions,
                                const std::optional<Paths>& paths, double tol,
                                std::int64_t max_iter, bool shrinking, std::size_t threads) {
  const std::vector<const Problem*> problems = problems_in(list, store);
  if (problems.empty() || bounds.shape(0) == 0) {
    throw std::invalid_argument("there must be problems, and bounds of a fold");
  }
  if (bounds.shape(1) != store.size()) {
    throw std::invalid_argument("bounds must have an entry for each row of the store");
  }
  if (solutions.size() != problems.size() || (paths && paths->size() != problems.size())) {
    throw std::invalid_argument("problems, solutions and paths have different lengths");
  }
  std::vector<const Solution*> solved;
  for (std::size_t k = 0; k < problems.size(); ++k) {
    solved.push_back(solutions[k].is_none() ? nullptr : &nb::cast<const Solution&>(solutions[k]));
    if (solved[k] != nullptr) check_is_of(*solved[k], *problems[k]);
  }
  std::vector<FoldPaths*> given(problems.size(), nullptr);
  for (std::size_t k = 0; paths && k < problems.size(); ++k) {
    if ((*paths)[k].is_none()) continue;
    given[k] = &nb::cast<FoldPaths&>((*paths)[k]);
    if (!given[k]->is_of(store, *problems[k])) {
      throw std::invalid_argument("paths are of another problem, or another store");
    }
  }
  const Settings settings = make_settings(tol, max_iter, shrinking);
  PythonInterrupt interrupt{nb::object(nb::none())};
  FoldSolutions found;
  {
    const nb::gil_scoped_release release;
    found = solve_together(store, problems, {bounds.data(), bounds.size()}, solved, given, settings,
                           threads, interrupt);
  }
  interrupt.rethrow();
  return found;
}

std::vector<std::int64_t> iterations(const FoldSolutions& all) {
  std::vector<std::int64_t> of_folds(all.n_folds());
  for (std::size_t k = 0; k < all.size(); ++k) of_folds[k / all.n_problems()] += all[k].spent;
  return of_folds;
}

std::vector<bool> converged(const FoldSolutions& all) {
  std::vector<bool> of_folds(all.n_folds(), true);
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].ends.status != Status::Converged) of_folds[k / all.n_problems()] = false;
  }
  return of_folds;
}

nb::typed<nb::list, Solution> fold(const FoldSolutions& all, std::size_t number) {
  if (number >= all.n_folds()) throw nb::index_error("there is no such fold");
  nb::list found;
  for (std::size_t k = 0; k < all.n_problems(); ++k) {
    found.append(nb::cast(all.whole(number * all.n_problems() + k)));
  }
  return nb::typed<nb::list, Solution>(std::move(found));
}

FoldSolutions join(const nb::typed<nb::list, FoldSolutions>& list) {
  std::vector<FoldSolutions*> given;
  for (const nb::handle part : list) {
    auto* solutions = &nb::cast<FoldSolutions&>(part);
    if (std::ranges::find(given, solutions) != given.end()) {
      throw std::invalid_argument("a part is given twice");
    }
    given.push_back(solutions);
    if (given.back()->n_folds() != given[0]->n_folds()) {
      throw std::invalid_argument("parts have different folds");
    }
  }
  std::vector<FoldSolutions> parts;
  for (FoldSolutions* part : given) parts.push_back(std::exchange(*part, {}));
  return joined(std::move(parts));
}

}  // namespace

void bind_together(nb::module_& m) {
  nb::class_<FoldSolutions>(m, "FoldSolutions",
                            "The solutions of all problems of some folds, kept in one piece.")
      .def("__len__", &FoldSolutions::n_folds)
      .def("fold", &fold, "number"_a, "The solutions of a fold.")
      .def_prop_ro("n_iter", &iterations, "Iterations of each fold.")
      .def_prop_ro("converged", &converged, "Whether all problems of each fold converged.")
      .def_static(
          "joined", &join, "parts"_a,
          "The same folds, whose problems were solved in several parts, which are empty then.");

  m.def("solve_together", &solve_from_python, "store"_a, "problems"_a, "bounds"_a, "solutions"_a,
        "paths"_a = nb::none(), "tol"_a = 1e-3, "max_iter"_a = -1, "shrinking"_a = true,
        "threads"_a = 1,
        "Solves each problem with the bounds of each fold, which are the rows of a matrix with a "
        "column for each row of the store; from a solution of it on this store, or from nothing "
        "where it is None, along its paths where these are not None. Folds without a free row are "
        "solved from nothing. Ctrl-C stops it.");
}

}  // namespace onefit
