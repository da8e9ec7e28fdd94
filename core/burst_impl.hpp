// The loop of burst.hpp, for loops_impl.cpp alone: compiled with it once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "burst.hpp"
#include "lanes.hpp"
#include "loops.hpp"

// The loop is one function: its parts hand over values in registers.
#define ONEFIT_INLINE __attribute__((always_inline)) inline

namespace onefit {
namespace {

// What a part of a kernel row has in the first `count` lanes, and 0 in the others: nothing beyond
// it may be read.
template <class G, std::size_t L>
inline Vector<G, L> load_first(const float* p, std::size_t count) {
#if defined(__AVX512F__)
  const unsigned mask = (1U << count) - 1U;
  if constexpr (L == 16) {
    return (Vector<G, L>)_mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), p);
  } else {
    return as<G, L>((Vector<float, L>)_mm256_maskz_loadu_ps(static_cast<__mmask8>(mask), p));
  }
#elif defined(__AVX2__)
  static constexpr std::int32_t kMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  const std::int32_t* mask = kMasks + 8 - count;
  if constexpr (L == 8) {
    __m256i m;
    std::memcpy(&m, mask, sizeof m);
    return (Vector<G, L>)_mm256_maskload_ps(p, m);
  } else {
    __m128i m;
    std::memcpy(&m, mask, sizeof m);
    return as<G, L>((Vector<float, L>)_mm_maskload_ps(p, m));
  }
#else
  float some[L] = {};
  for (std::size_t l = 0; l < count; ++l) some[l] = p[l];
  return load_as<G, L>(some);
#endif
}

// Sets an entry of two arrays by writing the whole vectors that the next pass will read: a read of
// more than was written last has to wait until it has reached the cache.
template <std::size_t L>
ONEFIT_INLINE void set_entries(float* up, float* low, const BurstPart& part, std::size_t position,
                               float of_up, float of_low) {
  const std::size_t lane = (position - part.first) % L;
  const std::size_t first = position - lane;
  const auto here =
      count_up<std::int32_t, L>() == fill<std::int32_t, L>(static_cast<std::int32_t>(lane));
  const Vector<float, L> ups = here ? fill<float, L>(of_up) : load<float, L>(up + first);
  const Vector<float, L> lows = here ? fill<float, L>(of_low) : load<float, L>(low + first);
  std::memcpy(up + first, &ups, sizeof ups);
  std::memcpy(low + first, &lows, sizeof lows);
}

template <class G>
class Bursting {
 public:
  explicit Bursting(Burst<G>& burst) : b_(burst) {}

  void run() {
    Extremes<G> e = b_.extremes;
    double gain = 0.0;
    std::int64_t done = 0;
    for (Step s; goes_on(e, done) && choose(e, s) && move(s, &gain); ++done) e = sweep(s);
    finish(e, done, gain);
  }

  // The stages of two problems in turn: neither waits for what the other does.
  static void run_both(Bursting& a, Bursting& b) {
    Extremes<G> of_a = a.b_.extremes;
    Extremes<G> of_b = b.b_.extremes;
    double gain_a = 0.0;
    double gain_b = 0.0;
    std::int64_t done = 0;  // by each of them
    bool only_a = false;    // has taken one more
    bool only_b = false;
    for (Step s, t; a.goes_on(of_a, done) && b.goes_on(of_b, done); ++done) {
      const bool a_chooses = a.choose(of_a, s);
      const bool b_chooses = b.choose(of_b, t);
      if (!a_chooses || !b_chooses) break;
      const bool a_moves = a.move(s, &gain_a);
      const bool b_moves = b.move(t, &gain_b);
      if (a_moves) of_a = a.sweep(s);
      if (b_moves) of_b = b.sweep(t);
      only_a = a_moves && !b_moves;
      only_b = b_moves && !a_moves;
      if (!a_moves || !b_moves) break;
    }
    a.finish(of_a, done + (only_a ? 1 : 0), gain_a);
    b.finish(of_b, done + (only_b ? 1 : 0), gain_b);
  }

 private:
  static constexpr std::size_t L = ONEFIT_VECTOR_BYTES / sizeof(G);
  using Index = typename IndexOf<G>::type;

  // What an iteration is about: i rises, j falls.
  struct Step {
    std::size_t i;
    std::size_t j;
    const float* const* ki;
    const float* const* kj;
    double size;
  };

  // Extremes are handed over by value: in memory they might be entries of g.
  ONEFIT_INLINE bool goes_on(Extremes<G> e, std::int64_t done) {
    b_.end = BurstEnd::GapReached;
    const auto high = static_cast<double>(e.max_up);
    const auto low = static_cast<double>(e.min_low);
    const double gap = high - low;
    if (gap < b_.tol || gap < b_.resolution * larger(size_of(high), size_of(low))) return false;
    b_.end = BurstEnd::Used;
    return done < b_.limit;
  }

  ONEFIT_INLINE bool choose(Extremes<G> e, Step& s) {
    s.i = e.index;
    s.ki = b_.rows + s.i * b_.n_parts;
    if (s.ki[0] == nullptr) fetch(e, s.i, s.i);
    const Best best = partner(s.ki, s.i, e.max_up);
    if (!(best.gain > 0.0F)) {
      b_.end = BurstEnd::Stalled;
      return false;
    }
    s.j = best.index;
    s.kj = b_.rows + s.j * b_.n_parts;
    if (s.kj[0] == nullptr) fetch(e, s.j, s.i);
    return true;
  }

  void finish(Extremes<G> e, std::int64_t done, double gain) {
    b_.done = done;
    b_.gain = gain;
    b_.extremes = e;
  }

  static double larger(double a, double b) { return a > b ? a : b; }
  static double size_of(double a) { return a < 0.0 ? -a : a; }

  __attribute__((noinline, cold)) void fetch(Extremes<G> e, std::size_t position,
                                             std::size_t keep) {
    b_.extremes = e;
    b_.fetch(b_, position, keep);
  }

  std::size_t part_of(std::size_t position) const {
    std::size_t k = 0;
    while (k + 1 < b_.n_parts && position >= b_.parts[k + 1].first) ++k;
    return k;
  }

  // The second-order choice, as in loops.hpp.
  ONEFIT_INLINE Best partner(const float* const* ki, std::size_t i, G max_up) const {
    const Vector<std::int32_t, L> lanes = count_up<std::int32_t, L>();
    const Vector<G, L> m = fill<G, L>(max_up);
    const Vector<float, L> kii = fill<float, L>(b_.diagonal[i]);
    auto best0 = ArgMax<float, L>::none(0.0F);
    auto best1 = best0;
    for (std::size_t part = 0; part < b_.n_parts; ++part) {
      const std::size_t size = b_.parts[part].size;
      const std::size_t first = b_.parts[part].first;
      const float* row = ki[part];
      const G* g = b_.g + first;
      const float* low = b_.low + first;
      const float* diagonal = b_.diagonal + first;
      Vector<std::int32_t, L> at = lanes + static_cast<std::int32_t>(first);
      const auto pass = [&](std::size_t t, Vector<float, L> k, Vector<G, L> shift,
                            ArgMax<float, L>& best) {
        const Vector<G, L> violation = m - (load<G, L>(g + t) + shift);
        best.look(gains<G, L>(violation, kii + load<float, L>(diagonal + t), k), at);
        at += static_cast<std::int32_t>(L);
      };
      const auto whole = [&](std::size_t t, ArgMax<float, L>& best) {
        pass(t, load<float, L>(row + t), load_as<G, L>(low + t), best);
      };
      std::size_t t = 0;
      for (; t + 2 * L <= size; t += 2 * L) {
        whole(t, best0);
        whole(t + L, best1);
      }
      if (t + L <= size) {
        whole(t, best0);
        t += L;
      }
      if (t < size) {
        pass(t, load_first<float, L>(row + t, size - t),
             only<G>(load_as<G, L>(low + t), size - t, static_cast<G>(kNever)), best1);
      }
    }
    best0.look(best1.value, best1.index);
    Best found;
    reduce(best0, &found.gain, &found.index);
    return found;
  }

  // Takes the step of i and j; false when it changes neither. Which bound ends a step cannot be
  // guessed: i and j are two lanes, and nothing here is a branch but the last question.
  ONEFIT_INLINE bool move(Step& chosen, double* gain) {
    using Pair = Vector<double, 2>;
    const std::size_t i = chosen.i;
    const std::size_t j = chosen.j;
    const float* const* ki = chosen.ki;
    const auto vi = static_cast<std::size_t>(b_.variable[i]);
    const auto vj = static_cast<std::size_t>(b_.variable[j]);
    const std::size_t part_j = part_of(j);
    const double slope = static_cast<double>(b_.g[i]) + static_cast<double>(b_.up[i]) -
                         static_cast<double>(b_.g[j]) - static_cast<double>(b_.low[j]);
    const auto kij = static_cast<double>(ki[part_j][j - b_.parts[part_j].first]);
    const double curvature = larger(
        static_cast<double>(b_.diagonal[i]) + static_cast<double>(b_.diagonal[j]) - 2.0 * kij,
        static_cast<double>(kTau));
    const Pair before{b_.beta[vi], b_.beta[vj]};
    const Pair lower{b_.lower[vi], b_.lower[vj]};
    const Pair upper{b_.upper[vi], b_.upper[vj]};
    const Pair kink = fill<double, 2>(b_.kink);
    const Pair zero{};
    const Pair way{1.0, -1.0};  // i rises, j falls
    // Where each may go (to zero, if there is a kink between), and how far that is.
    Pair end{upper[0], lower[1]};
    end = (kink > zero) & (before * way < zero) ? zero : end;
    const Pair room = (end - before) * way;
    const Pair other{room[1], room[0]};
    const double least = kLeastOverstepped * (static_cast<double>(b_.diagonal[i]) +
                                              static_cast<double>(b_.diagonal[j]));
    Pair steps = fill<double, 2>((curvature > least ? b_.overstep : 1.0) * slope / curvature);
    steps = steps < room ? steps : room;
    steps = steps < other ? steps : other;
    const Pair after = steps < room ? before + steps * way : end;
    const auto same = after == before;
    if ((same[0] & same[1]) != 0) {
      b_.end = BurstEnd::Stalled;
      return false;
    }
    b_.beta[vi] = after[0];
    b_.beta[vj] = after[1];
    // What up_shift and low_shift (kkt.hpp) give.
    const Pair never = fill<double, 2>(static_cast<double>(kNever));
    const Pair up = after < upper ? (after < zero ? kink : -kink) : -never;
    const Pair low = after > lower ? (after > zero ? -kink : kink) : never;
    const BurstPart& of_i = b_.parts[part_of(i)];
    const BurstPart& of_j = b_.parts[part_j];
    set_entries<L>(b_.up, b_.low, of_i, i, static_cast<float>(up[0]), static_cast<float>(low[0]));
    set_entries<L>(b_.up, b_.low, of_j, j, static_cast<float>(up[1]), static_cast<float>(low[1]));
    const double s = steps[0];
    chosen.size = s;
    *gain += s * (slope - 0.5 * s * curvature);
    return true;
  }

  // g -= step * (ki - kj); its extremes.
  ONEFIT_INLINE Extremes<G> sweep(const Step& s) {
    const float* const* ki = s.ki;
    const float* const* kj = s.kj;
    const G step = static_cast<G>(s.size);
    const G never = static_cast<G>(kNever);
    const Vector<Index, L> lanes = count_up<Index, L>();
    const Vector<G, L> steps = fill<G, L>(step);
    auto best0 = ArgMax<G, L>::none(-never);
    auto best1 = best0;
    Vector<G, L> least0 = fill<G, L>(never);
    Vector<G, L> least1 = least0;
    for (std::size_t part = 0; part < b_.n_parts; ++part) {
      const std::size_t size = b_.parts[part].size;
      const std::size_t first = b_.parts[part].first;
      const float* row_i = ki[part];
      const float* row_j = kj[part];
      G* g = b_.g + first;
      const float* up = b_.up + first;
      const float* low = b_.low + first;
      Vector<Index, L> at = lanes + static_cast<Index>(first);
      const auto pass = [&](std::size_t t, Vector<G, L> difference, Vector<G, L> above,
                            Vector<G, L> below, ArgMax<G, L>& best, Vector<G, L>& smallest) {
        const Vector<G, L> v = load<G, L>(g + t) - steps * difference;
        std::memcpy(g + t, &v, sizeof v);
        best.look(v + above, at);
        const Vector<G, L> w = v + below;
        smallest = w < smallest ? w : smallest;
        at += static_cast<Index>(L);
      };
      const auto whole = [&](std::size_t t, ArgMax<G, L>& best, Vector<G, L>& smallest) {
        pass(t, load_as<G, L>(row_i + t) - load_as<G, L>(row_j + t), load_as<G, L>(up + t),
             load_as<G, L>(low + t), best, smallest);
      };
      std::size_t t = 0;
      for (; t + 2 * L <= size; t += 2 * L) {
        whole(t, best0, least0);
        whole(t + L, best1, least1);
      }
      if (t + L <= size) {
        whole(t, best0, least0);
        t += L;
      }
      if (t < size) {  // lanes beyond the part keep their value, and are not looked at
        const std::size_t left = size - t;
        pass(t, load_first<G, L>(row_i + t, left) - load_first<G, L>(row_j + t, left),
             only<G>(load_as<G, L>(up + t), left, -never),
             only<G>(load_as<G, L>(low + t), left, never), best1, least1);
      }
    }
    best0.look(best1.value, best1.index);
    Extremes<G> e;
    reduce(best0, &e.max_up, &e.index);
    e.min_low = least<G, L>(least0 < least1 ? least0 : least1);
    return e;
  }

  // The first `count` lanes, `other` in those after them.
  template <class T>
  static Vector<T, L> only(Vector<T, L> v, std::size_t count, T other) {
    using I = typename IndexOf<T>::type;
    return count_up<I, L>() < static_cast<I>(count) ? v : fill<T, L>(other);
  }

  Burst<G>& b_;
};

template <class G>
void burst(Burst<G>* arguments) {
  Bursting<G>(*arguments).run();
}

template <class G>
void two_bursts(Burst<G>* a, Burst<G>* b) {
  Bursting<G> first(*a);
  Bursting<G> second(*b);
  Bursting<G>::run_both(first, second);
}

}  // namespace
}  // namespace onefit
