// Passes over the coefficients of a problem and their bounds, for loops_impl.cpp alone: compiled
// with it once per instruction set.
#pragma once

#include <cstddef>
#include <cstring>

#include "lanes.hpp"
#include "loops.hpp"

namespace onefit {
namespace {

// What up_shift and low_shift (kkt.hpp) give.
template <class V>
inline V shift_up(V b, V upper, V kink, V zero, V never) {
  return b < upper ? (b < zero ? kink : -kink) : -never;
}
template <class V>
inline V shift_down(V b, V lower, V kink, V zero, V never) {
  return b > lower ? (b > zero ? -kink : kink) : never;
}

void shifts(std::size_t n, const double* beta, const double* lower, const double* upper,
            double kink, float* up, float* low) {
  constexpr std::size_t L = ONEFIT_VECTOR_BYTES / sizeof(double);
  using V = Vector<double, L>;
  const V zero{};
  const V kinks = fill<double, L>(kink);
  const V never = fill<double, L>(static_cast<double>(kNever));
  std::size_t v = 0;
  for (; v + L <= n; v += L) {
    const V b = load<double, L>(beta + v);
    const auto u = __builtin_convertvector(
        shift_up<V>(b, load<double, L>(upper + v), kinks, zero, never), Vector<float, L>);
    const auto l = __builtin_convertvector(
        shift_down<V>(b, load<double, L>(lower + v), kinks, zero, never), Vector<float, L>);
    std::memcpy(up + v, &u, sizeof u);
    std::memcpy(low + v, &l, sizeof l);
  }
  const auto out_of_reach = static_cast<double>(kNever);
  for (; v < n; ++v) {
    up[v] = static_cast<float>(shift_up<double>(beta[v], upper[v], kink, 0.0, out_of_reach));
    low[v] = static_cast<float>(shift_down<double>(beta[v], lower[v], kink, 0.0, out_of_reach));
  }
}

void summarise(std::size_t n, const double* beta, const double* gradient, const double* linear,
               const double* lower, const double* upper, double shift, double kink, Summary* out) {
  constexpr std::size_t L = ONEFIT_VECTOR_BYTES / sizeof(double);
  using V = Vector<double, L>;
  const auto out_of_reach = static_cast<double>(kNever);
  const V zero{};
  const V one = fill<double, L>(1.0);
  const V half = fill<double, L>(0.5);
  const V shifts = fill<double, L>(shift);
  const V kinks = fill<double, L>(kink);
  const V never = fill<double, L>(out_of_reach);
  V max_up = -never;
  V min_low = never;
  V free_sum = zero;
  V free_count = zero;
  V objective = zero;
  V squares = zero;
  V largest = zero;
  std::size_t v = 0;
  for (; v + L <= n; v += L) {
    const V b = load<double, L>(beta + v);
    const V g = load<double, L>(gradient + v);
    const V u = g + shift_up<V>(b, load<double, L>(upper + v), shifts, zero, never);
    const V l = g + shift_down<V>(b, load<double, L>(lower + v), shifts, zero, never);
    max_up = u > max_up ? u : max_up;
    min_low = l < min_low ? l : min_low;
    free_sum += u == l ? u : zero;
    free_count += u == l ? one : zero;
    const V size = b < zero ? -b : b;
    objective += kinks * size - half * b * (load<double, L>(linear + v) + g);
    squares += b * b;
    largest = size > largest ? size : largest;
  }
  Summary s = *out;
  for (std::size_t k = 0; k < L; ++k) {
    s.max_up = max_up[k] > s.max_up ? max_up[k] : s.max_up;
    s.min_low = min_low[k] < s.min_low ? min_low[k] : s.min_low;
    s.free_sum += free_sum[k];
    s.free_count += free_count[k];
    s.objective += objective[k];
    s.squares += squares[k];
    s.largest = largest[k] > s.largest ? largest[k] : s.largest;
  }
  for (; v < n; ++v) {
    const double b = beta[v];
    const double u = gradient[v] + shift_up<double>(b, upper[v], shift, 0.0, out_of_reach);
    const double l = gradient[v] + shift_down<double>(b, lower[v], shift, 0.0, out_of_reach);
    s.max_up = u > s.max_up ? u : s.max_up;
    s.min_low = l < s.min_low ? l : s.min_low;
    s.free_sum += u == l ? u : 0.0;
    s.free_count += u == l ? 1.0 : 0.0;
    const double size = b < 0.0 ? -b : b;
    s.objective += kink * size - 0.5 * b * (linear[v] + gradient[v]);
    s.squares += b * b;
    s.largest = size > s.largest ? size : s.largest;
  }
  *out = s;
}

}  // namespace
}  // namespace onefit
