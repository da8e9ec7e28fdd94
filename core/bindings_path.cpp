// Paths of optima for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bindings.hpp"
#include "path.hpp"

namespace onefit {

using namespace nb::literals;

namespace {

std::vector<PathEnd> paths_from_python(const Problem& problem, const Solution& solution,
                                       const Vector<bool>& in_pivot, const Vector<double>& ridge,
                                       const Matrix<double>& columns,
                                       const Vector<std::int32_t>& column_of,
                                       const Vector<std::int32_t>& leaving, std::size_t threads) {
  const std::size_t n = problem.size();
  if (solution.beta.size() != n || solution.gradient.size() != n || in_pivot.shape(0) != n ||
      ridge.shape(0) != n || column_of.shape(0) != n) {
    throw std::invalid_argument(
        "solution, in_pivot, ridge and column_of must have an entry for each variable");
  }
  if (problem.split != n) throw std::invalid_argument("paths are of problems with one group");
  if (columns.shape(1) != n + 1) {
    throw std::invalid_argument("a column has an entry for the offset and each variable");
  }
  for (std::size_t v = 0; v < n; ++v) {
    if (column_of.data()[v] >= static_cast<std::int64_t>(columns.shape(0))) {
      throw std::invalid_argument("column_of names a column that is not there");
    }
  }
  for (std::size_t k = 0; k < leaving.shape(0); ++k) {
    const std::int32_t v = leaving.data()[k];
    if (v < 0 || static_cast<std::size_t>(v) >= n || column_of.data()[v] < 0) {
      throw std::invalid_argument("leaving must be variables that have a column");
    }
  }
  const PivotedSolution start{&problem,          &solution,      {in_pivot.data(), n},
                              {ridge.data(), n}, columns.data(), {column_of.data(), n}};
  const nb::gil_scoped_release release;
  return follow_paths(start, {leaving.data(), leaving.shape(0)}, threads);
}

}  // namespace

void bind_paths(nb::module_& m) {
  nb::class_<PathEnd>(m, "PathEnd",
                      "Where a path ends: `u` of the variable that left, and the gap.")
      .def_prop_ro("reached", [](const PathEnd& end) { return end.kind == PathEnd::Kind::Reached; })
      .def_prop_ro(
          "missing",
          [](const PathEnd& end) {
            return end.kind == PathEnd::Kind::ColumnMissing ? static_cast<std::int64_t>(end.missing)
                                                            : -1;
          },
          "The variable whose column is needed, or -1.")
      .def_ro("u", &PathEnd::u)
      .def_ro("gap", &PathEnd::gap)
      .def_ro("n_swapped", &PathEnd::n_swapped);

  m.def("follow_paths", &paths_from_python, "problem"_a, "solution"_a, "in_pivot"_a, "ridge"_a,
        "columns"_a, "column_of"_a, "leaving"_a, "threads"_a = 1,
        "The optima that a solution moves to when one of the variables `leaving` goes to zero, for "
        "each of them. Rows of `columns` are changes of the offset and of every variable with the "
        "input of one; column_of says of which, with -1 for none.");
}

}  // namespace onefit
