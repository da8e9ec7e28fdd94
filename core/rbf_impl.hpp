// Values of the RBF kernel and squared distances from dot products, for loops_impl.cpp alone:
// compiled with it once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "loops.hpp"

namespace onefit {
namespace {

// exp(x) for x <= 0: x = k ln2 + r with |r| <= ln2 / 2, Taylor's series in r (the first term left
// out is below half a unit in the last place), then k goes into the exponent bits. The lowest x has
// a k whose exponent bits are all zero, so that what would be subnormal becomes 0 without a branch.
inline float exp_negative(float x) {
  const float lowest = -88.0F;
  const float z = x > lowest ? x : lowest;
  const std::int32_t k = static_cast<std::int32_t>(z * 1.44269504F - 0.5F);
  const float kf = static_cast<float>(k);
  float r = z - kf * 0.693145752F;  // ln2 in two parts: the first has few enough bits that
  r = r - kf * 1.42860682e-6F;      // its product with k is exact
  float p = 1.0F / 5040.0F;
  p = p * r + 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::int32_t bits = (k + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

inline double exp_negative(double x) {
  const double lowest = -709.0;
  const double z = x > lowest ? x : lowest;
  const std::int32_t k = static_cast<std::int32_t>(z * 1.4426950408889634 - 0.5);
  const double kf = static_cast<double>(k);
  double r = z - kf * 0.69314718036912382;
  r = r - kf * 1.9082149292705877e-10;
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const std::int64_t bits = (static_cast<std::int64_t>(k) + 1023) << 52;
  double scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

template <class T>
void rbf(std::size_t n, const T* ONEFIT_RESTRICT dot, const T* ONEFIT_RESTRICT sq, T sq_row,
         T gamma, T* ONEFIT_RESTRICT out) {
#pragma omp simd
  for (std::size_t t = 0; t < n; ++t) {
    T d = sq[t] + sq_row - 2 * dot[t];
    d = d > 0 ? d : 0;
    out[t] = exp_negative(-gamma * d);
  }
}

void rbf_df(std::size_t n, const double* ONEFIT_RESTRICT dot, const double* ONEFIT_RESTRICT sq,
            double sq_row, double gamma, float* ONEFIT_RESTRICT out) {
#pragma omp simd
  for (std::size_t t = 0; t < n; ++t) {
    double d = sq[t] + sq_row - 2 * dot[t];
    d = d > 0 ? d : 0;
    out[t] = exp_negative(static_cast<float>(-gamma * d));
  }
}

void rbf_from_distance(std::size_t n, const float* ONEFIT_RESTRICT distance, float gamma,
                       float* ONEFIT_RESTRICT out) {
#pragma omp simd
  for (std::size_t t = 0; t < n; ++t) {
    out[t] = exp_negative(-gamma * distance[t]);
  }
}

template <class T>
void distance(std::size_t n, const T* ONEFIT_RESTRICT dot, const T* ONEFIT_RESTRICT sq, T sq_row,
              T* ONEFIT_RESTRICT out) {
#pragma omp simd
  for (std::size_t t = 0; t < n; ++t) {
    const T d = sq[t] + sq_row - 2 * dot[t];
    out[t] = d > 0 ? d : 0;
  }
}

}  // namespace
}  // namespace onefit
