// Paths of optima for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bindings.hpp"
#include "path.hpp"

namespace onefit {

using namespace nb::literals;

namespace {

std::vector<PathEnd> paths_from_python(const Problem& problem, const Solution& solution,
                                       const Vector<std::int32_t>& order, std::size_t n_pivot,
                                       std::size_t n_near, double ridge,
                                       const Matrix<double>& columns,
                                       const Vector<std::int32_t>& column_of,
                                       const Vector<std::int32_t>& leaving, std::size_t threads) {
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
  const PivotedSolution start{&problem, &solution, {order.data(), n}, n_pivot,
                              n_near,   ridge,     columns.data(),    {column_of.data(), n}};
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
          "The place whose column is needed, or -1.")
      .def_ro("u", &PathEnd::u)
      .def_ro("gap", &PathEnd::gap)
      .def_ro("n_swapped", &PathEnd::n_swapped);

  m.def("follow_paths", &paths_from_python, "problem"_a, "solution"_a, "order"_a, "n_pivot"_a,
        "n_near"_a, "ridge"_a, "columns"_a, "column_of"_a, "leaving"_a, "threads"_a = 1,
        "The optima that a solution moves to when the variable at one of the places `leaving` goes "
        "to zero, for each of them. `order` has the variables by place. Rows of `columns` are "
        "changes of the offset and at every place with the input of one; column_of says of which, "
        "with -1 for none.");
}

}  // namespace onefit
