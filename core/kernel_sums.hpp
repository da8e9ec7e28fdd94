// What models say of rows: sums of kernel values over their support vectors.
//
// Each sum adds its terms one after another, in the order of the store, in double precision.
// Coefficients of 0 leave no trace. So equal queries get equal sums, to the last bit, wherever they
// are, and a sum is the same whichever others are computed along with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "store.hpp"

namespace onefit {

// Rows of the store, and a coefficient for each. A row may be there more than once.
struct Combination {
  std::span<const std::int32_t> rows;
  const double* coef;
};

// Combination by combination, the sum for each query. Each kernel row is read once for all of them.
void kernel_sums(KernelStore& store, std::span<const Combination> combinations,
                 std::span<const std::int32_t> queries, double* out);

}  // namespace onefit
