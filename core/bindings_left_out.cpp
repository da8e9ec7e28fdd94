// Estimates of left-out rows for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings.hpp"
#include "blas.hpp"
#include "free_set.hpp"
#include "left_out.hpp"

namespace onefit {

using namespace nb::literals;

namespace {

// Nearer than this to a bound, relative to the largest coefficient, a row is there but for
// rounding.
constexpr double kAtBound = 1e-9;

using Routines = nb::typed<nb::dict, nb::str, nb::capsule>;
using Inverse = nb::typed<nb::tuple, nb::object, nb::object, double>;

template <class T>
using Written = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using WrittenMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void take(const Routines& routines, const std::string& name, auto& pointer) {
  const auto capsule = nb::cast<nb::capsule>(routines[name.c_str()]);
  pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(capsule.data());
}

template <class T>
void take_all(const Routines& of_blas, const Routines& of_lapack, const std::string& precision) {
  Blas<T>& routines = blas<T>();
  take(of_blas, precision + "syrk", routines.syrk);
  take(of_blas, precision + "trsm", routines.trsm);
  take(of_blas, precision + "trmm", routines.trmm);
  take(of_lapack, precision + "potrf", routines.potrf);
  take(of_lapack, precision + "trtri", routines.trtri);
  take(of_lapack, precision + "lauum", routines.lauum);
  take(of_blas, precision + "gemm", routines.gemm);
}

// Writes what is known of the rows of a fit into arrays with an entry for each row of the store.
bool estimate_from_python(KernelStore& store, const Vector<std::int32_t>& rows,
                          const Vector<double>& fitted, const Vector<double>& above,
                          const Vector<double>& beta, const Vector<double>& lower,
                          const Vector<double>& upper, double kink, std::size_t number,
                          const WrittenMatrix<double>& values, const WrittenMatrix<double>& low,
                          const WrittenMatrix<double>& high, const WrittenMatrix<bool>& is_open,
                          const Written<bool>& is_known, const Written<bool>& is_support,
                          const Written<double>& share, const Written<std::int64_t>& changes,
                          double undecided_below, bool signs_only, std::size_t budget_bytes,
                          std::size_t single_from) {
  const std::size_t n = rows.shape(0);
  check_rows(store, {rows.data(), n});
  for (const Vector<double>* array : {&fitted, &above, &beta, &lower, &upper}) {
    if (array->shape(0) != n) throw std::invalid_argument("arrays need an entry for each row");
  }
  for (const WrittenMatrix<double>* array : {&values, &low, &high}) {
    if (array->shape(0) != store.size() || array->shape(1) <= number) {
      throw std::invalid_argument("values need a row for each of the store, and a column");
    }
  }
  if (is_open.shape(0) != store.size() || is_open.shape(1) <= number) {
    throw std::invalid_argument("signs need a row for each of the store, and a column");
  }
  if (is_known.shape(0) != store.size() || is_support.shape(0) != store.size() ||
      share.shape(0) != store.size() || changes.shape(0) != store.size()) {
    throw std::invalid_argument("what is written needs an entry for each row of the store");
  }
  const nb::gil_scoped_release release;
  std::vector<double> diagonal;
  diagonal.reserve(n);
  for (std::size_t k = 0; k < n; ++k) diagonal.push_back(store.exact_diagonal(rows.data()[k]));
  const FittedRows fit{{rows.data(), n}, fitted.data(), above.data(),    beta.data(),
                       lower.data(),     upper.data(),  diagonal.data(), kink};
  const std::vector<LeftOutRow> found =
      left_out_rows(store, fit, {signs_only, budget_bytes, single_from});
  for (const LeftOutRow& row : found) {
    const auto at = static_cast<std::size_t>(rows.data()[row.number]);
    values.data()[at * values.shape(1) + number] = row.value;
    low.data()[at * low.shape(1) + number] = row.low;
    high.data()[at * high.shape(1) + number] = row.high;
    // A row that is on the boundary may stay there.
    is_open.data()[at * is_open.shape(1) + number] =
        !row.is_known || (row.low <= 0.0 && row.high >= 0.0 && row.low < row.high) ||
        std::abs(fit.values[row.number]) < undecided_below;
    share.data()[at] = std::min(share.data()[at], row.share);
    changes.data()[at] += row.changes;
    if (!row.is_known) is_known.data()[at] = false;
  }
  for (std::size_t at = 0; at < store.size(); ++at) {
    if (std::abs(values.data()[at * values.shape(1) + number]) < undecided_below) {
      is_open.data()[at * is_open.shape(1) + number] = true;
    }
  }
  // With no coefficient between its bounds, but for rounding, any row may be the next to the
  // offset.
  double near = 0.0;
  for (std::size_t k = 0; k < n; ++k) near = std::max(near, kAtBound * std::abs(fit.beta[k]));
  const bool is_determined = std::any_of(found.begin(), found.end(), [&](const LeftOutRow& row) {
    const double b = fit.beta[row.number];
    return b - fit.lower[row.number] > near && fit.upper[row.number] - b > near &&
           std::abs(b) > near;
  });
  for (std::size_t k = 0; k < n; ++k) {
    if (fit.takes_part(k) && (fit.beta[k] != 0.0 || !is_determined)) {
      is_support.data()[fit.rows[k]] = true;
    }
  }
  return !found.empty();
}

// An inverse and its memory.
template <class T>
struct KeptSet {
  std::unique_ptr<Workspace> workspace;
  FreeSet<T> set;
};

template <class T>
Inverse as_arrays(std::unique_ptr<Workspace> workspace, FreeSet<T> set) {
  auto* kept = new KeptSet<T>{std::move(workspace), std::move(set)};
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<KeptSet<T>*>(p); });
  const std::size_t n = kept->set.size;
  return Inverse(nb::make_tuple(
      nb::ndarray<nb::numpy, T, nb::ndim<2>>(kept->set.inverse, {n, n}, owner),
      nb::ndarray<nb::numpy, double, nb::ndim<1>>(kept->set.border.data(), {n}, owner),
      kept->set.corner));
}

Inverse free_set_from_python(const Matrix<float>& kernel, bool single) {
  const std::size_t n = kernel.shape(0);
  if (n == 0 || kernel.shape(1) != n) throw std::invalid_argument("the matrix must be square");
  auto workspace = std::make_unique<Workspace>();
  if (!single) {
    FreeSet<double> set = double_free_set(kernel.data(), n, *workspace);
    return as_arrays(std::move(workspace), std::move(set));
  }
  auto* copy = workspace->take<float>(n * n);
  std::copy_n(kernel.data(), n * n, copy);
  auto set = single_free_set(copy, n);
  if (!set) throw std::invalid_argument("rows are too near to one another for single precision");
  return as_arrays(std::move(workspace), std::move(*set));
}

}  // namespace

void bind_left_out(nb::module_& m) {
  m.def(
      "use_blas",
      [](const Routines& of_blas, const Routines& of_lapack) {
        take_all<float>(of_blas, of_lapack, "s");
        take_all<double>(of_blas, of_lapack, "d");
      },
      "blas"_a, "lapack"_a,
      "Takes routines of both precisions as scipy.linalg.cython_blas and cython_lapack export "
      "them.");
  m.def("free_set", &free_set_from_python, "kernel"_a, "single"_a = false,
        "The inverse of [0 1'; 1 K]: the part of the rows, the border and the corner.");
  m.def("estimate_left_out", &estimate_from_python, "store"_a, "rows"_a, "fitted"_a, "above"_a,
        "beta"_a, "lower"_a, "upper"_a, "kink"_a, "number"_a, "values"_a, "low"_a, "high"_a,
        "is_open"_a, "is_known"_a, "is_support"_a, "share"_a, "changes"_a, "undecided_below"_a,
        "signs_only"_a, "budget_bytes"_a, "single_from"_a,
        "Writes estimates of the left-out values of the rows of a fit into the column `number` of "
        "arrays with a row for each of the store. Nothing is known, and False returned, without a "
        "free row.");
}

}  // namespace onefit
