// Kernel rows against plain double-precision kernels; eviction; use from several threads.
#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "check.hpp"
#include "store.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kRows = 150;
constexpr std::size_t kCols = 7;
constexpr std::size_t kPlenty = std::size_t{1} << 30;

double naive(const Kernel& kernel, const double* x, const double* y) {
  double dot = 0.0;
  double sq = 0.0;
  for (std::size_t k = 0; k < kCols; ++k) {
    dot += x[k] * y[k];
    sq += (x[k] - y[k]) * (x[k] - y[k]);
  }
  switch (kernel.kind) {
    case KernelKind::Linear:
      return dot;
    case KernelKind::Poly:
      return std::pow(kernel.gamma * dot + kernel.coef0, kernel.degree);
    case KernelKind::Rbf:
      return std::exp(-kernel.gamma * sq);
    case KernelKind::Sigmoid:
      return std::tanh(kernel.gamma * dot + kernel.coef0);
    case KernelKind::Distance:
      return sq;
  }
  return 0.0;
}

const Kernel kKernels[] = {{KernelKind::Linear, 1.0, 0.0, 1},  {KernelKind::Poly, 0.5, 1.0, 3},
                           {KernelKind::Poly, 0.5, 1.0, 0},    {KernelKind::Rbf, 0.1, 0.0, 1},
                           {KernelKind::Rbf, 50.0, 0.0, 1},    {KernelKind::Sigmoid, 0.2, -0.3, 1},
                           {KernelKind::Distance, 1.0, 0.0, 1}};

struct Csr {
  std::vector<double> data;
  std::vector<std::int32_t> indices;
  std::vector<std::int64_t> indptr = {0};
  CsrView view() const {
    return {data.data(), indices.data(), indptr.data(), indptr.size() - 1, kCols};
  }
};

// Zeroes some entries of x in place and returns it as CSR.
Csr sparsify(std::vector<double>& x, unsigned keep_one_in) {
  Csr csr;
  std::mt19937 random(3);
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t k = 0; k < kCols; ++k) {
      if (random() % keep_one_in != 0) x[i * kCols + k] = 0.0;
      if (x[i * kCols + k] != 0.0) {
        csr.data.push_back(x[i * kCols + k]);
        csr.indices.push_back(static_cast<std::int32_t>(k));
      }
    }
    csr.indptr.push_back(static_cast<std::int64_t>(csr.data.size()));
  }
  return csr;
}

float value(const KernelStore& store, const HeldRow& row, std::size_t column) {
  const Run run = store.run(column, column + 1);
  return row.block(run.block)[run.offset];
}

void check_row(KernelStore& store, std::int32_t row, const Kernel& kernel,
               const std::vector<double>& x) {
  const HeldRow held = store.hold(row, store.blocks(0, kRows), {}, 1);
  for (std::size_t t = 0; t < kRows; ++t) {
    const double expected =
        naive(kernel, x.data() + static_cast<std::size_t>(row) * kCols, x.data() + t * kCols);
    CHECK(std::abs(static_cast<double>(value(store, held, t)) - expected) <=
          1e-6 * std::max(1.0, std::abs(expected)));
  }
}

void check_all_rows(KernelStore& store, const Kernel& kernel, const std::vector<double>& x) {
  for (std::int32_t i = 0; i < static_cast<std::int32_t>(kRows); ++i)
    check_row(store, i, kernel, x);
}

TEST(rows_of_every_kernel) {
  for_each_isa([] {
    auto x = normal(kRows * kCols, 1);
    for (double& v : x) v += 100.0;  // far from the origin: the norms must not spoil distances
    const std::vector<float> x_f(x.begin(), x.end());
    const std::vector<double> x_rounded(x_f.begin(), x_f.end());
    for (const Kernel& kernel : kKernels) {
      KernelStore store(points_source(DenseView<double>{x.data(), kRows, kCols}, kernel), kPlenty);
      check_all_rows(store, kernel, x);
      KernelStore store_f(points_source(DenseView<float>{x_f.data(), kRows, kCols}, kernel),
                          kPlenty);
      check_all_rows(store_f, kernel, x_rounded);
    }
  });
}

TEST(units_of_the_data_do_not_matter) {
  const auto x = normal(kRows * kCols, 1);
  for (const double unit : {1e-30, 1e30}) {
    auto scaled = x;
    for (double& v : scaled) v *= unit;
    KernelStore store(points_source(DenseView<double>{scaled.data(), kRows, kCols},
                                    {KernelKind::Rbf, 0.1 / unit / unit, 0.0, 1}),
                      kPlenty);
    check_all_rows(store, {KernelKind::Rbf, 0.1, 0.0, 1}, x);
  }
}

TEST(values_that_overflow_are_refused) {
  for (const double unit : {1e25, 1e200}) {
    auto x = normal(kRows * kCols, 1);
    for (double& v : x) v *= unit;
    bool refused = false;
    try {
      KernelStore store(points_source(DenseView<double>{x.data(), kRows, kCols},
                                      {KernelKind::Linear, 1.0, 0.0, 1}),
                        kPlenty);
    } catch (const std::overflow_error&) {
      refused = true;
    }
    CHECK(refused);
  }
}

TEST(sparse_rows) {
  for_each_isa([] {
    for (const unsigned keep_one_in : {1U, 2U, 5U}) {
      auto x = normal(kRows * kCols, 2);
      const Csr csr = sparsify(x, keep_one_in);
      for (const Kernel& kernel : kKernels) {
        KernelStore store(points_source(csr.view(), kernel), kPlenty);
        check_all_rows(store, kernel, x);
      }
    }
  });
}

TEST(rows_from_a_matrix_and_from_distances) {
  const auto x = normal(kRows * kCols, 4);
  const DenseView<double> view{x.data(), kRows, kCols};
  const Kernel rbf{KernelKind::Rbf, 0.3, 0.0, 1};
  std::vector<double> k(kRows * kRows);
  for (std::size_t i = 0; i < kRows; ++i) {
    for (std::size_t j = 0; j < kRows; ++j) {
      k[i * kRows + j] = naive(rbf, x.data() + i * kCols, x.data() + j * kCols);
    }
  }
  std::vector<std::int32_t> same(kRows);
  for (std::size_t i = 0; i < kRows; ++i) same[i] = static_cast<std::int32_t>(i);
  KernelStore given(matrix_source({k.data(), kRows, kRows}, same), kPlenty);
  check_all_rows(given, rbf, x);
  KernelStore chosen(matrix_source({k.data(), kRows, kRows}, {7, 3, 149}), kPlenty);
  CHECK(std::abs(static_cast<double>(value(chosen, chosen.hold(1, 1, {}, 1), 2)) -
                 k[3 * kRows + 149]) < 1e-6);
  const auto distances = std::make_shared<KernelStore>(
      points_source(view, {KernelKind::Distance, 1.0, 0.0, 1}), kPlenty);
  KernelStore derived(distance_source(distances, 0.3), kPlenty);
  check_all_rows(derived, rbf, x);
  KernelStore other(distance_source(distances, 3.0), kPlenty);
  check_all_rows(other, {KernelKind::Rbf, 3.0, 0.0, 1}, x);
  CHECK(distances->entries_evaluated() == kRows * kRows);  // once, though two gammas used them
}

// Entries of a few rows, among them their own and one twice, are those of `expected(row, column)`.
void check_exact(const KernelStore& store, double tolerance,
                 const std::function<double(std::size_t, std::size_t)>& expected) {
  const auto last = static_cast<std::int32_t>(store.size()) - 1;
  for (const std::int32_t row : {0, last / 2, last}) {
    const std::vector<std::int32_t> columns = {last, row, 1, 1, 0, last / 3};
    std::vector<double> out(columns.size());
    store.evaluate_exact(row, columns, out.data());
    CHECK(out[1] == store.exact_diagonal(row));
    CHECK(out[2] == out[3] || row == 1);
    for (std::size_t t = 0; t < columns.size(); ++t) {
      const double e =
          expected(static_cast<std::size_t>(row), static_cast<std::size_t>(columns[t]));
      CHECK(std::abs(out[t] - e) <= tolerance * std::max(1.0, std::abs(e)));
    }
  }
}

TEST(exact_entries_of_every_source) {
  auto x = normal(kRows * kCols, 12);
  // Values that a float32 holds, with a mean of zero: nothing is rounded when rows are taken in.
  for (std::size_t i = 0; i < x.size() / 2; ++i) {
    x[i] = static_cast<double>(static_cast<float>(x[i]));
    x[x.size() / 2 + i] = -x[i];
  }
  auto x_sparse = x;
  const Csr csr = sparsify(x_sparse, 5);
  const DenseView<double> dense{x.data(), kRows, kCols};
  std::vector<Kernel> kernels(std::begin(kKernels), std::end(kKernels));
  kernels.push_back({KernelKind::Rbf, 0.25, 0.0, 1});  // dot products in float32 elsewhere
  for (const Kernel& kernel : kernels) {
    // Rows times the square root of this gamma are rounded to float32.
    const double tolerance = kernel.kind == KernelKind::Rbf && kernel.gamma == 0.1 ? 1e-6 : 1e-12;
    const auto of = [&](const std::vector<double>& points) {
      return [&](std::size_t i, std::size_t j) {
        return naive(kernel, points.data() + i * kCols, points.data() + j * kCols);
      };
    };
    check_exact(KernelStore(points_source(dense, kernel), kPlenty), tolerance, of(x));
    check_exact(KernelStore(points_source(csr.view(), kernel), kPlenty), tolerance, of(x_sparse));
  }
  const Kernel rbf{KernelKind::Rbf, 0.3, 0.0, 1};
  const auto distances = std::make_shared<KernelStore>(
      points_source(dense, {KernelKind::Distance, 1.0, 0.0, 1}), kPlenty);
  check_exact(
      KernelStore(distance_source(distances, 0.3), kPlenty), 1e-12,
      [&](std::size_t i, std::size_t j) { return naive(rbf, &x[i * kCols], &x[j * kCols]); });
  const auto matrix = normal(kRows * kRows, 13);
  const std::vector<std::int32_t> rows = {7, 3, 149, 20};
  check_exact(KernelStore(matrix_source({matrix.data(), kRows, kRows}, rows), kPlenty), 0.0,
              [&](std::size_t i, std::size_t j) {
                return matrix[static_cast<std::size_t>(rows[i]) * kRows +
                              static_cast<std::size_t>(rows[j])];
              });
}

TEST(double_precision_blocks) {
  for_each_isa([] {
    auto x = normal(kRows * kCols, 5);
    const Csr csr = sparsify(x, 4);
    const Points<double> dense(DenseView<double>{x.data(), kRows, kCols}, nullptr, 1.0);
    const Points<double> sparse(csr.view(), 1.0);
    for (const Kernel& kernel : kKernels) {
      for (const Points<double>* queries : {&dense, &sparse}) {
        for (const Points<double>* support : {&dense, &sparse}) {
          std::vector<double> out(20 * kRows);
          kernel_block(*queries, *support, kernel, 100, 120, out.data());
          for (std::size_t q = 0; q < 20; ++q) {
            for (std::size_t t = 0; t < kRows; ++t) {
              const double expected =
                  naive(kernel, x.data() + (100 + q) * kCols, x.data() + t * kCols);
              CHECK(std::abs(out[q * kRows + t] - expected) <=
                    1e-10 * std::max(1.0, std::abs(expected)));
            }
          }
        }
      }
    }
  });
}

TEST(a_small_budget_evicts_and_stays_right) {
  const auto x = normal(kRows * kCols, 6);
  const Kernel kernel{KernelKind::Rbf, 0.2, 0.0, 1};
  KernelStore store(points_source(DenseView<double>{x.data(), kRows, kCols}, kernel), 1);
  CHECK(store.capacity() < kRows);
  std::mt19937 random(7);
  for (int k = 0; k < 2000; ++k) {
    check_row(store, static_cast<std::int32_t>(random() % kRows), kernel, x);
  }
  CHECK(store.entries_evaluated() > kRows * kRows);
}

TEST(held_rows_survive_eviction) {
  const auto x = normal(kRows * kCols, 8);
  const Kernel kernel{KernelKind::Rbf, 0.2, 0.0, 1};
  KernelStore store(points_source(DenseView<double>{x.data(), kRows, kCols}, kernel), 1);
  const HeldRow held = store.hold(3, 1, {}, 1);
  const std::vector<float> before(held.block(0), held.block(0) + kRows);
  check_all_rows(store, kernel, x);
  CHECK(std::equal(before.begin(), before.end(), held.block(0)));
}

TEST(one_batch_evaluates_what_was_asked_along) {
  const auto x = normal(kRows * kCols, 9);
  const Kernel kernel{KernelKind::Rbf, 0.2, 0.0, 1};
  KernelStore store(points_source(DenseView<double>{x.data(), kRows, kCols}, kernel), kPlenty);
  const std::vector<std::int32_t> also = {5, 6, 5, 0};
  store.hold(0, 1, also, 1);
  CHECK(store.entries_evaluated() == 3 * kRows);
  CHECK(store.has(5, 1) && store.has(6, 1) && !store.has(7, 1));
}

TEST(blocks_are_evaluated_when_asked_for) {
  const auto x = normal(kRows * kCols, 11);
  const Kernel kernel{KernelKind::Rbf, 0.2, 0.0, 1};
  std::vector<std::size_t> many(kRows);  // more blocks than there are bits: neighbours are merged
  for (std::size_t k = 0; k < kRows; ++k) many[k] = k;
  for (const auto& starts : {std::vector<std::size_t>{0, 10, 75}, many}) {
    for (const std::size_t budget : {std::size_t{1}, kPlenty}) {
      KernelStore store(points_source(DenseView<double>{x.data(), kRows, kCols}, kernel), budget,
                        starts);
      const std::uint64_t wanted = store.blocks(0, 10) | store.blocks(75, 100);
      CHECK((wanted & store.blocks(40, 41)) == 0);
      const HeldRow held = store.hold(20, wanted, {}, 1);
      CHECK(store.entries_evaluated() < kRows);
      CHECK(store.has(20, wanted) && !store.has(20, store.blocks(0, kRows)));
      for (const std::size_t t : {0, 9, 75, 99}) {
        CHECK(std::abs(static_cast<double>(value(store, held, t)) -
                       naive(kernel, x.data() + 20 * kCols, x.data() + t * kCols)) < 1e-6);
      }
      check_all_rows(store, kernel, x);
    }
  }
}

TEST(several_threads_share_a_store) {
  const auto x = normal(kRows * kCols, 10);
  const Kernel kernel{KernelKind::Rbf, 0.2, 0.0, 1};
  for (const std::size_t budget : {std::size_t{1}, kPlenty}) {
    KernelStore store(points_source(DenseView<double>{x.data(), kRows, kCols}, kernel), budget,
                      {0, 70, 100});
    const std::uint64_t every = store.blocks(0, kRows);
    std::vector<std::thread> threads;
    for (unsigned seed = 0; seed < 4; ++seed) {
      threads.emplace_back([&, seed] {
        std::mt19937 random(seed);
        for (int k = 0; k < 150; ++k) {
          const std::vector<std::int32_t> also = {static_cast<std::int32_t>(random() % kRows),
                                                  static_cast<std::int32_t>(random() % kRows)};
          const auto row = static_cast<std::int32_t>(random() % kRows);
          const std::size_t column = random() % kRows;
          const HeldRow part = store.hold(also[1], store.blocks(column, column + 1), also, 1);
          const HeldRow first = store.hold(row, every, also, 2);
          const HeldRow second = store.hold(also[0], every, {}, 1);
          CHECK(value(store, part, column) > 0.0F);
          CHECK(value(store, first, static_cast<std::size_t>(row)) == 1.0F);
          CHECK(value(store, second, static_cast<std::size_t>(row)) ==
                value(store, first, static_cast<std::size_t>(also[0])));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (budget == kPlenty) CHECK(store.entries_evaluated() <= kRows * kRows);
  }
}

// A source that fails now and then: nothing may be lost or left waiting.
class FailingSource final : public RowSource {
 public:
  std::size_t size() const override { return 80; }
  double diagonal(std::size_t) const override { return 1.0; }
  std::size_t preferred_rows() const override { return 1; }
  void evaluate(std::span<const std::int32_t> rows, float* const* out, std::size_t, std::size_t,
                std::size_t) const override {
    if (calls_++ % 2 == 0) throw std::runtime_error("no");
    for (std::size_t r = 0; r < rows.size(); ++r) {
      std::fill_n(out[r], size(), static_cast<float>(rows[r]));
    }
  }
  void evaluate_exact(std::int32_t, std::span<const std::int32_t>, double*) const override {}

 private:
  mutable std::atomic<int> calls_{0};
};

TEST(a_failed_evaluation_can_be_tried_again) {
  KernelStore store(std::make_unique<FailingSource>(), 1);
  for (std::int32_t row = 0; row < 80; ++row) {
    bool failed = false;
    try {
      store.hold(row, 1, {}, 1);
    } catch (const std::runtime_error&) {
      failed = true;
    }
    CHECK(failed);
    CHECK(store.hold(row, 1, {}, 1).block(0)[7] == static_cast<float>(row));
  }
}

}  // namespace
