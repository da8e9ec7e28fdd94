#include "held_out.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "loops.hpp"
#include "parallel.hpp"

namespace onefit {
namespace {

constexpr std::size_t kRows = 4;    // that are summed up in one pass
constexpr std::size_t kBatch = 32;  // that are evaluated together: they stay in the cache
constexpr std::size_t kInCache = std::size_t{24} << 20;  // bytes of a matrix

// Kernel values of some rows with the queries.
class QueryValues {
 public:
  QueryValues(KernelStore& store, std::span<const std::int32_t> queries)
      : store_(store),
        size_(queries.size()),
        direct_(store.only(queries)),
        // With few features evaluating is faster than reading what is in no cache.
        always_(direct_ != nullptr && store.preferred_rows() == 1 &&
                store.size() * store.size() * sizeof(float) > kInCache),
        values_(kBatch * queries.size()) {
    // Where the columns are: runs of them are short.
    for (std::size_t q = 0; q < queries.size() && !always_; ++q) {
      const auto column = static_cast<std::size_t>(queries[q]);
      const Run run = store.run(column, column + 1);
      if (pieces_.empty() || pieces_.back().block != run.block) pieces_.push_back({run.block, 0});
      pieces_.back().end = q + 1;
      offsets_.push_back(static_cast<std::uint32_t>(run.offset));
      blocks_ |= std::uint64_t{1} << run.block;
    }
  }

  // Of the first rows, at most kBatch: how many there are.
  std::size_t read(std::span<const std::int32_t> rows) {
    const std::size_t count = std::min(kBatch, rows.size());
    std::vector<std::int32_t> absent;
    std::vector<float*> to;
    for (std::size_t r = 0; r < count; ++r) {
      if (direct_ != nullptr && (always_ || !store_.has(rows[r], blocks_))) {
        absent.push_back(rows[r]);
        to.push_back(row(r));
      } else {
        copy(rows.subspan(r), row(r));
      }
    }
    if (!absent.empty()) direct_->evaluate(absent, to.data());
    store_.count(absent.size() * size_);
    return count;
  }

  float* row(std::size_t r) { return values_.data() + r * size_; }

 private:
  // The first of these rows; if the store lacks it, it may evaluate the next ones with it.
  void copy(std::span<const std::int32_t> rows, float* to) {
    const std::size_t next = std::min(kQueries, rows.size() - 1);
    const HeldRow held = store_.hold(rows[0], blocks_, rows.subspan(1, next), 1);
    std::size_t q = 0;
    for (const Piece& piece : pieces_) {
      const float* from = held.block(piece.block);
      for (; q < piece.end; ++q) to[q] = from[offsets_[q]];
    }
  }

  KernelStore& store_;
  std::size_t size_;
  std::unique_ptr<ColumnSource> direct_;
  bool always_;
  std::vector<float> values_;
  struct Piece {  // queries before `end` whose columns are in one block
    std::size_t block;
    std::size_t end;
  };
  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> offsets_;
  std::uint64_t blocks_ = 0;
};

// The number of the pair (i, j), in LIBSVM's order.
std::size_t pair_number(std::size_t classes, std::size_t i, std::size_t j) {
  return i * (2 * classes - i - 1) / 2 + j - i - 1;
}

// The same sums pair by pair.
std::vector<double> sums_of_pairs(KernelStore& store, std::span<const std::int32_t> rows,
                                  std::span<const std::size_t> starts, const double* coef,
                                  std::span<const std::int32_t> queries) {
  const std::size_t classes = starts.size() - 1;
  const std::size_t n = rows.size();
  std::vector<double> sums(classes * (classes - 1) / 2 * queries.size(), 0.0);
  if (queries.empty()) return sums;
  QueryValues values(store, queries);
  // Which of many are not 0 cannot be guessed: they are counted without a branch.
  std::vector<std::uint8_t> any;
  std::vector<std::size_t> support(n);
  std::vector<std::int32_t> support_rows(n);
  std::size_t used[kBatch];
  for (std::size_t k = 0; k < classes; ++k) {
    const std::size_t size = starts[k + 1] - starts[k];
    any.assign(size, 0);
    for (std::size_t other = 0; other + 1 < classes; ++other) {
      const double* factors = coef + other * n + starts[k];
      for (std::size_t r = 0; r < size; ++r) {
        any[r] = static_cast<std::uint8_t>(any[r] | static_cast<std::uint8_t>(factors[r] != 0.0));
      }
    }
    std::size_t n_support = 0;
    for (std::size_t r = starts[k]; r < starts[k + 1]; ++r) {
      support[n_support] = r;
      support_rows[n_support] = rows[r];
      n_support += any[r - starts[k]];
    }
    for (std::size_t s = 0; s < n_support;) {
      const std::size_t count = values.read(std::span(support_rows).subspan(s, n_support - s));
      for (std::size_t other = 0; other + 1 < classes; ++other) {
        const double* factors = coef + other * n;
        std::size_t n_used = 0;
        for (std::size_t r = 0; r < count; ++r) {
          used[n_used] = r;
          n_used += factors[support[s + r]] != 0.0 ? 1 : 0;
        }
        const std::size_t p =
            other < k ? pair_number(classes, other, k) : pair_number(classes, k, other + 1);
        for (std::size_t u = 0; u < n_used; u += kRows) {
          const float* at[kRows];
          double factor[kRows] = {};
          for (std::size_t r = 0; r < kRows; ++r) {
            const std::size_t row = used[std::min(u + r, n_used - 1)];
            at[r] = values.row(row);
            if (u + r < n_used) factor[r] = factors[support[s + row]];
          }
          loops().accumulate4(queries.size(), sums.data() + p * queries.size(), at, factor);
        }
      }
      s += count;
    }
  }
  return sums;
}

// Coefficients of all rows in LIBSVM's layout, from those of the pairs.
void set_coefficients(const FittedFold& fold, std::span<const std::size_t> starts, double* coef) {
  const std::size_t classes = starts.size() - 1;
  const std::size_t n = starts.back();
  auto pair = fold.pairs.begin();
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t j = i + 1; j < classes; ++j, ++pair) {
      const double* beta = pair->beta;
      const std::size_t size = starts[i + 1] - starts[i];
      std::copy_n(beta, size, coef + (j - 1) * n + starts[i]);
      std::copy_n(beta + size, starts[j + 1] - starts[j], coef + i * n + starts[j]);
    }
  }
}

// The values of one fold, pair by pair, without the offsets.
std::vector<double> values_of_pairs(KernelStore& store, std::span<const std::size_t> starts,
                                    const FittedFold& fold) {
  if (fold.pairs.size() == 1) {  // p - g, where p of C-SVC is 1 in the first class, -1 in the other
    std::vector<double> values;
    for (const std::int32_t query : fold.queries) {
      const auto q = static_cast<std::size_t>(query);
      values.push_back((q < starts[1] ? 1.0 : -1.0) - fold.pairs[0].gradient[q]);
    }
    return values;
  }
  std::vector<double> coef((starts.size() - 2) * starts.back());
  set_coefficients(fold, starts, coef.data());
  std::vector<std::int32_t> rows(starts.back());
  std::iota(rows.begin(), rows.end(), 0);
  return sums_of_pairs(store, rows, starts, coef.data(), fold.queries);
}

std::int64_t label_fold(KernelStore& store, std::span<const std::size_t> starts,
                        const FittedFold& fold, double tol, std::int32_t* labels) {
  const std::size_t classes = starts.size() - 1;
  const std::size_t n = fold.queries.size();
  const std::vector<double> values = values_of_pairs(store, starts, fold);
  std::int64_t small = 0;
  std::vector<std::int32_t> votes(classes * n, 0);  // class by class
  for (std::size_t i = 0, p = 0; i < classes; ++i) {
    for (std::size_t j = i + 1; j < classes; ++j, ++p) {
      const double offset = fold.pairs[p].offset;
      std::int32_t* first = votes.data() + i * n;
      std::int32_t* second = votes.data() + j * n;
      for (std::size_t q = 0; q < n; ++q) {
        const double value = values[p * n + q] + offset;
        small += std::abs(value) < tol ? 1 : 0;
        first[q] += value > 0.0 ? 1 : 0;
        second[q] += value > 0.0 ? 0 : 1;
      }
    }
  }
  std::fill_n(labels, n, 0);
  std::vector<std::int32_t> most(votes.begin(), votes.begin() + static_cast<std::ptrdiff_t>(n));
  for (std::size_t k = 1; k < classes; ++k) {
    for (std::size_t q = 0; q < n; ++q) {
      if (votes[k * n + q] <= most[q]) continue;
      most[q] = votes[k * n + q];
      labels[q] = static_cast<std::int32_t>(k);
    }
  }
  return small;
}

}  // namespace

void pair_products(KernelStore& store, std::span<const std::int32_t> rows,
                   std::span<const std::size_t> starts, const double* coef,
                   std::span<const std::int32_t> queries, double* out) {
  const std::vector<double> sums = sums_of_pairs(store, rows, starts, coef, queries);
  const std::size_t n = queries.size();
  for (std::size_t q = 0; q < n; ++q) {
    for (std::size_t at = q; at < sums.size(); at += n) *out++ = sums[at];
  }
}

void held_out_labels(KernelStore& store, std::span<const std::size_t> starts,
                     const std::vector<FittedFold>& folds, double tol, std::size_t threads,
                     std::int32_t* labels, std::int64_t* small) {
  std::vector<std::int32_t*> to;
  for (const FittedFold& fold : folds) {
    to.push_back(labels);
    labels += fold.queries.size();
  }
  const std::size_t users = std::max<std::size_t>(1, std::min(threads, store.most_users()));
  parallel_for(folds.size(), users, [&](std::size_t begin, std::size_t end) {
    for (std::size_t f = begin; f < end; ++f) {
      small[f] = label_fold(store, starts, folds[f], tol, to[f]);
    }
  });
}

}  // namespace onefit
