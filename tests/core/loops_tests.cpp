// Every vectorised loop against the plain sum it stands for, on every instruction set and on
// lengths that do not fill a vector.
#include <limits>

#include "check.hpp"
#include "kkt.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

const std::size_t kLengths[] = {1, 2, 7, 15, 16, 31, 33, 63, 64, 65, 130, 257, 1000};

std::vector<float> floats(std::size_t n, unsigned seed) {
  const std::vector<double> values = normal(n, seed);
  return {values.begin(), values.end()};
}

// Shifts as the solver has them: 0, or out of reach.
std::vector<float> shifts(std::size_t n, float never, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(n);
  for (float& v : values) v = random() % 3 == 0 ? never : 0.0F;
  return values;
}

template <class G, class Sweep>
void check_sweep(Sweep sweep) {
  for (const std::size_t n : kLengths) {
    const auto start = normal(n, 1);
    std::vector<G> g(start.begin(), start.end());
    const auto up = shifts(n, -kNever, 2);
    const auto low = shifts(n, kNever, 3);
    const auto ki = floats(n, 4);
    const auto kj = floats(n, 5);
    const G step = G(0.25);
    Extremes<G> e;
    sweep(n, g.data(), up.data(), low.data(), ki.data(), kj.data(), step, &e);
    G max_up = -kNever;
    G min_low = kNever;
    for (std::size_t t = 0; t < n; ++t) {
      const G expected = static_cast<G>(start[t]) - step * (G(ki[t]) - G(kj[t]));
      CHECK(std::abs(g[t] - expected) <= 4 * std::numeric_limits<G>::epsilon());
      max_up = std::max(max_up, g[t] + G(up[t]));
      min_low = std::min(min_low, g[t] + G(low[t]));
    }
    CHECK(e.max_up == max_up);
    CHECK(e.min_low == min_low);
    if (max_up > -kNever / 2) CHECK(g[e.index] + G(up[e.index]) == max_up);
  }
}

template <class G, class Second>
void check_second(Second second) {
  for (const std::size_t n : kLengths) {
    const auto start = normal(n, 6);
    const std::vector<G> g(start.begin(), start.end());
    const auto low = shifts(n, kNever, 7);
    auto diagonal = floats(n, 8);
    for (float& d : diagonal) d = d * d;
    const auto ki = floats(n, 9);
    const G m = G(0.5);
    Best best;
    second(n, g.data(), low.data(), diagonal.data(), ki.data(), 1.5F, m, kTau, &best);
    const auto gain = [&](std::size_t t) {
      const double d = std::max(0.0, double(m) - double(g[t]) - double(low[t]));
      const double a = std::max(1.5 + double(diagonal[t]) - 2.0 * double(ki[t]), double(kTau));
      return d / std::sqrt(a);
    };
    double most = 0.0;
    for (std::size_t t = 0; t < n; ++t) most = std::max(most, gain(t));
    // Gains come from reciprocals of at least 11 bits; any of those within that is as good a
    // choice.
    const double rough = std::ldexp(1.0, -11);
    CHECK(std::abs(double(best.gain) - most) <= rough * most);
    if (most > 0.0) CHECK(most - gain(best.index) <= 2 * rough * most);
  }
}

TEST(sweep_updates_and_finds_extremes) {
  for_each_isa([] {
    check_sweep<float>(loops().sweep_f);
    check_sweep<double>(loops().sweep_d);
  });
}

TEST(sweep_finds_nothing_when_nothing_may_move) {
  for_each_isa([] {
    std::vector<float> g(40, 1.0F);
    const std::vector<float> up(40, -kNever);
    const std::vector<float> low(40, kNever);
    const std::vector<float> zero(40, 0.0F);
    Extremes<float> e;
    loops().sweep_f(40, g.data(), up.data(), low.data(), zero.data(), zero.data(), 0.0F, &e);
    CHECK(e.max_up - e.min_low < 0.0F);
  });
}

TEST(second_finds_the_largest_gain) {
  for_each_isa([] {
    check_second<float>(loops().second_f);
    check_second<double>(loops().second_d);
  });
}

TEST(exponential_is_correct_to_rounding) {
  for_each_isa([] {
    std::vector<float> distance;
    for (double x = 0.0; x < 100.0; x += 0.0173) distance.push_back(static_cast<float>(x));
    std::vector<float> out(distance.size());
    loops().rbf_from_distance(distance.size(), distance.data(), 1.0F, out.data());
    for (std::size_t t = 0; t < out.size(); ++t) {
      const double expected = std::exp(-static_cast<double>(distance[t]));
      CHECK(std::abs(static_cast<double>(out[t]) - expected) <= 3e-7 * expected + 2e-38);
    }
    std::vector<double> dot(distance.size(), 0.0);
    std::vector<double> sq(distance.begin(), distance.end());
    std::vector<double> exact(distance.size());
    loops().rbf_d(sq.size(), dot.data(), sq.data(), 0.0, 1.0, exact.data());
    for (std::size_t t = 0; t < exact.size(); ++t) {
      const double expected = std::exp(-sq[t]);
      CHECK(std::abs(exact[t] - expected) <= 1e-14 * expected);
    }
    const double far[] = {700.0, 709.5, 1e6, 1e300};
    const double zero[4] = {};
    double values[4];
    loops().rbf_d(4, zero, far, 0.0, 1.0, values);
    CHECK(values[0] > 0.0 && values[1] == 0.0 && values[2] == 0.0 && values[3] == 0.0);
  });
}

TEST(panel_products) {
  for_each_isa([] {
    for (const std::size_t d : {1, 3, 17}) {
      for (const std::size_t count : {1, 3, 4, 9}) {
        const auto panel = normal(d * kPanel, 10);
        const auto rows = normal(count * d, 11);
        std::vector<double> dot(count * 100, -1.0);
        loops().panel_d(d, panel.data(), count, rows.data(), dot.data(), 100);
        const std::vector<float> panel_f(panel.begin(), panel.end());
        const std::vector<float> rows_f(rows.begin(), rows.end());
        std::vector<float> dot_f(count * 100, -1.0F);
        loops().panel_f(d, panel_f.data(), count, rows_f.data(), dot_f.data(), 100);
        for (std::size_t q = 0; q < count; ++q) {
          for (std::size_t t = 0; t < kPanel; ++t) {
            double sum = 0.0;
            for (std::size_t k = 0; k < d; ++k) sum += rows[q * d + k] * panel[k * kPanel + t];
            CHECK(std::abs(dot[q * 100 + t] - sum) < 1e-12);
            CHECK(std::abs(static_cast<double>(dot_f[q * 100 + t]) - sum) < 1e-4);
          }
        }
      }
    }
  });
}

TEST(csr_products) {
  for_each_isa([] {
    const std::vector<std::int64_t> indptr = {0, 2, 2, 5};  // the second row is empty
    const std::vector<std::int32_t> indices = {0, 3, 1, 2, 3};
    const std::vector<double> data = {1.0, -2.0, 0.5, 4.0, 3.0};
    const auto w = normal(4 * kLanes, 12);
    std::vector<double> tile(3 * kLanes, -1.0);
    loops().csr_d(3, indptr.data(), indices.data(), data.data(), w.data(), tile.data());
    for (std::size_t t = 0; t < 3; ++t) {
      for (std::size_t l = 0; l < kLanes; ++l) {
        double sum = 0.0;
        for (auto e = static_cast<std::size_t>(indptr[t]);
             e < static_cast<std::size_t>(indptr[t + 1]); ++e) {
          sum += data[e] * w[static_cast<std::size_t>(indices[e]) * kLanes + l];
        }
        CHECK(std::abs(tile[t * kLanes + l] - sum) < 1e-12);
      }
    }
  });
}

TEST(accumulate_adds_rows) {
  for_each_isa([] {
    for (const std::size_t n : {std::size_t{0}, std::size_t{3}, std::size_t{8}, std::size_t{77}}) {
      for (std::size_t count = 0; count <= 2 * kRowsAtOnce + 1; ++count) {
        std::vector<std::vector<float>> rows;
        std::vector<const float*> at;
        for (unsigned r = 0; r < count; ++r) rows.push_back(floats(n, 20 + r));
        for (const std::vector<float>& row : rows) at.push_back(row.data());
        std::vector<double> coef = normal(count, 3);
        if (count > 1) coef[1] = 0.0;
        std::vector<double> acc(n, 1.0);
        loops().accumulate(n, acc.data(), at.data(), coef.data(), count);
        for (std::size_t t = 0; t < n; ++t) {
          double sum = 1.0;
          for (std::size_t r = 0; r < count; ++r) sum += coef[r] * static_cast<double>(rows[r][t]);
          CHECK(std::abs(acc[t] - sum) < 1e-13);
        }
      }
    }
  });
}

TEST(shifts_and_summaries_are_those_of_single_variables) {
  for_each_isa([] {
    for (const std::size_t n :
         {std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{21}, std::size_t{130}}) {
      for (const double kink : {0.0, 0.1}) {
        Problem p;
        p.kink = kink;
        p.linear = normal(n, 20);
        p.split = n - n / 3;
        const auto gradient = normal(n, 21);
        std::vector<double> beta = normal(n, 22);
        for (std::size_t v = 0; v < n; ++v) {
          p.rows.push_back(static_cast<std::int32_t>(v));
          const double bound = v % 5 == 0 ? 0.0 : v % 7 == 0 ? 1e300 * 1e300 : 0.8;
          p.lower.push_back(v % 3 == 0 ? 0.0 : -bound);
          p.upper.push_back(v % 3 == 1 ? 0.0 : bound);
          beta[v] = v % 4 == 0 ? 0.0 : std::clamp(beta[v], p.lower[v], p.upper[v]);
        }
        std::vector<float> up(n);
        std::vector<float> low(n);
        loops().shifts(n, beta.data(), p.lower.data(), p.upper.data(), kink, up.data(), low.data());
        std::vector<std::int32_t> everyone(p.rows);
        const Conditions expected = conditions<float>(p, beta, gradient, everyone.data(), n);
        const Judged found = conditions<float>(p, beta, gradient);
        double objective = 0.0;
        double squares = 0.0;
        double largest = 0.0;
        for (std::size_t v = 0; v < n; ++v) {
          CHECK(up[v] == up_shift<float>(p, v, beta[v]));
          CHECK(low[v] == low_shift<float>(p, v, beta[v]));
          objective += -0.5 * beta[v] * (p.linear[v] + gradient[v]) + kink * std::abs(beta[v]);
          squares += beta[v] * beta[v];
          largest = std::max(largest, std::abs(beta[v]));
        }
        for (std::size_t k = 0; k < 2; ++k) {
          CHECK(found.groups[k].gap() == expected.groups[k].gap());
          CHECK(std::abs(found.groups[k].offset() - expected.groups[k].offset()) < 1e-12);
        }
        CHECK(std::abs(found.objective - objective) < 1e-12 * static_cast<double>(n));
        CHECK(std::abs(found.squares - squares) < 1e-12 * static_cast<double>(n));
        CHECK(found.largest == largest);
      }
    }
  });
}

}  // namespace
