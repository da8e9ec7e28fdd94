// What the files with bindings share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "problem.hpp"
#include "solution.hpp"
#include "store.hpp"

namespace onefit {

namespace nb = nanobind;

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Block = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

inline void check_rows(std::size_t n, std::span<const std::int32_t> rows) {
  for (const std::int32_t row : rows) {
    if (row < 0 || static_cast<std::size_t>(row) >= n) {
      throw std::invalid_argument("row " + std::to_string(row) + " is not in the store");
    }
  }
}
inline void check_rows(const KernelStore& store, std::span<const std::int32_t> rows) {
  check_rows(store.size(), rows);
}

inline void check_is_of(const Solution& solution, const Problem& problem) {
  if (solution.beta.size() != problem.size() || solution.gradient.size() != problem.size()) {
    throw std::invalid_argument("a solution has other variables than its problem");
  }
}

// The problems of a list, which the caller holds: they stay where they are. And what a solver is
// told (bindings_problems.cpp).
using Problems = nb::typed<nb::list, Problem>;
std::vector<const Problem*> problems_in(const Problems& list, const KernelStore& store);
Settings make_settings(double tol, std::int64_t max_iter, bool shrinking);

// Problems, solutions and the solver (bindings_problems.cpp).
void bind_problems(nb::module_& m);
// Paths of optima (bindings_path.cpp).
void bind_paths(nb::module_& m);
// All folds in one call (bindings_together.cpp).
void bind_together(nb::module_& m);
// What folds say of the rows that they hold out (bindings_held_out.cpp).
void bind_held_out(nb::module_& m);
// Estimates of left-out rows (bindings_left_out.cpp).
void bind_left_out(nb::module_& m);

// Chains of problems (bindings_chains.cpp).
void bind_chains(nb::module_& m);

}  // namespace onefit
