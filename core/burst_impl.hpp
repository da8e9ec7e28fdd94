// The loop of burst.hpp, for loops_impl.cpp alone: compiled with it once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

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

// What a loop reads of kernel rows: values and differences, in units. Coarse rows have more than a
// vector beyond their end, and it does not matter what.
template <class Row>
struct RowReading;

template <>
struct RowReading<float> {
  static constexpr float kUnit = 1.0F;
  static void ahead(const float* /*row*/) {}
  template <class G, std::size_t L>
  static Vector<G, L> values(const float* row) {
    return load_as<G, L>(row);
  }
  template <class G, std::size_t L>
  static Vector<G, L> first(const float* row, std::size_t count) {
    return load_first<G, L>(row, count);
  }
  template <class G, std::size_t L>
  static Vector<G, L> differences(const float* a, const float* b) {
    return load_as<G, L>(a) - load_as<G, L>(b);
  }
};

template <>
struct RowReading<Coarse> {
  static constexpr float kUnit = kCoarseUnit;
  // Rows are in no cache: the next 2 KB are asked for in time.
  static void ahead(const Coarse* row) { __builtin_prefetch(row + 1024); }
  template <class G, std::size_t L>
  static Vector<G, L> values(const Coarse* row) {
    return numbers<L>(widened<L>(row));
  }
  template <class G, std::size_t L>
  static Vector<G, L> first(const Coarse* row, std::size_t /*count*/) {
    return values<G, L>(row);
  }
  template <class G, std::size_t L>
  static Vector<G, L> differences(const Coarse* a, const Coarse* b) {
    return numbers<L>(widened<L>(a) - widened<L>(b));
  }
};

// Sets an entry by writing the whole vector that the next pass will read: a read of more than was
// written last has to wait until it has reached the cache.
template <std::size_t L, class I, class T>
ONEFIT_INLINE void set_entry(T* entries, const BurstPart& part, std::size_t position, T value) {
  static_assert(sizeof(I) == sizeof(T));
  const std::size_t lane = (position - part.first) % L;
  T* first = entries + (position - lane);
  const auto here = count_up<I, L>() == fill<I, L>(static_cast<I>(lane));
  const Vector<T, L> set = here ? fill<T, L>(value) : load<T, L>(first);
  std::memcpy(first, &set, sizeof set);
}

// The first `count` lanes, `other` in those after them.
template <class T, std::size_t L>
inline Vector<T, L> only(Vector<T, L> v, std::size_t count, T other) {
  using I = typename IndexOf<T>::type;
  return count_up<I, L>() < static_cast<I>(count) ? v : fill<T, L>(other);
}

// What is known of the variables of a part, in one of two ways: values of those that may rise
// (fall) as their conditions have them, out of reach for others.
template <class G, std::size_t L>
class ByShifts {
 public:
  ByShifts(const Burst<G>& b, std::size_t first)
      : up_(b.up + first), low_(b.low + first), diagonal_(b.diagonal + first) {}
  Vector<G, L> rising(Vector<G, L> v, std::size_t t) const { return v + load_as<G, L>(up_ + t); }
  Vector<G, L> falling(Vector<G, L> v, std::size_t t) const { return v + load_as<G, L>(low_ + t); }
  Vector<float, L> diagonal(std::size_t t) const { return load<float, L>(diagonal_ + t); }

  static ONEFIT_INLINE void set(Burst<G>& b, const BurstPart& part, std::size_t position, float up,
                                float low) {
    set_entry<L, std::int32_t>(b.up, part, position, up);
    set_entry<L, std::int32_t>(b.low, part, position, low);
  }

 private:
  const float* up_;
  const float* low_;
  const float* diagonal_;
};

template <std::size_t L>
class ByWays {
 public:
  ByWays(const Burst<float>& b, std::size_t first)
      : ways_(b.ways + first), diagonal_(fill<float, L>(b.diagonal[0])) {}
  Vector<float, L> rising(Vector<float, L> v, std::size_t t) const {
    return where<kRises, L>(ways_ + t, v, -kNever);
  }
  Vector<float, L> falling(Vector<float, L> v, std::size_t t) const {
    return where<kFalls, L>(ways_ + t, v, kNever);
  }
  Vector<float, L> diagonal(std::size_t /*t*/) const { return diagonal_; }

  static ONEFIT_INLINE void set(Burst<float>& b, const BurstPart& part, std::size_t position,
                                float up, float low) {
    b.up[position] = up;
    b.low[position] = low;
    set_entry<L, std::int8_t>(b.ways, part, position, ways_of(up, low));
  }

 private:
  const Ways* ways_;
  Vector<float, L> diagonal_;
};

template <class G, class Row, class Known>
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
  static constexpr double kEndless = static_cast<double>(kNever);
  using Index = typename IndexOf<G>::type;
  using Reading = RowReading<Row>;

  // What an iteration is about: i rises, j falls.
  struct Step {
    std::size_t i;
    std::size_t j;
    const Row* const* ki;
    const Row* const* kj;
    double size;
  };

  const Row* const* rows_of(std::size_t position) const {
    if constexpr (std::is_same_v<Row, Coarse>) {
      return b_.coarse_rows + position * b_.n_parts;
    } else {
      return b_.rows + position * b_.n_parts;
    }
  }

  // Extremes are handed over by value: in memory they might be entries of g.
  ONEFIT_INLINE bool goes_on(Extremes<G> e, std::int64_t done) {
    b_.end = BurstEnd::GapReached;
    const auto high = static_cast<double>(e.max_up);
    const auto low = static_cast<double>(e.min_low);
    const double gap = high - low;
    if (gap < b_.tol || gap < b_.resolution * larger(size_of(high), size_of(low))) return false;
    b_.end = BurstEnd::Stalled;
    if (!(gap < kEndless)) return false;  // g has overflowed
    b_.end = BurstEnd::Used;
    return done < b_.limit;
  }

  ONEFIT_INLINE bool choose(Extremes<G> e, Step& s) {
    s.i = e.index;
    s.ki = rows_of(s.i);
    if (s.ki[0] == nullptr) fetch(e, s.i, s.i);
    const Best best = partner(s.ki, s.i, e.max_up);
    if (!(best.gain > 0.0F)) {
      b_.end = BurstEnd::Stalled;
      return false;
    }
    s.j = best.index;
    s.kj = rows_of(s.j);
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

  // Which part a position is in cannot be guessed: no branches.
  ONEFIT_INLINE std::size_t part_of(std::size_t position) const {
    std::size_t k = 0;
    for (std::size_t next = 1; next < b_.n_parts; ++next) {
      k += static_cast<std::size_t>(position >= b_.parts[next].first);
    }
    return k;
  }

  // The second-order choice, as in loops.hpp.
  ONEFIT_INLINE Best partner(const Row* const* ki, std::size_t i, G max_up) const {
    const Vector<std::int32_t, L> lanes = count_up<std::int32_t, L>();
    const Vector<G, L> m = fill<G, L>(max_up);
    const Vector<float, L> kii = fill<float, L>(b_.diagonal[i]);
    const Vector<float, L> tau = fill<float, L>(b_.tau);
    auto best0 = ArgMax<float, L>::none(0.0F);
    auto best1 = best0;
    for (std::size_t part = 0; part < b_.n_parts; ++part) {
      const std::size_t size = b_.parts[part].size;
      const std::size_t first = b_.parts[part].first;
      const Row* row = ki[part];
      const G* g = b_.g + first;
      const Known known(b_, first);
      Vector<std::int32_t, L> at = lanes + static_cast<std::int32_t>(first);
      const auto pass = [&](std::size_t t, Vector<float, L> k, Vector<G, L> low,
                            ArgMax<float, L>& best) {
        best.look(gains<G, L>(m - low, kii + known.diagonal(t), Reading::kUnit * k, tau), at);
        at += static_cast<std::int32_t>(L);
      };
      const auto whole = [&](std::size_t t, ArgMax<float, L>& best) {
        pass(t, Reading::template values<float, L>(row + t), known.falling(load<G, L>(g + t), t),
             best);
      };
      std::size_t t = 0;
      for (; t + 2 * L <= size; t += 2 * L) {
        Reading::ahead(row + t);
        whole(t, best0);
        whole(t + L, best1);
      }
      if (t + L <= size) {
        whole(t, best0);
        t += L;
      }
      if (t < size) {
        const Vector<G, L> low = known.falling(load<G, L>(g + t), t);
        pass(t, Reading::template first<float, L>(row + t, size - t),
             only<G, L>(low, size - t, static_cast<G>(kNever)), best1);
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
    const Row* const* ki = chosen.ki;
    const auto vi = static_cast<std::size_t>(b_.variable[i]);
    const auto vj = static_cast<std::size_t>(b_.variable[j]);
    const std::size_t part_j = part_of(j);
    const double slope = static_cast<double>(b_.g[i]) + static_cast<double>(b_.up[i]) -
                         static_cast<double>(b_.g[j]) - static_cast<double>(b_.low[j]);
    const auto kij = static_cast<double>(
        Reading::kUnit * static_cast<float>(ki[part_j][j - b_.parts[part_j].first]));
    const double both = static_cast<double>(b_.diagonal[i]) + static_cast<double>(b_.diagonal[j]);
    const double curvature = both - 2.0 * kij;
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
    const double times = curvature > kLeastOverstepped * both ? b_.overstep : 1.0;
    // Without curvature there is nothing to stop at before a bound.
    const double best = curvature > 0.0 ? times * slope / curvature : kEndless;
    Pair steps = fill<double, 2>(best);
    steps = steps < room ? steps : room;
    steps = steps < other ? steps : other;
    const Pair after = steps < room ? before + steps * way : end;
    const auto same = after == before;
    if ((same[0] & same[1]) != 0 || !(steps[0] < kEndless)) {
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
    Known::set(b_, of_i, i, static_cast<float>(up[0]), static_cast<float>(low[0]));
    Known::set(b_, of_j, j, static_cast<float>(up[1]), static_cast<float>(low[1]));
    const double s = steps[0];
    chosen.size = s;
    *gain += s * (slope - 0.5 * s * curvature);
    return true;
  }

  // g -= step * (ki - kj); its extremes.
  ONEFIT_INLINE Extremes<G> sweep(const Step& s) {
    const Row* const* ki = s.ki;
    const Row* const* kj = s.kj;
    const G step = static_cast<G>(s.size * static_cast<double>(Reading::kUnit));
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
      const Row* row_i = ki[part];
      const Row* row_j = kj[part];
      G* g = b_.g + first;
      const Known known(b_, first);
      Vector<Index, L> at = lanes + static_cast<Index>(first);
      const auto advance = [&](std::size_t t, Vector<G, L> difference) {
        const Vector<G, L> v = load<G, L>(g + t) - steps * difference;
        std::memcpy(g + t, &v, sizeof v);
        return v;
      };
      const auto look = [&](Vector<G, L> up, Vector<G, L> low, ArgMax<G, L>& best,
                            Vector<G, L>& smallest) {
        best.look(up, at);
        smallest = low < smallest ? low : smallest;
        at += static_cast<Index>(L);
      };
      const auto whole = [&](std::size_t t, ArgMax<G, L>& best, Vector<G, L>& smallest) {
        const Vector<G, L> v =
            advance(t, Reading::template differences<G, L>(row_i + t, row_j + t));
        look(known.rising(v, t), known.falling(v, t), best, smallest);
      };
      std::size_t t = 0;
      for (; t + 2 * L <= size; t += 2 * L) {
        Reading::ahead(row_j + t);
        whole(t, best0, least0);
        whole(t + L, best1, least1);
      }
      if (t + L <= size) {
        whole(t, best0, least0);
        t += L;
      }
      if (t < size) {  // lanes beyond the part keep their value, and are not looked at
        const std::size_t left = size - t;
        const Vector<G, L> v = advance(t, Reading::template first<G, L>(row_i + t, left) -
                                              Reading::template first<G, L>(row_j + t, left));
        look(only<G, L>(known.rising(v, t), left, -never),
             only<G, L>(known.falling(v, t), left, never), best1, least1);
      }
    }
    best0.look(best1.value, best1.index);
    Extremes<G> e;
    reduce(best0, &e.max_up, &e.index);
    e.min_low = least<G, L>(least0 < least1 ? least0 : least1);
    return e;
  }

  Burst<G>& b_;
};

template <class G>
void burst(Burst<G>* arguments) {
  constexpr std::size_t L = ONEFIT_VECTOR_BYTES / sizeof(G);
  if constexpr (std::is_same_v<G, float>) {
    const bool coarse = arguments->coarse_rows != nullptr;
    if (kChoosesByBytes && arguments->ways != nullptr) {
      return coarse ? Bursting<G, Coarse, ByWays<L>>(*arguments).run()
                    : Bursting<G, float, ByWays<L>>(*arguments).run();
    }
    if (coarse) return Bursting<G, Coarse, ByShifts<G, L>>(*arguments).run();
  }
  Bursting<G, float, ByShifts<G, L>>(*arguments).run();
}

template <class Known>
void two_bursts_by(Burst<float>* a, Burst<float>* b) {
  Bursting<float, float, Known> first(*a);
  Bursting<float, float, Known> second(*b);
  Bursting<float, float, Known>::run_both(first, second);
}

void two_bursts(Burst<float>* a, Burst<float>* b) {
  constexpr std::size_t L = ONEFIT_VECTOR_BYTES / sizeof(float);
  if (kChoosesByBytes && a->ways != nullptr) return two_bursts_by<ByWays<L>>(a, b);
  two_bursts_by<ByShifts<float, L>>(a, b);
}

}  // namespace
}  // namespace onefit
