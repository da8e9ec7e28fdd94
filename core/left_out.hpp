// What a fit would say of each of its rows without that row, from the fit alone.
//
// A row leaves when its coefficient b_i goes to 0 while the free rows V keep their values and all
// others their coefficients. With M = [0 1'; 1 K_VV] and k_i = [1; K_Vi] the value at row j falls
// by
//
//   b_i S_ij,   S_ij = K_ij - k_i' M^-1 k_j,   S_ii = 1 / (M^-1)_ii for a free row,
//
// and coefficients of V rise by b_i M^-1 k_i. That is exact as long as no row changes its status,
// and what each change does on its own is known from the same numbers: a free row v that meets a
// bound at the share t of the step adds (1 - t) (M^-1 k_i)_v^2 / (M^-1)_vv to S_ii, and a row j
// that becomes free takes the part (1 - t) S_ij^2 / (S_ii S_jj) of it away. Where the other free
// rows have no room for b_i they all end at bounds, and the offset leaps to the next row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fitted_rows.hpp"
#include "store.hpp"

namespace onefit {

struct LeftOutSettings {
  bool signs_only;           // values whose sign is certain are not corrected
  std::size_t budget_bytes;  // of what is computed besides the inverse of M, about
  std::size_t single_from;   // free rows from which on single precision is tried
};

// A row that is free, or whose coefficient is not 0.
struct LeftOutRow {
  std::size_t number;  // of the rows of the fit
  double value;        // without it
  double low;          // where the value is likely to lie
  double high;
  double share;          // of the step at which the first row changes its status
  std::int64_t changes;  // rows that do until its end
  bool is_known;
};

// All of them; none where there is no free row, as nothing is known then.
std::vector<LeftOutRow> left_out_rows(KernelStore& store, const FittedRows& fit,
                                      const LeftOutSettings& settings);

}  // namespace onefit
