// Bursts of iterations against what each of them stands for: the chosen pair, the step, and the
// state that a sum over all rows gives, on every instruction set, in one part and in two, and on
// lengths that do not fill a vector.
#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>

#include "burst.hpp"
#include "check.hpp"
#include "kkt.hpp"
#include "passes.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

const std::size_t kLengths[] = {2, 3, 7, 15, 16, 17, 31, 33, 48, 65, 130, 257};

// What a burst reads.
struct Reads {
  bool coarse = false;
  bool ways = false;
};

// A problem with a kernel of random features, its rows behind pointers that a burst asks for.
template <class G>
struct Bench {
  Bench(std::size_t size, std::size_t split, double kink_, unsigned seed, Reads reads = {})
      : n(size),
        coarse(reads.coarse),
        by_ways(reads.ways),
        ways(n + kBurstPad),
        g(n + kBurstPad),
        up(n + kBurstPad),
        low(n + kBurstPad),
        diagonal(n + kBurstPad) {
    constexpr std::size_t kFeatures = 4;
    const auto x = normal(n * kFeatures, seed);
    parts.push_back({0, split});
    if (split < n) parts.push_back({split, n - split});
    problem.kink = kink_;
    problem.linear = normal(n, seed + 1);
    problem.split = n;
    for (std::size_t a = 0; a < n; ++a) {
      const bool both = kink_ > 0.0;
      const bool positive = problem.linear[a] > 0.0;
      const bool held_out = a % 5 == 4;
      problem.rows.push_back(static_cast<std::int32_t>(a));
      problem.lower.push_back(held_out || (positive && !both) ? 0.0 : -1.0);
      problem.upper.push_back(held_out || (!positive && !both) ? 0.0 : 1.0);
      for (std::size_t b = 0; b < n; ++b) {
        double distance = 0.0;
        for (std::size_t f = 0; f < kFeatures; ++f) {
          const double d = x[a * kFeatures + f] - x[b * kFeatures + f];
          distance += d * d;
        }
        const auto value = static_cast<float>(std::exp(-0.3 * distance));
        const auto units = static_cast<Coarse>(std::lround(value * kCoarseUnits));
        kernel.push_back(coarse ? kCoarseUnit * static_cast<float>(units) : value);
        if (coarse) coarse_kernel.push_back(units);
      }
      if (coarse) coarse_kernel.resize((a + 1) * coarse_stride(), 7);
      // Each part of a row ends where its memory does: reading on is an error.
      for (const BurstPart& part : parts) {
        pieces.push_back(std::make_unique<float[]>(part.size));
        std::copy_n(&kernel[a * n + part.first], part.size, pieces.back().get());
      }
      diagonal[a] = kernel[a * n + a];
      variable.push_back(static_cast<std::int32_t>(a));
    }
    rows.assign(n * parts.size(), nullptr);
    coarse_rows.assign(n, nullptr);
    beta.assign(n, 0.0);
    for (std::size_t a = 0; a < n; ++a) {
      g[a] = static_cast<G>(problem.linear[a]);
      up[a] = up_shift<float>(problem, a, 0.0);
      low[a] = low_shift<float>(problem, a, 0.0);
    }
  }

  Extremes<G> extremes() const {
    Extremes<G> e;
    for (std::size_t a = 0; a < n; ++a) {
      const G u = g[a] + static_cast<G>(up[a]);
      if (u > e.max_up) {
        e.max_up = u;
        e.index = a;
      }
      e.min_low = std::min(e.min_low, g[a] + static_cast<G>(low[a]));
    }
    return e;
  }

  double objective_now() const {
    const std::vector<double> gradient = exact_gradient();
    return conditions<float>(problem, beta, gradient).objective;
  }

  std::vector<double> exact_gradient() const {
    std::vector<double> gradient = problem.linear;
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < n; ++b) {
        gradient[b] -= beta[a] * static_cast<double>(kernel[a * n + b]);
      }
    }
    return gradient;
  }

  Burst<G> run(std::int64_t limit, double tol) {
    for (std::size_t a = 0; a < n; ++a) ways[a] = ways_of(up[a], low[a]);
    Burst<G> b{
        .g = g.data(),
        .up = up.data(),
        .low = low.data(),
        .ways = by_ways ? ways.data() : nullptr,
        .diagonal = diagonal.data(),
        .variable = variable.data(),
        .rows = rows.data(),
        .coarse_rows = coarse ? coarse_rows.data() : nullptr,
        .parts = parts.data(),
        .n_parts = parts.size(),
        .beta = beta.data(),
        .lower = problem.lower.data(),
        .upper = problem.upper.data(),
        .kink = problem.kink,
        .tau = tau,
        .tol = tol,
        .resolution = 0.0,
        .limit = limit,
        .fetch =
            [](Burst<G>& burst, std::size_t position, std::size_t) {
              Bench& bench = *static_cast<Bench*>(burst.context);
              const std::size_t first = position * bench.parts.size();
              for (std::size_t k = 0; k < bench.parts.size(); ++k) {
                bench.rows[first + k] = bench.pieces[first + k].get();
              }
              if (bench.coarse) {
                bench.coarse_rows[position] =
                    &bench.coarse_kernel[position * bench.coarse_stride()];
              }
              ++bench.fetched;
            },
        .context = this,
        .extremes = extremes(),
    };
    Passes<G>::burst()(&b);
    return b;
  }

  // Rows have room for what a burst reads beyond their end.
  std::size_t coarse_stride() const { return n + kLanes; }

  std::size_t n;
  bool coarse;
  bool by_ways;
  float tau = kTau;
  std::vector<Ways> ways;
  Problem problem;
  std::vector<float> kernel;
  std::vector<Coarse> coarse_kernel;
  std::vector<const Coarse*> coarse_rows;
  std::vector<BurstPart> parts;
  std::vector<std::unique_ptr<float[]>> pieces;
  std::vector<const float*> rows;
  std::vector<G> g;
  std::vector<float> up;
  std::vector<float> low;
  std::vector<float> diagonal;
  std::vector<std::int32_t> variable;
  std::vector<double> beta;
  std::size_t fetched = 0;
};

// The best gain of a partner for i, and what that of j is.
template <class G>
void check_choice(const Bench<G>& bench, std::size_t i, std::size_t j) {
  const auto gain = [&](std::size_t t) {
    const double d =
        double(bench.g[i]) + double(bench.up[i]) - double(bench.g[t]) - double(bench.low[t]);
    const double a = 2.0 - 2.0 * double(bench.kernel[i * bench.n + t]);
    return d > 0.0 ? d * d / std::max(a, double(kTau)) : 0.0;
  };
  double most = 0.0;
  for (std::size_t t = 0; t < bench.n; ++t) most = std::max(most, gain(t));
  CHECK(gain(j) >= most * (1.0 - std::ldexp(1.0, -9)));
}

template <class G>
void check_bursts(std::size_t n, std::size_t split, double kink, Reads reads = {}) {
  const double close = 64 * std::numeric_limits<G>::epsilon();
  Bench<G> bench(n, split, kink, static_cast<unsigned>(n), reads);
  // One at a time: the pair and its step.
  for (int turn = 0; turn < 6; ++turn) {
    const Bench<G> before_burst = [&] {
      Bench<G> copy(n, split, kink, static_cast<unsigned>(n), reads);
      copy.g = bench.g;
      copy.up = bench.up;
      copy.low = bench.low;
      copy.beta = bench.beta;
      return copy;
    }();
    const std::size_t i = bench.extremes().index;
    const Burst<G> done = bench.run(1, 1e-3);
    if (done.done == 0) break;
    std::vector<std::size_t> changed;
    for (std::size_t a = 0; a < n; ++a) {
      if (bench.beta[a] != before_burst.beta[a]) changed.push_back(a);
    }
    CHECK(changed.size() == 2);
    const std::size_t j = changed[0] == i ? changed[1] : changed[0];
    CHECK(changed[0] == i || changed[1] == i);
    check_choice(before_burst, i, j);
    std::vector<double> expected = before_burst.beta;
    const double slope = double(before_burst.g[i]) + double(before_burst.up[i]) -
                         double(before_burst.g[j]) - double(before_burst.low[j]);
    const double curvature = 2.0 - 2.0 * double(bench.kernel[i * n + j]);
    move_pair(bench.problem, expected, i, j, slope / curvature);
    CHECK(std::abs(expected[i] - bench.beta[i]) <= 1e-12);
    CHECK(std::abs(expected[j] - bench.beta[j]) <= 1e-12);
  }
  // Many: the state is that of the variables.
  const double before = bench.objective_now();
  const Burst<G> burst = bench.run(40, 1e-3);
  const std::vector<double> gradient = bench.exact_gradient();
  for (std::size_t a = 0; a < n; ++a) {
    CHECK(std::abs(double(bench.g[a]) - gradient[a]) <= 16 * close);
    CHECK(bench.up[a] == up_shift<float>(bench.problem, a, bench.beta[a]));
    CHECK(bench.low[a] == low_shift<float>(bench.problem, a, bench.beta[a]));
    if (reads.ways && std::string_view(loops().name) == "avx512") {
      CHECK(bench.ways[a] == ways_of(bench.up[a], bench.low[a]));
    }
    CHECK(bench.beta[a] >= bench.problem.lower[a] && bench.beta[a] <= bench.problem.upper[a]);
  }
  const Extremes<G> extremes = bench.extremes();
  CHECK(burst.extremes.max_up == extremes.max_up);
  CHECK(burst.extremes.min_low == extremes.min_low);
  if (extremes.max_up > -kNever / 2) {
    const std::size_t index = burst.extremes.index;
    CHECK(bench.g[index] + G(bench.up[index]) == extremes.max_up);
  }
  CHECK(std::abs(std::accumulate(bench.beta.begin(), bench.beta.end(), 0.0)) <= 1e-12);
  const double gained = before - bench.objective_now();
  CHECK(std::abs(gained - burst.gain) <= 16 * close * (1 + burst.gain));
  CHECK(burst.done == 40 || burst.end == BurstEnd::GapReached || burst.end == BurstEnd::Stalled);
  CHECK(bench.fetched <= n);
  // To the end.
  for (int k = 0; k < 1000 && bench.run(100, 1e-3).end == BurstEnd::Used; ++k) {
  }
  CHECK(conditions<float>(bench.problem, bench.beta, bench.exact_gradient()).gap() < 1.1e-3);
}

TEST(bursts_choose_and_step_as_single_iterations_do) {
  for_each_isa([] {
    for (const std::size_t n : kLengths) {
      for (const double kink : {0.0, 0.125}) {  // shifts are float32
        check_bursts<float>(n, n, kink);
        check_bursts<double>(n, n, kink);
        check_bursts<float>(n, (n + 1) / 2, kink);
        check_bursts<double>(n, (n + 1) / 2, kink);
        check_bursts<float>(n, n, kink, {.coarse = true});
      }
      check_bursts<float>(n, n, 0.0, {.ways = true});
      check_bursts<float>(n, (n + 1) / 2, 0.0, {.ways = true});
      check_bursts<float>(n, n, 0.0, {.coarse = true, .ways = true});
    }
  });
}

// Whatever the units of the kernel are, the choice is among the variables, and the same: gradients
// beyond what a shift could be, and gains that would overflow or vanish as squares.
template <class G>
void check_units(std::size_t n, float unit, Reads reads = {}) {
  Bench<G> plain(n, n, 0.0, 5, reads);
  Bench<G> scaled(n, n, 0.0, 5, reads);
  for (float& k : scaled.kernel) k *= unit;
  for (std::size_t a = 0; a < n; ++a) {
    std::copy_n(&scaled.kernel[a * n], n, scaled.pieces[a].get());
    scaled.diagonal[a] *= unit;
    scaled.g[a] *= static_cast<G>(unit);
  }
  scaled.tau = kTau * unit;
  const Burst<G> one = plain.run(25, 1e-3);
  const Burst<G> other = scaled.run(25, 1e-3 * static_cast<double>(unit));
  CHECK(one.done == other.done);
  for (std::size_t a = 0; a < n; ++a) CHECK(plain.beta[a] == scaled.beta[a]);
}

TEST(bursts_choose_the_same_whatever_the_units) {
  for_each_isa([] {
    for (const std::size_t n : kLengths) {
      for (const float unit : {0x1p-100F, 0x1p-40F, 0x1p110F, 0x1p120F}) {
        check_units<float>(n, unit);
        check_units<double>(n, unit);
        check_units<float>(n, unit, {.ways = true});
      }
    }
  });
}

TEST(gradients_that_overflow_end_a_burst) {
  for_each_isa([] {
    for (const std::size_t n : kLengths) {
      for (const bool ways : {false, true}) {
        Bench<float> bench(n, n, 0.0, 5, {.ways = ways});
        for (std::size_t a = 0; a < n; ++a) bench.g[a] *= std::numeric_limits<float>::infinity();
        const Burst<float> b = bench.run(1000, 1e-3);
        CHECK(b.end != BurstEnd::Used);
        CHECK(b.done == 0);
      }
    }
  });
}

TEST(a_burst_ends_after_the_iteration_in_which_its_limit_was_lowered) {
  for_each_isa([] {
    Bench<float> bench(65, 65, 0.0, 3);
    Burst<float> b{
        .g = bench.g.data(),
        .up = bench.up.data(),
        .low = bench.low.data(),
        .ways = nullptr,
        .diagonal = bench.diagonal.data(),
        .variable = bench.variable.data(),
        .rows = bench.rows.data(),
        .coarse_rows = nullptr,
        .parts = bench.parts.data(),
        .n_parts = 1,
        .beta = bench.beta.data(),
        .lower = bench.problem.lower.data(),
        .upper = bench.problem.upper.data(),
        .kink = 0.0,
        .tol = 1e-3,
        .resolution = 0.0,
        .limit = 50,
        .fetch =
            [](Burst<float>& burst, std::size_t position, std::size_t) {
              Bench<float>& of = *static_cast<Bench<float>*>(burst.context);
              of.rows[position] = of.pieces[position].get();
              burst.limit = 0;
            },
        .context = &bench,
        .extremes = bench.extremes(),
    };
    loops().burst_f(&b);
    CHECK(b.done == 1);
    CHECK(b.end == BurstEnd::Used);
  });
}

}  // namespace
