// Columns that are evaluated alone, against the rows that they are part of.
#include <cmath>
#include <memory>
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
