// The loops that the time goes into, compiled once per instruction set and chosen at run time.
//
// The loops are plain C++ over contiguous arrays that compilers vectorise, or use the vector types
// that GCC and Clang have for every target, so that one source serves AVX-512, AVX2 and any other
// machine.
#pragma once

#include <cstddef>
#include <cstdint>

#include "burst.hpp"

namespace onefit {

// The CSR product works on this many kernel rows at a time, and columns of rows are gathered from
// as many at a time.
inline constexpr std::size_t kLanes = 16;

// Rows that a sum of them reads together.
inline constexpr std::size_t kRowsAtOnce = 8;

// Dense data are laid out in panels of this many rows, feature by feature, so that products with a
// panel read memory in order.
inline constexpr std::size_t kPanel = 64;

// Largest gain and where it stands. A gain is the root of what a step promises, so that no
// violation is too large or too small to be squared.
struct Best {
  float gain = 0.0F;
  std::size_t index = 0;
};

// Inverse of the smallest distance to a limit and where it stands.
struct Nearest {
  double inverse = 0.0;
  std::size_t index = 0;
};

// Some columns of a row: where each is and, if they rise, which they are of each kLanes in turn, as
// the bits of a mask.
struct Columns {
  std::size_t count;
  const std::uint32_t* offsets;
  std::size_t n_masks;  // 0: they do not rise
  const std::uint16_t* masks;
};

// What trend.hpp has of each position, and of n of them in all, padding included.
struct TrendArrays {
  std::size_t n;
  double kink;
  const float* up;
  const float* low;
  const double* lower;
  const double* upper;
  double* b;
  double* g;
  double* direction;
  double* rate;  // of g along the direction
  double* end;   // of the way that b may go
  double* room;  // as far as there
};

// By how much coefficients have changed in all, and the largest gradient, without its sign.
struct TrendSizes {
  double changed;
  double largest;
};

// What the objective gains on the first bit of a way, and how that falls.
struct TrendSlope {
  double slope;
  double curvature;
};

// What is known of some variables (kkt.hpp): extremes of u and l, the sum and number of those where
// both are equal, their part of the objective, and their coefficients: the sum of squares and the
// largest, without its sign.
struct Summary {
  double max_up = -kNever;
  double min_low = kNever;
  double free_sum = 0.0;
  double free_count = 0.0;
  double objective = 0.0;
  double squares = 0.0;
  double largest = 0.0;
};

struct Loops {
  const char* name;

  // g -= step * (ki - kj), then the extremes of g + up and g + low.
  void (*sweep_f)(std::size_t n, float* g, const float* up, const float* low, const float* ki,
                  const float* kj, float step, Extremes<float>* out);
  void (*sweep_d)(std::size_t n, double* g, const float* up, const float* low, const float* ki,
                  const float* kj, double step, Extremes<double>* out);

  // Second-order choice: the largest (m - (g + low))^2 / (kii + diag - 2 ki) over g + low < m,
  // where what is below the fraction line counts as `tau` at least.
  void (*second_f)(std::size_t n, const float* g, const float* low, const float* diag,
                   const float* ki, float kii, float m, float tau, Best* out);
  void (*second_d)(std::size_t n, const double* g, const float* low, const float* diag,
                   const float* ki, float kii, double m, float tau, Best* out);

  // Iterations of SMO (burst.hpp).
  void (*burst_f)(Burst<float>* arguments);
  void (*burst_d)(Burst<double>* arguments);
  // Iterations of two problems in turn, until one of the two ends; both with ways or both without,
  // and without coarse rows.
  void (*two_bursts_f)(Burst<float>* a, Burst<float>* b);

  // What up_shift and low_shift (kkt.hpp) give, with the kink that they round.
  void (*shifts)(std::size_t n, const double* beta, const double* lower, const double* upper,
                 double kink, float* up, float* low);
  // Adds variables to a summary; `shift` is the kink as u and l have it.
  void (*summarise)(std::size_t n, const double* beta, const double* gradient, const double* linear,
                    const double* lower, const double* upper, double shift, double kink,
                    Summary* out);

  // acc += sum of coef * row in double precision, of so many rows: kRowsAtOnce are read together.
  void (*accumulate)(std::size_t n, double* acc, const float* const* rows, const double* coef,
                     std::size_t count);
  void (*accumulate_coarse)(std::size_t n, double* acc, const Coarse* const* rows,
                            const double* coef, std::size_t count);

  // The columns of a row, one after the other; `to` may be the row itself if they rise. Up to
  // kLanes more are written.
  void (*gather)(const Columns& columns, const float* row, float* to);
  void (*gather_as_coarse)(const Columns& columns, const float* row, Coarse* to);
  void (*gather_coarse)(const Columns& columns, const Coarse* row, Coarse* to);

  // out = sum of coef * column; x += step * rate.
  void (*combine)(std::size_t n, double* out, const double* const* columns, const double* coef,
                  std::size_t count);
  void (*advance)(std::size_t n, double* x, const double* rate, double step);
  double (*dot)(std::size_t n, const double* a, const double* b);
  // The first x + t * rate to leave [low, high], by the largest 1 / t.
  void (*nearest)(std::size_t n, const double* x, const double* low, const double* high,
                  const double* rate, Nearest* out);

  // What a window of iterations has changed, and what steps are worth now; ends and rooms of a
  // direction, and the inverse of the nearest end; what a direction promises; a step along it.
  TrendSizes (*end_window)(const TrendArrays& a, const double* b_before, const double* g_before,
                           double* change, double* gradient_change, double* slopes);
  double (*find_rooms)(const TrendArrays& a);
  TrendSlope (*measure_direction)(const TrendArrays& a);
  void (*go_along)(const TrendArrays& a, double length);

  // Kernel values from dot products of one row with n others; `sq` are their squared norms.
  void (*rbf_f)(std::size_t n, const float* dot, const float* sq, float sq_row, float gamma,
                float* out);
  void (*rbf_d)(std::size_t n, const double* dot, const double* sq, double sq_row, double gamma,
                double* out);
  // Distances in double precision, the exponential in float32.
  void (*rbf_df)(std::size_t n, const double* dot, const double* sq, double sq_row, double gamma,
                 float* out);
  void (*rbf_from_distance)(std::size_t n, const float* distance, float gamma, float* out);
  void (*distance_f)(std::size_t n, const float* dot, const float* sq, float sq_row, float* out);
  void (*distance_d)(std::size_t n, const double* dot, const double* sq, double sq_row,
                     double* out);

  // dot[q * ld + t] = sum over k < d of rows[q * d + k] * panel[k * kPanel + t], for q < count and
  // t < kPanel.
  void (*panel_f)(std::size_t d, const float* panel, std::size_t count, const float* rows,
                  float* dot, std::size_t ld);
  void (*panel_d)(std::size_t d, const double* panel, std::size_t count, const double* rows,
                  double* dot, std::size_t ld);

  // tile[t * kLanes + l] = sum over the entries (c, v) of CSR row t of v * w[c * kLanes + l].
  void (*csr_f)(std::size_t rows, const std::int64_t* indptr, const std::int32_t* indices,
                const float* data, const float* w, float* tile);
  void (*csr_d)(std::size_t rows, const std::int64_t* indptr, const std::int32_t* indices,
                const double* data, const double* w, double* tile);
};

// The loops for this machine: the widest instruction set that it has.
const Loops& loops();

// Names that select_loops accepts here, widest first.
std::size_t available_loops(const char** names, std::size_t max);

// Chooses an instruction set by name (for tests); false when this machine does not have it.
bool select_loops(const char* name);

}  // namespace onefit
