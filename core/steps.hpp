// Loops over steps of coefficients and values, written for compilers that vectorise.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace onefit {

// Calls where(k, step) for every step, an entry times the factor, that is beyond its limits.
template <class T, class Where>
void for_each_beyond(const T* steps, T factor, const T* least, const T* most, std::size_t n,
                     const Where& where) {
  constexpr std::size_t kPiece = 64;
  for (std::size_t first = 0; first < n; first += kPiece) {
    const std::size_t end = std::min(n, first + kPiece);
    int beyond = 0;
    for (std::size_t k = first; k < end; ++k) {
      const T step = steps[k] * factor;
      beyond |= static_cast<int>(step > most[k]) | static_cast<int>(step < least[k]);
    }
    if (beyond == 0) continue;
    for (std::size_t k = first; k < end; ++k) {
      const T step = steps[k] * factor;
      if (step > most[k] || step < least[k]) where(k, static_cast<double>(step));
    }
  }
}

// The sum of products, in an order that can be vectorised.
template <class T>
double dot(const T* a, const T* b, std::size_t n) {
  constexpr std::size_t kLanes = 16;
  std::array<T, kLanes> sums{};
  std::size_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    for (std::size_t l = 0; l < kLanes; ++l) sums[l] += a[k + l] * b[k + l];
  }
  double sum = 0.0;
  for (; k < n; ++k) sum += static_cast<double>(a[k] * b[k]);
  for (const T lane : sums) sum += static_cast<double>(lane);
  return sum;
}

}  // namespace onefit
