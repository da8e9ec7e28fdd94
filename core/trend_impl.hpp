// The passes of trend.hpp, for loops_impl.cpp alone: compiled with it once per instruction set.
// All arrays are padded to whole vectors.
#pragma once

#include <cstddef>
#include <cstring>

#include "lanes.hpp"
#include "loops.hpp"

namespace onefit {
namespace {

// One vector of each of the arrays at a time.
struct TrendLanes {
  static constexpr std::size_t L = ONEFIT_VECTOR_BYTES / sizeof(double);
  using V = Vector<double, L>;

  static V at(const double* p) { return load<double, L>(p); }
  static V at(const float* p) { return load_as<double, L>(p); }
  static void put(double* p, V v) { std::memcpy(p, &v, sizeof v); }
  static V all(double value) { return fill<double, L>(value); }
  static V size_of(V v) { return v < V{} ? -v : v; }
  static double sum(V v) {
    double total = 0.0;
    for (std::size_t l = 0; l < L; ++l) total += v[l];
    return total;
  }
  static double largest(V v) { return -least<double, L>(-v); }
};

TrendSizes end_window(const TrendArrays& a, const double* b_before, const double* g_before,
                      double* change, double* gradient_change, double* slopes) {
  using T = TrendLanes;
  T::V changed{};
  T::V largest{};
  const T::V never = T::all(static_cast<double>(kNever));
  for (std::size_t p = 0; p < a.n; p += T::L) {
    const T::V g = T::at(a.g + p);
    const T::V moved = T::at(a.b + p) - T::at(b_before + p);
    changed += T::size_of(moved);
    largest = T::size_of(g) > largest ? T::size_of(g) : largest;
    T::put(change + p, moved);
    T::put(gradient_change + p, g - T::at(g_before + p));
    // Of a variable at a bound, what the step away from it is worth.
    const T::V up = T::at(a.up + p);
    const T::V low = T::at(a.low + p);
    const T::V shift = up > -never ? up : low;
    T::put(slopes + p, shift < never ? g + shift : T::V{});
  }
  return {T::sum(changed), T::largest(largest)};
}

double find_rooms(const TrendArrays& a) {
  using T = TrendLanes;
  const T::V kink = T::all(a.kink);
  const T::V tiny = T::all(1e-300);
  T::V steepest{};
  for (std::size_t p = 0; p < a.n; p += T::L) {
    const T::V b = T::at(a.b + p);
    const T::V d = T::at(a.direction + p);
    // As far as zero, if there is a kink between.
    const auto stops = (kink > T::V{}) & (b * d < T::V{});
    const T::V bound = d > T::V{} ? T::at(a.upper + p) : T::at(a.lower + p);
    const T::V end = stops ? T::V{} : bound;
    const T::V room = T::size_of(end - b);
    T::put(a.end + p, end);
    T::put(a.room + p, room);
    const T::V steep = T::size_of(d) / (room > tiny ? room : tiny);
    steepest = steep > steepest ? steep : steepest;
  }
  return T::largest(steepest);
}

TrendSlope measure_direction(const TrendArrays& a) {
  using T = TrendLanes;
  T::V slope{};
  T::V curvature{};
  for (std::size_t p = 0; p < a.n; p += T::L) {
    const T::V d = T::at(a.direction + p);
    // What does not move may be out of reach, and 0 times that is not a number.
    const T::V shift = d > T::V{} ? T::at(a.up + p) : d < T::V{} ? T::at(a.low + p) : T::V{};
    slope += d * (T::at(a.g + p) + shift);
    curvature -= d * T::at(a.rate + p);
  }
  return {T::sum(slope), T::sum(curvature)};
}

void go_along(const TrendArrays& a, double length) {
  using T = TrendLanes;
  const T::V t = T::all(length);
  for (std::size_t p = 0; p < a.n; p += T::L) {
    const T::V d = T::at(a.direction + p);
    const T::V b = T::at(a.b + p);
    const T::V there = T::size_of(t * d) < T::at(a.room + p) ? b + t * d : T::at(a.end + p);
    T::put(a.b + p, (d < T::V{}) | (d > T::V{}) ? there : b);
    T::put(a.g + p, T::at(a.g + p) + t * T::at(a.rate + p));
  }
}

}  // namespace
}  // namespace onefit
