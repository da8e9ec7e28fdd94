// The passes over the active variables, segment by segment.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>

#include "active.hpp"
#include "passes.hpp"

namespace onefit {

// Per active position.
template <class G>
struct Values {
  G* g;
  const float* up;
  const float* low;
  const float* diagonal;
  float tau;  // the least curvature that pairs are compared with
};

// Subtracts step * (ki - kj) from g and finds the extremes of each group. Rows may be nullptr,
// which stands for `zeros`.
template <class G>
void sweep(const ActiveSet& active, const Values<G>& at, const ActiveRow* ki, const ActiveRow* kj,
           G step, const float* zeros, GroupState<G>* groups) {
  groups[0] = groups[1] = GroupState<G>{};
  const auto pass = Passes<G>::sweep();
  for (const Segment& s : active.segments()) {
    Extremes<G> e;
    pass(s.size(), at.g + s.first, at.up + s.first, at.low + s.first,
         ki == nullptr ? zeros : ki->at(s), kj == nullptr ? zeros : kj->at(s), step, &e);
    GroupState<G>& state = groups[s.group];
    if (e.max_up > state.max_up) {
      state.max_up = e.max_up;
      state.index = s.first + e.index;
    }
    state.min_low = std::min(state.min_low, e.min_low);
  }
}

// How many variables could still be chosen; the inner loop is for compilers that vectorise.
template <class G>
std::size_t count_kept(const ActiveSet& active, const Values<G>& at, const GroupState<G>* groups) {
  std::size_t all = 0;
  for (const Segment& s : active.segments()) {
    const G least = groups[s.group].min_low;
    const G most = groups[s.group].max_up;
    int kept = 0;
    for (std::size_t p = s.first; p < s.last; ++p) {
      kept += static_cast<int>(at.g[p] + static_cast<G>(at.up[p]) >= least) |
              static_cast<int>(at.g[p] + static_cast<G>(at.low[p]) <= most);
    }
    all += static_cast<std::size_t>(kept);
  }
  return all;
}

struct Partner {
  float gain = 0.0F;
  std::size_t position = 0;
};

// The position whose step with i promises most.
template <class G>
Partner best_partner(const ActiveSet& active, const Values<G>& at, const ActiveRow& ki,
                     std::size_t i, G m) {
  Partner best;
  const std::size_t group = active.group(i);
  for (const Segment& s : active.segments()) {
    if (s.group != group) continue;
    Best found;
    Passes<G>::second()(s.size(), at.g + s.first, at.low + s.first, at.diagonal + s.first, ki.at(s),
                        at.diagonal[i], m, at.tau, &found);
    if (found.gain > best.gain) best = {found.gain, s.first + found.index};
  }
  return best;
}

// A float32 gradient is trusted down to so many units in the last place of its largest entry.
inline constexpr double kFloatResolution = 16.0 * std::numeric_limits<float>::epsilon();

// Gaps below this part of the extremes tell nothing; a solver goes on in double precision.
template <class G>
inline constexpr double kResolution = std::is_same_v<G, double> ? 0.0 : kFloatResolution;

template <class G>
double resolution(const GroupState<G>* groups) {
  double largest = 0.0;
  for (std::size_t k = 0; k < 2; ++k) {
    if (groups[k].gap() > 0.0) {
      largest = std::max({largest, std::abs(static_cast<double>(groups[k].max_up)),
                          std::abs(static_cast<double>(groups[k].min_low))});
    }
  }
  return kResolution<G> * largest;
}

}  // namespace onefit
