// The step of all free variables, and solves that take it.
#include <cmath>
#include <numeric>

#include "check.hpp"
#include "lapack.hpp"
#include "newton.hpp"
#include "smo.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

// LAPACK and BLAS as their textbooks have them, for the lower triangle.
void potrf(char* /*uplo*/, int* n, double* a, int* lda, int* info) {
  const auto at = [&](int i, int j) -> double& { return a[j * *lda + i]; };
  *info = 0;
  for (int j = 0; j < *n; ++j) {
    double pivot = at(j, j);
    for (int k = 0; k < j; ++k) pivot -= at(j, k) * at(j, k);
    if (!(pivot > 0.0)) {
      *info = j + 1;
      return;
    }
    at(j, j) = std::sqrt(pivot);
    for (int i = j + 1; i < *n; ++i) {
      double sum = at(i, j);
      for (int k = 0; k < j; ++k) sum -= at(i, k) * at(j, k);
      at(i, j) = sum / at(j, j);
    }
  }
}

void trsv(char* /*uplo*/, char* trans, char* /*diag*/, int* n, double* a, int* lda, double* x,
          int* /*incx*/) {
  const auto at = [&](int i, int j) { return a[j * *lda + i]; };
  for (int t = 0; t < *n; ++t) {
    const int i = *trans == 'N' ? t : *n - 1 - t;
    double sum = x[i];
    if (*trans == 'N') {
      for (int k = 0; k < i; ++k) sum -= at(i, k) * x[k];
    } else {
      for (int k = i + 1; k < *n; ++k) sum -= at(k, i) * x[k];
    }
    x[i] = sum / at(i, i);
  }
}

// The routines are there while this lives.
struct WithLapack {
  WithLapack() { lapack() = {potrf, trsv}; }
  ~WithLapack() { lapack() = {}; }
};

FreeVariables example(std::size_t n, double room) {
  FreeVariables free;
  free.ridge = 1e-6;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const double d = static_cast<double>(i) - static_cast<double>(j);
      free.matrix.push_back(std::exp(-0.3 * d * d));
    }
    free.residual.push_back(std::sin(3.0 * static_cast<double>(i)));
    free.group.push_back(i < n / 3 ? 0 : 1);
    free.room_up.push_back(room);
    free.room_down.push_back(room);
  }
  return free;
}

// What is left of r after a step, r - K d.
std::vector<double> left(const FreeVariables& free, const std::vector<double>& r,
                         const std::vector<double>& step) {
  std::vector<double> rest = r;
  for (std::size_t i = 0; i < r.size(); ++i) {
    for (std::size_t j = 0; j < r.size(); ++j) rest[i] -= free.matrix[i * r.size() + j] * step[j];
  }
  return rest;
}

}  // namespace

TEST(newton_step_solves_the_system) {
  const WithLapack with;
  FreeVariables free = example(9, 1e9);
  const std::vector<double> r = free.residual;
  const std::vector<double> step = newton_step(free);
  const std::vector<double> rest = left(free, r, step);
  double sum[2] = {0.0, 0.0};
  for (std::size_t i = 0; i < 9; ++i) {
    sum[free.group[i]] += step[i];
    CHECK(std::abs(rest[i] - rest[free.group[i] == 0 ? 0 : 8]) < 1e-8);
  }
  CHECK(std::abs(sum[0]) < 1e-14);
  CHECK(std::abs(sum[1]) < 1e-14);
}

TEST(newton_step_stops_at_bounds_and_goes_on_without_them) {
  const WithLapack with;
  FreeVariables free = example(12, 0.7);
  const std::vector<double> r = free.residual;
  const std::vector<double> step = newton_step(free);
  const std::vector<double> rest = left(free, r, step);
  double sum[2] = {0.0, 0.0};
  double gain = 0.0;
  double offset[2] = {NAN, NAN};
  std::size_t blocked = 0;
  for (std::size_t i = 0; i < 12; ++i) {
    CHECK(std::abs(step[i]) <= 0.7);
    sum[free.group[i]] += step[i];
    gain += step[i] * (r[i] + rest[i]) / 2.0;
    if (std::abs(step[i]) == 0.7) {
      ++blocked;
      continue;
    }
    double& o = offset[free.group[i]];
    if (std::isnan(o)) o = rest[i];
    CHECK(std::abs(rest[i] - o) < 1e-8);
  }
  CHECK(blocked > 0 && blocked < 12);
  CHECK(std::abs(sum[0]) < 1e-14);
  CHECK(std::abs(sum[1]) < 1e-14);
  CHECK(gain > 0.0);
}

TEST(newton_step_of_a_singular_matrix_goes_to_a_bound) {
  const WithLapack with;
  FreeVariables free = example(6, 2.0);
  std::fill(free.matrix.begin(), free.matrix.end(), 1.0);
  std::fill(free.group.begin(), free.group.end(), std::uint8_t{0});
  bool at_bound = false;
  for (const double s : newton_step(free)) at_bound |= std::abs(s) == 2.0;
  CHECK(at_bound);
}

TEST(newton_step_of_an_indefinite_matrix_is_none) {
  const WithLapack with;
  FreeVariables free = example(2, 1.0);
  free.matrix = {0.0, 1.0, 1.0, 0.0};
  CHECK(newton_step(free).empty());
  lapack() = {};
  FreeVariables other = example(4, 1.0);
  CHECK(newton_step(other).empty());
}

// Two features and a large bound, where SMO takes very many steps.
TEST(a_solve_with_newton_steps_takes_fewer_iterations) {
  constexpr std::size_t kN = 300;
  std::vector<double> x;
  Problem p;
  for (std::size_t i = 0; i < kN; ++i) {
    const double t = static_cast<double>(i);
    x.push_back(std::sin(1.7 * t));
    x.push_back(std::cos(2.3 * t));
    p.rows.push_back(static_cast<std::int32_t>(i));
    p.linear.push_back(std::sin(5.0 * x[2 * i]) + x[2 * i + 1] + 0.3 * std::sin(77.0 * t));
    p.lower.push_back(-100.0);
    p.upper.push_back(100.0);
  }
  p.kink = 0.1;
  p.split = kN;
  Settings settings;
  settings.tol = 1e-5;
  NeverInterrupt never;
  const auto solved = [&] {
    KernelStore store(
        points_source(DenseView<double>{x.data(), kN, 2}, {KernelKind::Rbf, 0.5, 0.0, 1}),
        std::size_t{1} << 30);
    return solve(store, p, settings, std::size_t{1} << 30, never);
  };
  const Solution plain = solved();
  const WithLapack with;
  const Solution quick = solved();
  CHECK(plain.status == Status::Converged && quick.status == Status::Converged);
  CHECK(quick.gap < settings.tol);
  CHECK(quick.n_iter < plain.n_iter / 2);
  CHECK(std::abs(quick.objective - plain.objective) <= 1e-6 * std::abs(plain.objective));
}
