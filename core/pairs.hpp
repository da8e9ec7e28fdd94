// C-SVC of all pairs of classes, of rows that are sorted by class, and who takes part in its folds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "problem.hpp"

namespace onefit {

// A problem for each pair, in LIBSVM's order, with a bound C for each row; class k has the rows
// from starts[k] on, and the first class of a pair is +1.
std::vector<Problem> c_svc_pairs(std::span<const std::size_t> starts,
                                 std::span<const double> bounds);

// The bounds of the rows in every fold, fold by fold, at `out`: 0 for those that take no part. The
// rows of the folds, so many each, are those that they hold out, or the only ones that take part.
// Returns whether some row of every class takes part in every fold.
bool bounds_of_folds(std::span<const double> bounds, std::span<const std::size_t> starts,
                     std::span<const std::int32_t> rows, std::span<const std::size_t> sizes,
                     bool held_out, double* out);

}  // namespace onefit
