// Estimates of left-out values against problems without the row, solved cold.
#include <cmath>

#include "check.hpp"
#include "free_set.hpp"
#include "left_out.hpp"
#include "plain_blas.hpp"
#include "smo.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;
constexpr std::size_t kCols = 3;

std::vector<float> kernel_of(std::size_t n, std::size_t columns, unsigned seed) {
  const std::vector<double> x = normal(n * columns, seed);
  std::vector<float> kernel;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sq = 0.0;
      for (std::size_t c = 0; c < columns; ++c) {
        sq += (x[i * columns + c] - x[j * columns + c]) * (x[i * columns + c] - x[j * columns + c]);
      }
      kernel.push_back(static_cast<float>(std::exp(-0.5 * sq)));
    }
  }
  return kernel;
}

// How far the inverse times M is from the identity.
template <class T>
double defect(const FreeSet<T>& set, const std::vector<float>& kernel) {
  const std::size_t n = set.size;
  double worst = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0.0;
    for (std::size_t j = 0; j < n; ++j) {
      double product = set.border[i];
      for (std::size_t l = 0; l < n; ++l) {
        product +=
            static_cast<double>(set.inverse[i * n + l]) * static_cast<double>(kernel[l * n + j]);
      }
      worst = std::max(worst, std::abs(product - (i == j ? 1.0 : 0.0)));
      sum += static_cast<double>(set.inverse[i * n + j]);
    }
    worst = std::max(worst, std::abs(sum));
  }
  return worst;
}

TEST(the_inverse_of_the_free_set) {
  const WithBlas with;
  for (const std::size_t n : {std::size_t{1}, std::size_t{5}, std::size_t{70}, std::size_t{150}}) {
    const std::vector<float> kernel = kernel_of(n, 20, 1);
    Workspace workspace;
    CHECK(defect(double_free_set(kernel.data(), n, workspace), kernel) < 1e-9);
    std::vector<float> inverse = kernel;
    const auto single = single_free_set(inverse.data(), n);
    CHECK(single.has_value());
    CHECK(defect(*single, kernel) < 1e-4);
  }
}

TEST(rows_that_are_equal_take_each_others_place) {
  const WithBlas with;
  const std::size_t n = 140;
  std::vector<float> kernel = kernel_of(n, 20, 2);
  for (std::size_t j = 0; j < n; ++j) kernel[135 * n + j] = kernel[3 * n + j];
  for (std::size_t j = 0; j < n; ++j) kernel[j * n + 135] = kernel[j * n + 3];
  Workspace workspace;
  std::vector<float> lost = kernel;
  CHECK(!single_free_set(lost.data(), n));
  const FreeSet<double> set = double_free_set(kernel.data(), n, workspace);
  for (std::size_t i = 0; i < n; ++i) {
    const double span = 1.0 / set.inverse[i * n + i];
    CHECK(i == 3 || i == 135 ? span < 1e-4 : span > 0.5);
  }
}

TEST(values_are_those_of_left_out_problems_where_no_row_changes) {
  const WithBlas with;
  const std::size_t n = 60;
  const std::vector<double> x = normal(n * kCols, 3);
  KernelStore store(
      points_source(DenseView<double>{x.data(), n, kCols}, {KernelKind::Rbf, 0.5, 0.0, 1}),
      kPlenty);
  Problem problem;
  std::vector<double> diagonal(n, 1.0);
  for (std::size_t i = 0; i < n; ++i) {
    const bool first = x[i * kCols] + 0.7 * x[i * kCols + 1] * x[i * kCols + 2] > 0.0;
    problem.rows.push_back(static_cast<std::int32_t>(i));
    problem.lower.push_back(first ? 0.0 : -2.0);
    problem.upper.push_back(first ? 2.0 : 0.0);
    problem.linear.push_back(first ? 1.0 : -1.0);
  }
  problem.split = n;
  Settings settings;
  settings.tol = 1e-10;
  NeverInterrupt never;
  const Solution full = solve(store, problem, settings, kPlenty, never);
  std::vector<double> values, above;
  for (std::size_t i = 0; i < n; ++i) {
    above.push_back(full.gradient[i] - full.offset[0]);
    values.push_back(problem.linear[i] - above[i]);
  }
  const FittedRows fit{
      problem.rows,         values.data(),        above.data(),    full.beta.data(),
      problem.lower.data(), problem.upper.data(), diagonal.data(), 0.0};
  std::size_t exact = 0;
  for (const bool signs_only : {false, true}) {
    for (const std::size_t budget : {std::size_t{1}, kPlenty}) {
      for (const LeftOutRow& row : left_out_rows(store, fit, {signs_only, budget, 10})) {
        CHECK(row.low <= row.high);
        if (row.share < 1.0 || !row.is_known) continue;
        Problem without = problem;
        without.lower[row.number] = without.upper[row.number] = 0.0;
        const Solution other = solve(store, without, settings, kPlenty, never);
        const double value =
            problem.linear[row.number] - other.gradient[row.number] + other.offset[0];
        CHECK(std::abs(row.value - value) < 2e-3);
        ++exact;
      }
    }
  }
  CHECK(exact > 5);
}

TEST(without_a_free_row_nothing_is_known) {
  const std::vector<double> x = normal(4 * kCols, 4);
  KernelStore store(
      points_source(DenseView<double>{x.data(), 4, kCols}, {KernelKind::Rbf, 0.5, 0.0, 1}),
      kPlenty);
  const std::vector<std::int32_t> rows{0, 1, 2, 3};
  const std::vector<double> beta{1.0, 1.0, -1.0, -1.0}, lower{0.0, 0.0, -1.0, -1.0};
  const std::vector<double> upper{1.0, 1.0, 0.0, 0.0}, ones(4, 1.0);
  const FittedRows fit{rows,         ones.data(),  ones.data(), beta.data(),
                       lower.data(), upper.data(), ones.data(), 0.0};
  CHECK(left_out_rows(store, fit, {true, kPlenty, 64}).empty());
}

}  // namespace
