#include "kernel_sums.hpp"

#include <algorithm>
#include <numeric>

#include "active.hpp"
#include "loops.hpp"

namespace onefit {
namespace {

constexpr std::size_t kBatch = 32;  // rows that are read together: they stay in the cache
constexpr std::size_t kFour = 4;    // sums that are computed at a time

// The values of kernel rows at the queries, which rise.
class QueryColumns {
 public:
  QueryColumns(KernelStore& store, std::span<const std::int32_t> queries) : store_(store) {
    for (const std::int32_t query : queries) {
      const auto q = static_cast<std::size_t>(query);
      const Run run = store.run(q, q + 1);
      if (pieces_.empty() || pieces_.back().block != run.block) pieces_.push_back({run.block, {}});
      pieces_.back().columns.add(run.offset, 1);
      blocks_ |= std::uint64_t{1} << run.block;
    }
  }

  // Of a row; `next` are rows that will be asked for after it.
  void read(std::int32_t row, std::span<const std::int32_t> next, float* to) const {
    const std::size_t more = std::min(store_.preferred_rows(), next.size());
    const HeldRow held = store_.hold(row, blocks_, next.first(more), 1);
    for (const Piece& piece : pieces_) {
      loops().gather(piece.columns.columns(), held.block(piece.block), to);
      to += piece.columns.size();
    }
  }

 private:
  struct Piece {
    std::size_t block;
    Selected columns;
  };
  KernelStore& store_;
  std::uint64_t blocks_ = 0;
  std::vector<Piece> pieces_;
};

// The support vectors of a combination in the order of the store.
struct Terms {
  std::vector<std::int32_t> rows;
  std::vector<double> coef;
  std::size_t next = 0;

  explicit Terms(const Combination& of) {
    // Which coefficients are 0 cannot be guessed: no branches.
    rows.resize(of.rows.size());
    coef.resize(of.rows.size());
    std::size_t count = 0;
    for (std::size_t v = 0; v < of.rows.size(); ++v) {
      rows[count] = of.rows[v];
      coef[count] = of.coef[v];
      count += of.coef[v] != 0.0 ? 1 : 0;
    }
    rows.resize(count);
    coef.resize(count);
    if (std::ranges::is_sorted(rows)) return;
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t v) { return rows[v]; });
    const Terms given = *this;
    for (std::size_t v = 0; v < count; ++v) {
      rows[v] = given.rows[order[v]];
      coef[v] = given.coef[order[v]];
    }
  }
};

}  // namespace

void kernel_sums(KernelStore& store, std::span<const Combination> combinations,
                 std::span<const std::int32_t> queries, double* out) {
  const std::size_t n = queries.size();
  if (n == 0) return;
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!std::ranges::is_sorted(queries)) {
    std::ranges::sort(order, {}, [&](std::size_t q) { return queries[q]; });
  }
  std::vector<std::int32_t> rising(n);
  for (std::size_t q = 0; q < n; ++q) rising[q] = queries[order[q]];
  const QueryColumns columns(store, rising);

  std::vector<Terms> terms;
  terms.reserve(combinations.size());
  std::vector<std::int32_t> place(store.size(), -1);  // of each row among those that are read
  for (const Combination& combination : combinations) {
    terms.emplace_back(combination);
    for (const std::int32_t row : terms.back().rows) place[static_cast<std::size_t>(row)] = 0;
  }
  std::vector<std::int32_t> support;
  for (std::size_t row = 0; row < place.size(); ++row) {
    if (place[row] < 0) continue;
    place[row] = static_cast<std::int32_t>(support.size() % kBatch);
    support.push_back(static_cast<std::int32_t>(row));
  }

  const std::size_t width = (n + kFour - 1) / kFour * kFour;
  const std::size_t stride = width + kLanes;  // what `gather` may write
  std::vector<double> sums(combinations.size() * width, 0.0);
  std::vector<float> batch(kBatch * stride, 0.0F);
  std::vector<const float*> at;
  for (std::size_t first = 0; first < support.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, support.size() - first);
    for (std::size_t r = 0; r < count; ++r) {
      const auto next = std::span(support).subspan(first + r + 1);
      columns.read(support[first + r], next, batch.data() + r * stride);
    }
    const std::int32_t last = support[first + count - 1];
    for (std::size_t c = 0; c < terms.size(); ++c) {
      Terms& some = terms[c];
      at.clear();
      const std::size_t begin = some.next;
      for (; some.next < some.rows.size() && some.rows[some.next] <= last; ++some.next) {
        const auto row = static_cast<std::size_t>(some.rows[some.next]);
        at.push_back(batch.data() + static_cast<std::size_t>(place[row]) * stride);
      }
      loops().accumulate(width, sums.data() + c * width, at.data(), some.coef.data() + begin,
                         at.size());
    }
  }
  for (std::size_t c = 0; c < combinations.size(); ++c) {
    for (std::size_t q = 0; q < n; ++q) out[c * n + order[q]] = sums[c * width + q];
  }
}

}  // namespace onefit
