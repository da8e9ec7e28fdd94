// Compiled several times, once per instruction set, with ONEFIT_ISA as the name of the result and
// ONEFIT_VECTOR_BYTES as the width of its registers.
//
// Nothing here may call an inline function of the standard library: the linker keeps one copy of
// such a function for the whole program, and it might be the one that needs AVX-512.
#include <cstring>
#include <type_traits>

#include "lanes.hpp"
#include "loops.hpp"

#define ONEFIT_RESTRICT __restrict__

namespace onefit {
namespace {

// ---- passes of the SMO loop ---------------------------------------------------------------------

template <class G>
void sweep(std::size_t n, G* ONEFIT_RESTRICT g, const float* ONEFIT_RESTRICT up,
           const float* ONEFIT_RESTRICT low, const float* ONEFIT_RESTRICT ki,
           const float* ONEFIT_RESTRICT kj, G step, Extremes<G>* out) {
  constexpr std::size_t L = ONEFIT_VECTOR_BYTES / sizeof(G);
  using Index = typename IndexOf<G>::type;
  const G never = static_cast<G>(kNever);
  Extremes<G> e;
  if (n < L) {
    for (std::size_t t = 0; t < n; ++t) {
      const G v = g[t] - step * (static_cast<G>(ki[t]) - static_cast<G>(kj[t]));
      g[t] = v;
      const G u = v + static_cast<G>(up[t]);
      const G w = v + static_cast<G>(low[t]);
      if (u > e.max_up) {
        e.max_up = u;
        e.index = t;
      }
      e.min_low = w < e.min_low ? w : e.min_low;
    }
    *out = e;
    return;
  }
  auto best0 = ArgMax<G, L>::none(-never);
  auto best1 = best0;
  Vector<G, L> least0 = fill<G, L>(never);
  Vector<G, L> least1 = least0;
  const Vector<Index, L> lanes = count_up<Index, L>();
  Vector<Index, L> at = lanes;
  const auto pass = [&](std::size_t t, Vector<G, L> steps, ArgMax<G, L>& best,
                        Vector<G, L>& smallest) {
    const Vector<G, L> v =
        load<G, L>(g + t) - steps * (load_as<G, L>(ki + t) - load_as<G, L>(kj + t));
    std::memcpy(g + t, &v, sizeof v);
    best.look(v + load_as<G, L>(up + t), at);
    const Vector<G, L> w = v + load_as<G, L>(low + t);
    smallest = w < smallest ? w : smallest;
    at += static_cast<Index>(L);
  };
  const Vector<G, L> steps = fill<G, L>(step);
  std::size_t t = 0;
  for (; t + 2 * L <= n; t += 2 * L) {
    pass(t, steps, best0, least0);
    pass(t + L, steps, best1, least1);
  }
  if (t + L <= n) {
    pass(t, steps, best0, least0);
    t += L;
  }
  if (t < n) {  // the last L entries once more; those that have had their step get none
    const auto done = static_cast<Index>(t - (n - L));
    at = lanes + static_cast<Index>(n - L);
    pass(n - L, lanes >= done ? steps : Vector<G, L>{}, best1, least1);
  }
  best0.look(best1.value, best1.index);
  reduce(best0, &e.max_up, &e.index);
  e.min_low = least<G, L>(least0 < least1 ? least0 : least1);
  *out = e;
}

// 1 / sqrt(a), to 11 bits or better: enough to compare gains, and several times faster than a
// root and a division.
template <std::size_t L>
inline Vector<float, L> rough_inverse_root(Vector<float, L> a) {
#if defined(__AVX512F__)
  if constexpr (L == 16) return (Vector<float, L>)_mm512_maskz_rsqrt14_ps(0xffff, (__m512)a);
#endif
#if defined(__AVX2__)
  if constexpr (L == 8) return (Vector<float, L>)_mm256_rsqrt_ps((__m256)a);
#endif
  Vector<float, L> root;
  for (std::size_t l = 0; l < L; ++l) root[l] = __builtin_sqrtf(a[l]);
  return fill<float, L>(1.0F) / root;
}

// What steps of a row with others promise: violation / sqrt(curvature), 0 (or, where there is no
// curvature either, not a number, which no comparison chooses) where there is no violation.
// Gains are compared, not accumulated: float32 is enough for them whatever g is kept in.
template <class G, std::size_t L>
inline Vector<float, L> gains(Vector<G, L> violation, Vector<float, L> both_diagonals,
                              Vector<float, L> entries, Vector<float, L> tau) {
  Vector<float, L> d;
  if constexpr (sizeof(G) == sizeof(float)) {
    d = violation;
  } else {
    d = __builtin_convertvector(violation, Vector<float, L>);
  }
  d = larger_of<float, L>(d, Vector<float, L>{});
  const Vector<float, L> curvature = both_diagonals - 2.0F * entries;
  return d * rough_inverse_root<L>(larger_of<float, L>(curvature, tau));
}

}  // namespace
}  // namespace onefit

#include "bounded_impl.hpp"
#include "burst_impl.hpp"
#include "rbf_impl.hpp"
#include "trend_impl.hpp"

namespace onefit {
namespace {

template <class G>
void second(std::size_t n, const G* ONEFIT_RESTRICT g, const float* ONEFIT_RESTRICT low,
            const float* ONEFIT_RESTRICT diag, const float* ONEFIT_RESTRICT ki, float kii, G m,
            float tau, Best* out) {
  constexpr std::size_t L = ONEFIT_VECTOR_BYTES / sizeof(G);
  Best b;
  if (n < L) {
    for (std::size_t t = 0; t < n; ++t) {
      const float violation = static_cast<float>(m - (g[t] + static_cast<G>(low[t])));
      const float d = violation > 0.0F ? violation : 0.0F;
      const float curvature = kii + diag[t] - 2.0F * ki[t];
      const float value = d / __builtin_sqrtf(curvature > tau ? curvature : tau);
      if (value > b.gain) {
        b.gain = value;
        b.index = t;
      }
    }
    *out = b;
    return;
  }
  auto best0 = ArgMax<float, L>::none(0.0F);
  auto best1 = best0;
  const Vector<std::int32_t, L> lanes = count_up<std::int32_t, L>();
  Vector<std::int32_t, L> at = lanes;
  const Vector<G, L> ms = fill<G, L>(m);
  const Vector<float, L> kiis = fill<float, L>(kii);
  const Vector<float, L> taus = fill<float, L>(tau);
  const auto pass = [&](std::size_t t, ArgMax<float, L>& best) {
    const Vector<G, L> violation = ms - (load<G, L>(g + t) + load_as<G, L>(low + t));
    const Vector<float, L> both = kiis + load<float, L>(diag + t);
    best.look(gains<G, L>(violation, both, load<float, L>(ki + t), taus), at);
    at += static_cast<std::int32_t>(L);
  };
  std::size_t t = 0;
  for (; t + 2 * L <= n; t += 2 * L) {
    pass(t, best0);
    pass(t + L, best1);
  }
  if (t + L <= n) {
    pass(t, best0);
    t += L;
  }
  if (t < n) {  // the last L entries once more
    at = lanes + static_cast<std::int32_t>(n - L);
    pass(n - L, best1);
  }
  best0.look(best1.value, best1.index);
  reduce(best0, &b.gain, &b.index);
  *out = b;
}

Vector<double, 4> four(const float* row) { return load_as<double, 4>(row); }
Vector<double, 4> four(const Coarse* row) {
#if defined(__AVX2__)
  std::int64_t units;
  std::memcpy(&units, row, sizeof units);
  return (Vector<double, 4>)_mm256_cvtepi32_pd(_mm_cvtepu16_epi32(_mm_cvtsi64_si128(units)));
#else
  return __builtin_convertvector((load<Coarse, 4>(row)), Vector<double, 4>);
#endif
}

// acc += sum of coef * row, of R rows. Four lanes: entries are converted as they are read, and
// wider conversions take longer than they save.
template <std::size_t R, class Row>
void accumulate_some(std::size_t n, double* acc, const Row* const* rows, const double* coef) {
  using Four = Vector<double, 4>;
  constexpr double kUnit = std::is_same_v<Row, Coarse> ? static_cast<double>(kCoarseUnit) : 1.0;
  const Row* at[R];
  Four factor[R];
  for (std::size_t r = 0; r < R; ++r) {
    at[r] = rows[r];
    factor[r] = fill<double, 4>(kUnit * coef[r]);
  }
  const auto add = [&](std::size_t t) {
    Four sum = load<double, 4>(acc + t);
    for (std::size_t r = 0; r < R; ++r) sum += factor[r] * four(at[r] + t);
    return sum;
  };
  std::size_t t = 0;
  for (; t + 8 <= n; t += 8) {
    const Four low = add(t);
    const Four high = add(t + 4);
    std::memcpy(acc + t, &low, sizeof low);
    std::memcpy(acc + t + 4, &high, sizeof high);
  }
  if (t + 4 <= n) {
    const Four sum = add(t);
    std::memcpy(acc + t, &sum, sizeof sum);
    t += 4;
  }
  if (t < n && n >= 4) {  // the last four once more, of which some are there
    const auto there = static_cast<std::int64_t>(4 - (n - t));
    const Four sum =
        count_up<std::int64_t, 4>() < there ? load<double, 4>(acc + n - 4) : add(n - 4);
    std::memcpy(acc + n - 4, &sum, sizeof sum);
    return;
  }
  for (; t < n; ++t) {
    for (std::size_t r = 0; r < R; ++r) acc[t] += kUnit * coef[r] * static_cast<double>(at[r][t]);
  }
}

template <class Row>
void accumulate(std::size_t n, double* acc, const Row* const* rows, const double* coef,
                std::size_t count) {
  std::size_t r = 0;
  for (; r + kRowsAtOnce <= count; r += kRowsAtOnce) {
    accumulate_some<kRowsAtOnce>(n, acc, rows + r, coef + r);
  }
  if (r + 4 <= count) {
    accumulate_some<4>(n, acc, rows + r, coef + r);
    r += 4;
  }
  if (r + 2 <= count) {
    accumulate_some<2>(n, acc, rows + r, coef + r);
    r += 2;
  }
  if (r < count) accumulate_some<1>(n, acc, rows + r, coef + r);
}

// ---- paths (path.hpp)
// -----------------------------------------------------------------------------

void combine(std::size_t n, double* ONEFIT_RESTRICT out, const double* const* columns,
             const double* coef, std::size_t count) {
  std::memset(out, 0, n * sizeof *out);
  std::size_t k = 0;
  for (; k + 4 <= count; k += 4) {
    const double* ONEFIT_RESTRICT r0 = columns[k];
    const double* ONEFIT_RESTRICT r1 = columns[k + 1];
    const double* ONEFIT_RESTRICT r2 = columns[k + 2];
    const double* ONEFIT_RESTRICT r3 = columns[k + 3];
    const double c0 = coef[k];
    const double c1 = coef[k + 1];
    const double c2 = coef[k + 2];
    const double c3 = coef[k + 3];
#pragma omp simd
    for (std::size_t t = 0; t < n; ++t) {
      out[t] += (c0 * r0[t] + c1 * r1[t]) + (c2 * r2[t] + c3 * r3[t]);
    }
  }
  for (; k < count; ++k) {
    const double* ONEFIT_RESTRICT r = columns[k];
    const double c = coef[k];
#pragma omp simd
    for (std::size_t t = 0; t < n; ++t) out[t] += c * r[t];
  }
}

double dot(std::size_t n, const double* ONEFIT_RESTRICT a, const double* ONEFIT_RESTRICT b) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t t = 0; t < n; ++t) sum += a[t] * b[t];
  return sum;
}

void advance(std::size_t n, double* ONEFIT_RESTRICT x, const double* ONEFIT_RESTRICT rate,
             double step) {
#pragma omp simd
  for (std::size_t t = 0; t < n; ++t) x[t] += step * rate[t];
}

// Rates are divided by room, not room by rates: what does not move has all the time there is.
void nearest(std::size_t n, const double* ONEFIT_RESTRICT x, const double* ONEFIT_RESTRICT low,
             const double* ONEFIT_RESTRICT high, const double* ONEFIT_RESTRICT rate, Nearest* out) {
  constexpr std::size_t L = ONEFIT_VECTOR_BYTES / sizeof(double);
  constexpr double kLeast = 1e-300;
  auto best = ArgMax<double, L>::none(0.0);
  Vector<std::int64_t, L> at = count_up<std::int64_t, L>();
  std::size_t t = 0;
  for (; t + L <= n; t += L) {
    const Vector<double, L> v = load<double, L>(rate + t);
    const Vector<double, L> here = load<double, L>(x + t);
    const auto rises = v > 0.0;
    Vector<double, L> room =
        rises ? load<double, L>(high + t) - here : here - load<double, L>(low + t);
    room = room > kLeast ? room : fill<double, L>(kLeast);
    best.look((rises ? v : -v) / room, at);
    at += static_cast<std::int64_t>(L);
  }
  Nearest found;
  reduce(best, &found.inverse, &found.index);
  for (; t < n; ++t) {
    const double room = rate[t] > 0.0 ? high[t] - x[t] : x[t] - low[t];
    const double inverse = (rate[t] > 0.0 ? rate[t] : -rate[t]) / (room > kLeast ? room : kLeast);
    if (inverse > found.inverse) found = {inverse, t};
  }
  *out = found;
}

// ---- dot products with a panel of rows ----------------------------------------------------------

// Q queries times Width vectors of a panel, all sums in registers: each value of the panel that is
// loaded serves Q products, each value of a query Width of them.
template <class T, std::size_t Q, std::size_t Width>
inline void panel_part(std::size_t d, const T* panel, const T* rows, T* dot, std::size_t ld) {
  constexpr std::size_t L = ONEFIT_VECTOR_BYTES / sizeof(T);
  Vector<T, L> acc[Q][Width] = {};
  for (std::size_t k = 0; k < d; ++k) {
    Vector<T, L> x[Width];
    for (std::size_t w = 0; w < Width; ++w) x[w] = load<T, L>(panel + k * kPanel + w * L);
    for (std::size_t q = 0; q < Q; ++q) {
      const Vector<T, L> v = fill<T, L>(rows[q * d + k]);
      for (std::size_t w = 0; w < Width; ++w) acc[q][w] += v * x[w];
    }
  }
  for (std::size_t q = 0; q < Q; ++q) {
    for (std::size_t w = 0; w < Width; ++w) {
      std::memcpy(dot + q * ld + w * L, &acc[q][w], sizeof acc[q][w]);
    }
  }
}

template <class T>
void panel(std::size_t d, const T* x, std::size_t count, const T* rows, T* dot, std::size_t ld) {
  constexpr std::size_t L = ONEFIT_VECTOR_BYTES / sizeof(T);
  // Registers: 4 x 4 sums where there are 32 (AVX-512), 4 x 2 where there are 16.
  constexpr std::size_t Width = ONEFIT_VECTOR_BYTES == 64 ? 4 : 2;
  for (std::size_t t = 0; t < kPanel; t += Width * L) {
    for (std::size_t q = 0; q < count; q += 4) {
      const T* first = rows + q * d;
      T* out = dot + q * ld + t;
      switch (count - q) {
        case 1:
          panel_part<T, 1, Width>(d, x + t, first, out, ld);
          break;
        case 2:
          panel_part<T, 2, Width>(d, x + t, first, out, ld);
          break;
        case 3:
          panel_part<T, 3, Width>(d, x + t, first, out, ld);
          break;
        default:
          panel_part<T, 4, Width>(d, x + t, first, out, ld);
      }
    }
  }
}

// ---- columns of a row ---------------------------------------------------------------------------

template <class To, class From>
To rounded(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else {
    return static_cast<To>(value * kCoarseUnits + 0.5F);
  }
}

#if defined(__AVX512F__)
__m512 chosen(__mmask16 mask, const float* row) {
  return _mm512_maskz_compress_ps(mask, _mm512_maskz_loadu_ps(mask, row));
}
__m512i chosen(__mmask16 mask, const Coarse* row) {
  return _mm512_maskz_compress_epi32(mask,
                                     _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, row)));
}
void write(__m512 values, float* to) { _mm512_storeu_ps(to, values); }
void write(__m512i values, Coarse* to) {
  const __m256i coarse = _mm512_cvtepi32_epi16(values);
  std::memcpy(to, &coarse, sizeof coarse);
}
void write(__m512 values, Coarse* to) {
  write(_mm512_cvtps_epi32(_mm512_mul_ps(values, _mm512_set1_ps(kCoarseUnits))), to);
}
#endif

template <class To, class From>
void gather(const Columns& columns, const From* row, To* to) {
#if defined(__AVX512F__)
  // One mask takes about as long as three columns.
  if (columns.n_masks > 0 && 3 * columns.n_masks < columns.count) {
    for (std::size_t k = 0; k < columns.n_masks; ++k) {
      write(chosen(columns.masks[k], row + k * kLanes), to);
      to += __builtin_popcount(columns.masks[k]);
    }
    return;
  }
#endif
  for (std::size_t c = 0; c < columns.count; ++c) {
    to[c] = rounded<To>(row[columns.offsets[c]]);
  }
}

// ---- CSR rows times a small dense block ---------------------------------------------------------

template <class T>
void csr(std::size_t rows, const std::int64_t* indptr, const std::int32_t* indices, const T* data,
         const T* ONEFIT_RESTRICT w, T* ONEFIT_RESTRICT tile) {
  for (std::size_t t = 0; t < rows; ++t) {
    T acc[kLanes] = {};
    for (std::int64_t e = indptr[t]; e < indptr[t + 1]; ++e) {
      const T v = data[e];
      const T* wc = w + static_cast<std::size_t>(indices[e]) * kLanes;
#pragma omp simd
      for (std::size_t l = 0; l < kLanes; ++l) {
        acc[l] += v * wc[l];
      }
    }
    for (std::size_t l = 0; l < kLanes; ++l) {
      tile[t * kLanes + l] = acc[l];
    }
  }
}

}  // namespace

#define ONEFIT_STRING2(x) #x
#define ONEFIT_STRING(x) ONEFIT_STRING2(x)
#define ONEFIT_TABLE2(isa) loops_##isa
#define ONEFIT_TABLE(isa) ONEFIT_TABLE2(isa)

extern const Loops ONEFIT_TABLE(ONEFIT_ISA);
const Loops ONEFIT_TABLE(ONEFIT_ISA) = {
    ONEFIT_STRING(ONEFIT_ISA),
    sweep<float>,
    sweep<double>,
    second<float>,
    second<double>,
    burst<float>,
    burst<double>,
    two_bursts,
    shifts,
    summarise,
    accumulate<float>,
    accumulate<Coarse>,
    gather<float, float>,
    gather<Coarse, float>,
    gather<Coarse, Coarse>,
    combine,
    advance,
    dot,
    nearest,
    end_window,
    find_rooms,
    measure_direction,
    go_along,
    rbf<float>,
    rbf<double>,
    rbf_df,
    rbf_from_distance,
    distance<float>,
    distance<double>,
    panel<float>,
    panel<double>,
    csr<float>,
    csr<double>,
};

}  // namespace onefit
