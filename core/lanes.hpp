// Vectors of numbers with the largest of their lanes, for loops_impl.cpp alone: compiled with it
// once per instruction set, so that everything here is local to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

namespace onefit {
namespace {

// An arg-max keeps a best value and its index in every lane of a vector and compares the lanes once
// at the end. Compilers do not find that form by themselves, so these two passes use the vector
// types that GCC and Clang have for every target. Two vectors at a time hide the latency of the
// blends.

template <class T, std::size_t L>
struct VectorOf {
  typedef T type __attribute__((vector_size(L * sizeof(T))));
};
template <class T, std::size_t L>
using Vector = typename VectorOf<T, L>::type;

template <class T, std::size_t L>
inline Vector<T, L> load(const T* p) {
  Vector<T, L> v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

template <class T, std::size_t L>
inline Vector<T, L> fill(T value) {
  return Vector<T, L>{} + value;
}

// float32 as lanes of G. Compilers convert halves of vectors and join them, if they are let.
template <class G, std::size_t L>
inline Vector<G, L> as(Vector<float, L> v) {
  if constexpr (sizeof(G) == sizeof(float)) {
    return v;
  } else {
#if defined(__AVX512F__)
    if constexpr (L == 8) return (Vector<G, L>)_mm512_cvtps_pd((__m256)v);
#endif
#if defined(__AVX2__)
    if constexpr (L == 4) return (Vector<G, L>)_mm256_cvtps_pd((__m128)v);
#endif
    return __builtin_convertvector(v, Vector<G, L>);
  }
}
template <class G, std::size_t L>
inline Vector<G, L> load_as(const float* p) {
  return as<G, L>(load<float, L>(p));
}

// Integers of 16 bits as ones of 32, and those as float32.
template <std::size_t L>
inline Vector<std::int32_t, L> widened(const std::uint16_t* p) {
#if defined(__AVX512F__)
  if constexpr (L == 16) {
    __m256i v;
    std::memcpy(&v, p, sizeof v);
    return (Vector<std::int32_t, L>)_mm512_cvtepu16_epi32(v);
  }
#endif
#if defined(__AVX2__)
  if constexpr (L == 8) {
    __m128i v;
    std::memcpy(&v, p, sizeof v);
    return (Vector<std::int32_t, L>)_mm256_cvtepu16_epi32(v);
  }
#endif
  return __builtin_convertvector((load<std::uint16_t, L>(p)), Vector<std::int32_t, L>);
}
template <std::size_t L>
inline Vector<float, L> numbers(Vector<std::int32_t, L> v) {
  return __builtin_convertvector(v, Vector<float, L>);
}

// Whether lanes can be chosen by the bits of bytes in an instruction or two; where it takes three,
// with AVX2, reading more numbers is as fast.
#if defined(__AVX512F__)
inline constexpr bool kChoosesByBytes = true;
#else
inline constexpr bool kChoosesByBytes = false;
#endif

// `v` in the lanes whose byte has bit `k`, `other` in those without.
template <int k, std::size_t L>
inline Vector<float, L> where(const std::uint8_t* bytes, Vector<float, L> v, float other) {
#if defined(__AVX512F__)
  if constexpr (L == 16) {
    __m128i b;
    std::memcpy(&b, bytes, sizeof b);
    const __mmask16 has = _mm_test_epi8_mask(b, _mm_set1_epi8(1 << k));
    return (Vector<float, L>)_mm512_mask_blend_ps(has, _mm512_set1_ps(other), (__m512)v);
  }
#endif
  const auto has = __builtin_convertvector((load<std::uint8_t, L>(bytes)), Vector<std::int32_t, L>);
  return (has & (1 << k)) != 0 ? v : fill<float, L>(other);
}

// a > b ? a : b, and a < b ? a : b, lane by lane: one instruction, which compilers do not find in
// all places.
template <class T, std::size_t L>
inline Vector<T, L> larger_of(Vector<T, L> a, Vector<T, L> b) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == sizeof(float) && L == 16) {
    return (Vector<T, L>)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
  }
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(T) == sizeof(float) && L == 8) {
    return (Vector<T, L>)_mm256_max_ps((__m256)a, (__m256)b);
  }
#endif
  return a > b ? a : b;
}

// Integers as wide as T, so that a comparison of T selects among them.
template <class T>
struct IndexOf;
template <>
struct IndexOf<float> {
  using type = std::int32_t;
};
template <>
struct IndexOf<double> {
  using type = std::int64_t;
};

template <class T, std::size_t L>
struct ArgMax {
  using Index = typename IndexOf<T>::type;
  Vector<T, L> value;
  Vector<Index, L> index;

  static ArgMax none(T lowest) { return {fill<T, L>(lowest), Vector<Index, L>{}}; }
  void look(Vector<T, L> v, Vector<Index, L> at) {
    index = v > value ? at : index;
    value = larger_of<T, L>(v, value);
  }
};

// The lower or upper half of a vector.
template <class V, class H>
inline H half(const V& v, std::size_t which) {
  H h;
  std::memcpy(&h, reinterpret_cast<const char*>(&v) + which * sizeof h, sizeof h);
  return h;
}

// The best of all lanes, by halving: branches on single lanes would be guessed wrong too often.
template <class T, std::size_t L>
inline void reduce(const ArgMax<T, L>& best, T* value, std::size_t* index) {
#if defined(__AVX512F__)
  if constexpr (L * sizeof(T) == 64 && sizeof(T) == sizeof(float)) {
    // The value first, then the lane that has it.
    const __m512 v = (__m512)best.value;
    *value = _mm512_reduce_max_ps(v);
    const unsigned equal = _mm512_cmpeq_ps_mask(v, _mm512_set1_ps(*value));
    std::int32_t indices[L];
    std::memcpy(indices, &best.index, sizeof indices);
    *index = static_cast<std::size_t>(indices[equal == 0 ? 0 : __builtin_ctz(equal)]);
    return;
  }
#endif
  if constexpr (L == 1) {
    *value = best.value[0];
    *index = static_cast<std::size_t>(best.index[0]);
  } else {
    using Index = typename IndexOf<T>::type;
    ArgMax<T, L / 2> low{half<Vector<T, L>, Vector<T, L / 2>>(best.value, 0),
                         half<Vector<Index, L>, Vector<Index, L / 2>>(best.index, 0)};
    low.look(half<Vector<T, L>, Vector<T, L / 2>>(best.value, 1),
             half<Vector<Index, L>, Vector<Index, L / 2>>(best.index, 1));
    reduce(low, value, index);
  }
}

template <class T, std::size_t L>
inline T least(Vector<T, L> v) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == sizeof(float) && L == 16) return _mm512_reduce_min_ps((__m512)v);
#endif
  if constexpr (L == 1) {
    return v[0];
  } else {
    const auto low = half<Vector<T, L>, Vector<T, L / 2>>(v, 0);
    const auto high = half<Vector<T, L>, Vector<T, L / 2>>(v, 1);
    return least<T, L / 2>(low < high ? low : high);
  }
}

template <class Index, std::size_t L>
inline Vector<Index, L> count_up() {
  Vector<Index, L> v{};
  for (std::size_t l = 0; l < L; ++l) v[l] = static_cast<Index>(l);
  return v;
}

}  // namespace
}  // namespace onefit
