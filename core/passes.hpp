// The passes of the solver for a gradient in float32 or in double precision, and what they find.
#pragma once

#include <cstddef>

#include "loops.hpp"

namespace onefit {

// The loops for one gradient type.
template <class G>
struct Passes;
template <>
struct Passes<float> {
  static auto sweep() { return loops().sweep_f; }
  static auto second() { return loops().second_f; }
  static auto burst() { return loops().burst_f; }
};
template <>
struct Passes<double> {
  static auto sweep() { return loops().sweep_d; }
  static auto second() { return loops().second_d; }
  static auto burst() { return loops().burst_d; }
};

// Extremes of the gradient within a group of variables.
template <class G>
struct GroupState {
  G max_up = -kNever;
  G min_low = kNever;
  std::size_t index = 0;  // the position of max_up
  double gap() const { return static_cast<double>(max_up) - static_cast<double>(min_low); }
};

}  // namespace onefit
