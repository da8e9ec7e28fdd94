// Many iterations of SMO in one call, for problems with one sum whose kernel rows stay where they
// are.
//
// An iteration on a few hundred variables is two passes of some twenty vectors each. As much time
// again goes into what is around them if every pass is a call that hands over its results: so the
// whole loop is compiled for each instruction set, and left only when there is something else to
// do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace onefit {

// A variable that may not move up (down) gets its up (low) value shifted out of reach by this
// much: no gradient is so large that it comes back.
inline constexpr float kNever = std::numeric_limits<float>::infinity();

// Pairs are compared as if they curved by at least this part of the largest diagonal entry: kernels
// that are not positive semi-definite (sigmoid) and duplicate rows give a curvature of zero or
// less.
inline constexpr float kTau = 1e-12F;

// Largest g + up and where it stands, smallest g + low.
template <class G>
struct Extremes {
  G max_up = -kNever;
  G min_low = kNever;
  std::size_t index = 0;
};

// Arrays that a burst works on have so many entries more than there are positions: it reads and
// writes whole vectors.
inline constexpr std::size_t kBurstPad = 16;

// A pair has to curve by this share of its diagonal entries for a longer step: what rounding makes
// of less would send equal rows to and fro.
inline constexpr double kLeastOverstepped = 1e-5;

// A kernel value between 0 and 1, in 16 bits: half the bytes, where rows are in no cache.
using Coarse = std::uint16_t;
inline constexpr float kCoarseUnits = 65535.0F;  // that 1 has
inline constexpr float kCoarseUnit = 1.0F / kCoarseUnits;

// Which ways a variable may go, where that is all there is to know of it: without a kink, and with
// the same diagonal for all. One byte to read where there would be three numbers.
using Ways = std::uint8_t;
inline constexpr int kRises = 0;  // which bit says so
inline constexpr int kFalls = 1;
inline constexpr Ways ways_of(float up, float low) {
  return static_cast<Ways>((up == 0.0F ? 1 << kRises : 0) | (low == 0.0F ? 1 << kFalls : 0));
}

// Positions that are next to each other in a kernel row.
struct BurstPart {
  std::size_t first;
  std::size_t size;
};

enum class BurstEnd {
  Used,        // all iterations that were allowed
  GapReached,  // the gap is below the tolerance, or below what g can resolve
  Stalled,     // no step changes the variables any more
};

template <class G>
struct Burst {
  // Per position.
  G* g;
  float* up;
  float* low;
  Ways* ways;  // nullptr where there is more to know
  const float* diagonal;
  const std::int32_t* variable;
  // rows[p * n_parts + k]: the row of position p in the columns of part k, nullptr if not known.
  const float* const* rows;
  const Coarse* const* coarse_rows;  // nullptr, or what to read instead
  const BurstPart* parts;
  std::size_t n_parts;
  // Per variable.
  double* beta;
  const double* lower;
  const double* upper;
  double kink;

  float tau = kTau;       // the least curvature that pairs are compared with
  double overstep = 1.0;  // steps, as a multiple of those to the optimum of two variables
  double tol;
  double resolution;   // of g, relative to its extremes
  std::int64_t limit;  // `fetch` may lower it

  // Makes the row of a position known, and keeps that of another. Called where there is none.
  void (*fetch)(Burst& burst, std::size_t position, std::size_t keep);
  void* context;

  Extremes<G> extremes;  // of g, before and after

  // What it came to.
  std::int64_t done = 0;
  double gain = 0.0;  // of the objective
  BurstEnd end = BurstEnd::Used;
};

}  // namespace onefit
