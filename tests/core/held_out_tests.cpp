// Columns that are evaluated alone, against the rows that they are part of; sums and votes of
// pairs.
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "check.hpp"
#include "held_out.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;
constexpr std::size_t kCols = 5;

// Rows of which most entries are 0, dense and as CSR.
struct Rows {
  std::size_t n;
  std::vector<double> x;
  std::vector<double> data;
  std::vector<std::int32_t> indices;
  std::vector<std::int64_t> indptr = {0};

  explicit Rows(std::size_t count) : n(count), x(normal(count * kCols, 3)) {
    for (std::size_t e = 0; e < x.size(); ++e) {
      if (e % 4 != 1) x[e] = 0.0;
      if (x[e] != 0.0) {
        data.push_back(x[e]);
        indices.push_back(static_cast<std::int32_t>(e % kCols));
      }
      if (e % kCols == kCols - 1) indptr.push_back(static_cast<std::int64_t>(data.size()));
    }
  }
  CsrView csr() const { return {data.data(), indices.data(), indptr.data(), n, kCols}; }
  DenseView<double> dense() const { return {x.data(), n, kCols}; }
};

void check_columns(KernelStore& store) {
  const auto n = static_cast<std::int32_t>(store.size());
  std::vector<std::int32_t> columns;
  for (std::int32_t c = n - 1; c >= 0; c -= 3) columns.push_back(c);
  const std::vector<std::int32_t> rows = {0, 7, n - 1, 2, 7};  // two of them are columns, too
  const std::unique_ptr<ColumnSource> only = store.only(columns);
  CHECK(only != nullptr);
  std::vector<float> values(rows.size() * columns.size(), -1.0F);
  std::vector<float*> out;
  for (std::size_t r = 0; r < rows.size(); ++r) out.push_back(values.data() + r * columns.size());
  only->evaluate(rows, out.data());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const HeldRow whole = store.hold(rows[r], 1, {}, 1);
    for (std::size_t t = 0; t < columns.size(); ++t) {
      const float expected = whole.block(0)[columns[t]];
      CHECK(std::abs(out[r][t] - expected) <= 4e-7F * (1.0F + std::abs(expected)));
      if (rows[r] == columns[t]) CHECK(out[r][t] == expected);
    }
  }
}

}  // namespace

TEST(columns_alone_are_those_of_rows) {
  for_each_isa([] {
    // In double precision and in float32, of one tile and of several.
    for (const std::size_t n : {std::size_t{70}, std::size_t{3500}}) {
      const Rows rows(n);
      for (const KernelKind kind : {KernelKind::Rbf, KernelKind::Linear, KernelKind::Poly}) {
        const Kernel kernel{kind, 0.3, 1.0, 2};
        KernelStore dense(points_source(rows.dense(), kernel), kPlenty);
        check_columns(dense);
        KernelStore sparse(points_source(rows.csr(), kernel), kPlenty);
        check_columns(sparse);
      }
    }
  });
}

TEST(votes_of_pairs_decide) {
  // Three classes of two rows; the fold holds out the second row of each.
  const std::vector<double> x = {0.0, 0.1, 5.0, 5.1, 9.0, 9.1};
  KernelStore store(points_source(DenseView<double>{x.data(), 6, 1}, {KernelKind::Rbf, 1.0, 0, 1}),
                    kPlenty);
  const std::vector<std::size_t> starts = {0, 2, 4, 6};
  const std::vector<std::int32_t> queries = {1, 3, 5};
  // All gradients are 0: the pairs of their own class say 1 and -1.
  Solution pair;
  pair.beta = {1.0, 0.0, -1.0, 0.0};
  pair.gradient = {0.0, 0.0, 0.0, 0.0};
  const std::vector<FittedFold> folds = {{{&pair, &pair, &pair}, queries},
                                         {{&pair, &pair, &pair}, {}}};
  std::vector<std::int32_t> labels(3, -1);
  std::vector<double> small(2, -1.0);
  held_out_labels(store, starts, folds, 0.5, 2, labels.data(), small.data());
  CHECK((labels == std::vector<std::int32_t>{0, 1, 2}));
  CHECK((small == std::vector<double>{0.0, 0.0}));

  // One that loses a pair of its class is decided by the kernel values of all pairs: by those it
  // wins, and 1 of 3 of them is almost 0, since its class has no part in that one.
  Solution lost = pair;
  lost.gradient[1] = 2.0;
  const std::vector<FittedFold> contested = {{{&lost, &pair, &pair}, queries}};
  held_out_labels(store, starts, contested, 0.5, 1, labels.data(), small.data());
  CHECK((labels == std::vector<std::int32_t>{0, 1, 2}));
  CHECK(small[0] == 1.0 / 9.0);
}

TEST(pair_products_are_sums_over_support_vectors) {
  const std::size_t size_of_all = 90;
  const auto x = normal(size_of_all * kCols, 8);
  const auto source = [&] {
    return points_source(DenseView<double>{x.data(), size_of_all, kCols},
                         {KernelKind::Rbf, 0.1, 0.0, 1});
  };
  const auto kernel = [&](std::int32_t i, std::int32_t j) {
    double square = 0.0;
    for (std::size_t c = 0; c < kCols; ++c) {
      const double difference =
          x[static_cast<std::size_t>(i) * kCols + c] - x[static_cast<std::size_t>(j) * kCols + c];
      square += difference * difference;
    }
    return std::exp(-0.1 * square);
  };
  const std::vector<std::size_t> sizes = {20, 0, 9, 31};  // of the classes; one has no rows
  const std::size_t classes = sizes.size();
  std::vector<std::size_t> starts = {0};
  for (const std::size_t size : sizes) starts.push_back(starts.back() + size);
  const std::size_t n = starts.back();
  std::vector<std::int32_t> rows(n);
  for (std::size_t r = 0; r < n; ++r) rows[r] = static_cast<std::int32_t>(r + r / 2);
  auto coef = normal((classes - 1) * n, 9);
  std::mt19937 random(9);
  for (double& value : coef) value = random() % 3 == 0 ? 0.0 : value;
  for (std::size_t other = 0; other + 1 < classes; ++other)
    coef[other * n + 4] = 0.0;  // no support

  std::vector<std::int32_t> everyone(size_of_all);
  std::iota(everyone.begin(), everyone.end(), 0);
  const std::vector<std::vector<std::int32_t>> queries = {
      everyone, {}, {89}, {3, 4, 5, 40, 41, 88, 0}, {7, 7, 6, 5}};
  const auto check_on = [&](KernelStore& store) {
    for (const auto& asked : queries) {
      std::vector<double> out(asked.size() * classes * (classes - 1) / 2, -1.0);
      pair_products(store, rows, starts, coef.data(), asked, out.data());
      const double* value = out.data();
      for (const std::int32_t query : asked) {
        for (std::size_t i = 0; i < classes; ++i) {
          for (std::size_t j = i + 1; j < classes; ++j) {
            double expected = 0.0;
            const auto add = [&](std::size_t k, std::size_t row_of_coef) {
              for (std::size_t r = starts[k]; r < starts[k + 1]; ++r) {
                expected += coef[row_of_coef * n + r] * kernel(rows[r], query);
              }
            };
            add(i, j - 1);
            add(j, i);
            CHECK(std::abs(*value++ - expected) < 1e-5);
          }
        }
      }
    }
  };
  for_each_isa([&] {
    KernelStore whole(source(), kPlenty);
    check_on(whole);
    KernelStore in_blocks(source(), kPlenty, {0, 4, 41, 42}, 0);
    check_on(in_blocks);
    KernelStore small(source(), 1);  // rows are evicted all the time
    check_on(small);
  });
}
