// A solved problem, row by row: min 1/2 b'Kb - p'b + kink |b|_1, lower <= b <= upper, the sum of b
// fixed. Free rows are between their bounds, and not at the kink.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace onefit {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// How far something can go down and up.
struct Room {
  double fall;
  double rise;
};

struct FittedRows {
  std::span<const std::int32_t> rows;  // of the store; the others have an entry for each
  const double* values;                // of the decision function
  const double* above;                 // by which targets are above the values
  const double* beta;
  const double* lower;
  const double* upper;
  const double* diagonal;  // of the kernel
  double kink;

  bool takes_part(std::size_t k) const { return lower[k] < upper[k]; }
  bool is_free(std::size_t k) const {
    return beta[k] > lower[k] && beta[k] < upper[k] && (kink == 0.0 || beta[k] != 0.0);
  }

  // By how much a free coefficient can fall and rise; with a kink 0 is a bound.
  Room room(std::size_t k) const {
    const double least = kink > 0.0 && beta[k] > 0.0 ? 0.0 : lower[k];
    const double most = kink > 0.0 && beta[k] < 0.0 ? 0.0 : upper[k];
    return {beta[k] - least, most - beta[k]};
  }

  // By how much a value may fall and rise before a row that is not free would become so.
  Room slack(std::size_t k) const {
    const double most = beta[k] < 0.0 ? -kink : kink;  // of a coefficient that could rise
    const double least = beta[k] > 0.0 ? kink : -kink;
    return {beta[k] < upper[k] ? std::max(most - above[k], 0.0) : kInfinity,
            beta[k] > lower[k] ? std::max(above[k] - least, 0.0) : kInfinity};
  }

  std::vector<std::int32_t> rows_of(std::span<const std::size_t> numbers) const {
    std::vector<std::int32_t> found;
    found.reserve(numbers.size());
    for (const std::size_t k : numbers) found.push_back(rows[k]);
    return found;
  }
};

}  // namespace onefit
