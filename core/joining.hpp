// Rows of a fit that are not free, and may become so when another row leaves.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fitted_rows.hpp"
#include "store.hpp"

namespace onefit {

struct JoiningRow {
  std::size_t number;
  Room slack;
  double nearness;  // the least reach of a leaving row that could make it free
};

// All rows that take part and are not free, in their order.
//
// The value of such a row j changes by no more than |b_i| sqrt(S_ii S_jj) when row i leaves, and
// S_jj is at most the squared distance to any mean of free rows, without i. So it is no further
// than the reach |b_i| sqrt(S_ii) of row i times the larger of the distances to two means of
// different rows.
std::vector<JoiningRow> joining_rows(KernelStore& store, const FittedRows& fit,
                                     std::span<const std::size_t> free);

}  // namespace onefit
