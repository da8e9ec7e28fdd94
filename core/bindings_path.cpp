// Paths of optima for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "bindings.hpp"
#include "fold_paths.hpp"
#include "path.hpp"
#include "python_interrupt.hpp"

namespace onefit {

using namespace nb::literals;

namespace {

std::vector<PathEnd> paths_from_python(
    const Problem& problem, const Solution& solution, const Vector<std::int32_t>& order,
    std::size_t n_pivot, std::size_t n_near, double ridge, const Matrix<double>& columns,
    const Vector<std::int32_t>& column_of, const Vector<std::int32_t>& leaving,
    const std::optional<Matrix<double>>& kernel, std::size_t threads) {
  const std::size_t n = problem.size();
  if (solution.beta.size() != n || solution.gradient.size() != n || order.shape(0) != n ||
      column_of.shape(0) != n) {
    throw std::invalid_argument("solution, order and column_of need an entry for each variable");
  }
  if (problem.split != n) throw std::invalid_argument("paths are of problems with one group");
  if (n_pivot > n_near || n_near > n) throw std::invalid_argument("n_pivot <= n_near <= n");
  if (columns.shape(1) != n + 1) {
    throw std::invalid_argument("a column has an entry for the offset and each variable");
  }
  if (kernel && (kernel->shape(0) != columns.shape(0) || kernel->shape(1) != n)) {
    throw std::invalid_argument("kernel needs a row for each column, with an entry each variable");
  }
  const auto within = [](const Vector<std::int32_t>& values, std::size_t end) {
    return std::all_of(values.data(), values.data() + values.shape(0),
                       [end](std::int32_t v) { return v < static_cast<std::int64_t>(end); });
  };
  const auto negative = [](std::int32_t v) { return v < 0; };
  if (!within(column_of, columns.shape(0))) {
    throw std::invalid_argument("column_of names a column that is not there");
  }
  if (!within(order, n) || std::any_of(order.data(), order.data() + n, negative)) {
    throw std::invalid_argument("order must be of variables");
  }
  for (std::size_t k = 0; k < leaving.shape(0); ++k) {
    const std::int32_t p = leaving.data()[k];
    if (p < 0 || static_cast<std::size_t>(p) >= n || column_of.data()[p] < 0) {
      throw std::invalid_argument("leaving must be places that have a column");
    }
  }
  const PivotedSolution start{&problem, &solution, {order.data(), n}, n_pivot, n_near, ridge};
  GivenColumns given(columns.data(), {column_of.data(), n}, kernel ? kernel->data() : nullptr);
  const nb::gil_scoped_release release;
  return follow_paths(start, given, {leaving.data(), leaving.shape(0)}, threads);
}

std::unique_ptr<FoldPaths> fold_paths(KernelStore& store, const Problem& problem,
                                      const Solution& solution, std::size_t bytes, double products,
                                      PathMemory& memory) {
  check_rows(store, problem.rows);
  check_is_of(solution, problem);
  PythonInterrupt interrupt{nb::object(nb::none())};
  std::unique_ptr<FoldPaths> paths;
  {
    const nb::gil_scoped_release release;
    paths = std::make_unique<FoldPaths>(store, problem, solution, PathLimits{bytes, products},
                                        memory, interrupt);
  }
  interrupt.rethrow();
  return paths;
}

std::vector<std::optional<Solution>> ends_of_folds(
    FoldPaths& paths, const nb::typed<nb::list, Vector<double>>& bounds, double tol,
    std::size_t threads) {
  std::vector<Vector<double>> arrays;  // as long as they are used
  std::vector<std::span<const double>> of_folds;
  for (std::size_t k = 0; k < bounds.size(); ++k) {
    arrays.push_back(nb::cast<Vector<double>>(bounds[k]));
    if (arrays.back().shape(0) != paths.n_rows()) {
      throw std::invalid_argument("bounds must have an entry for each row of the store");
    }
    of_folds.emplace_back(arrays.back().data(), arrays.back().shape(0));
  }
  PythonInterrupt interrupt{nb::object(nb::none())};
  std::vector<std::optional<Solution>> ends;
  {
    const nb::gil_scoped_release release;
    ends = paths.ends(of_folds, tol, threads, interrupt);
  }
  interrupt.rethrow();
  return ends;
}

}  // namespace

void bind_paths(nb::module_& m) {
  nb::class_<PathEnd>(m, "PathEnd",
                      "Where a path ends: `u` of the variable that left, and the gap.")
      .def_prop_ro("reached", [](const PathEnd& end) { return end.kind == Path::Kind::Reached; })
      .def_prop_ro(
          "missing",
          [](const PathEnd& end) {
            return end.kind == Path::Kind::ColumnMissing ? static_cast<std::int64_t>(end.missing)
                                                         : -1;
          },
          "The place whose column is needed, or -1.")
      .def_ro("u", &PathEnd::u)
      .def_ro("gap", &PathEnd::gap)
      .def_ro("residual", &PathEnd::residual, "Of the free rows, where the end was refined.")
      .def_ro("n_swapped", &PathEnd::n_swapped);

  m.def("follow_paths", &paths_from_python, "problem"_a, "solution"_a, "order"_a, "n_pivot"_a,
        "n_near"_a, "ridge"_a, "columns"_a, "column_of"_a, "leaving"_a, "kernel"_a = nb::none(),
        "threads"_a = 1,
        "The optima that a solution moves to when the variable at one of the places `leaving` goes "
        "to zero, for each of them. `order` has the variables by place. Rows of `columns` are "
        "changes of the offset and at every place with the input of one; column_of says of which, "
        "with -1 for none. With `kernel`, entries in double precision of each column's place with "
        "all others, the equations are solved once more at the end without the ridge.");

  nb::class_<PathMemory>(m, "PathMemory", "Memory of the paths of several problems.")
      .def(nb::init<>())
      .def("clear", &PathMemory::clear,
           "Takes the memory from paths that are there, for others: these are not available then.");

  nb::class_<FoldPaths>(m, "FoldPaths",
                        "Paths on which the rows of a fold leave the solution on all rows.")
      .def(nb::new_(&fold_paths), "store"_a, "problem"_a, "solution"_a, "bytes"_a, "products"_a,
           "memory"_a, nb::keep_alive<0, 2>(), nb::keep_alive<0, 3>(), nb::keep_alive<0, 4>(),
           nb::keep_alive<0, 7>())
      .def_prop_ro("available", &FoldPaths::available)
      .def("ends", &ends_of_folds, "bounds"_a, "tol"_a, "threads"_a = 1,
           "Where the rows of each fold whose bound is 0 have left: a solution, converged if its "
           "gap "
           "is below `tol` and else something to start from, or None. Bounds have an entry for "
           "each row of the store.");
}

}  // namespace onefit
