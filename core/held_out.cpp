#include "held_out.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "loops.hpp"
#include "parallel.hpp"

namespace onefit {
namespace {

constexpr std::size_t kBatch = 32;  // that are evaluated together: they stay in the cache
constexpr std::size_t kInCache = std::size_t{24} << 20;  // bytes of a matrix
constexpr double kRounding = 1e-10;  // of a value, as a share of what is summed up for it

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
  const float* at[kBatch];  // of those with a factor
  double factor[kBatch];
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
        std::size_t used = 0;
        for (std::size_t r = 0; r < count; ++r) {
          at[used] = values.row(r);
          factor[used] = factors[support[s + r]];
          used += factor[used] != 0.0 ? 1 : 0;
        }
        const std::size_t p =
            other < k ? pair_number(classes, other, k) : pair_number(classes, k, other + 1);
        loops().accumulate(queries.size(), sums.data() + p * queries.size(), at, factor, used);
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

// Votes on the rows that one fold holds out.
class Vote {
 public:
  Vote(KernelStore& store, std::span<const std::size_t> starts, const FittedFold& fold, double tol)
      : store_(store), starts_(starts), classes_(starts.size() - 1), fold_(fold), tol_(tol) {
    find_rounding();
  }

  // Labels of all of them; returns which share of the values that were looked at are small.
  double run(std::int32_t* labels) {
    std::vector<Contested> contested;
    ask_own_pairs(labels, [&](std::size_t q, std::size_t rival, bool rounded) {
      if (classes_ == 2 && !rounded) {
        labels[q] = 1 - labels[q];
      } else {
        contested.push_back({q, rival});
      }
    });
    if (classes_ > 2 && has_whole_rows()) ask_rivals(contested, labels);
    if (!contested.empty()) ask_all_pairs(contested, labels);
    return looked_at_ == 0 ? 0.0 : static_cast<double>(small_) / static_cast<double>(looked_at_);
  }

 private:
  // A query that loses a pair of its own class, or wins one by less than rounding, and the class
  // that beats it by most.
  struct Contested {
    std::size_t query;
    std::size_t rival;
  };

  void look_at(double value) {
    ++looked_at_;
    small_ += std::abs(value) < tol_ ? 1 : 0;
  }

  bool has_whole_rows() const { return store_.is_in_one_piece() && store_.n_blocks() == 1; }

  std::size_t position(std::size_t q) const { return static_cast<std::size_t>(fold_.queries[q]); }

  // What rounding may have left in the values of each pair, where gradients were updated row by row
  // with the query's own label in them.
  void find_rounding() {
    const float* diagonal = store_.diagonal();
    float most[4] = {};  // of each fourth: they do not wait for one another
    for (std::size_t r = 0; r < store_.size(); ++r) {
      most[r % 4] = std::max(most[r % 4], std::abs(diagonal[r]));
    }
    const auto largest = static_cast<double>(std::max({most[0], most[1], most[2], most[3]}));
    auto pair = fold_.pairs.begin();
    for (std::size_t i = 0; i < classes_; ++i) {
      for (std::size_t j = i + 1; j < classes_; ++j, ++pair) {
        const std::size_t size = starts_[i + 1] - starts_[i] + starts_[j + 1] - starts_[j];
        double sums[4] = {};
        for (std::size_t v = 0; v < size; ++v) sums[v % 4] += std::abs(pair->beta[v]);
        const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
        rounding_.push_back(kRounding * (1.0 + sum * largest));
      }
    }
  }

  // Gives every row its own class, and names those that lose a pair of it, with their rivals, and
  // whether that is within rounding. The value of a variable is p - g, where p of C-SVC is 1 in the
  // first class and -1 in the second.
  template <class Loses>
  void ask_own_pairs(std::int32_t* labels, const Loses& loses) {
    for (std::size_t q = 0; q < fold_.queries.size(); ++q) {
      const auto next = std::upper_bound(starts_.begin(), starts_.end(), position(q));
      const auto k = static_cast<std::size_t>(next - starts_.begin()) - 1;
      const std::size_t member = position(q) - starts_[k];
      labels[q] = static_cast<std::int32_t>(k);
      bool lost = false;
      bool rounded = false;
      double worst = std::numeric_limits<double>::infinity();
      std::size_t rival = k;
      const auto note = [&](std::size_t other, std::size_t p, double value, double margin) {
        look_at(value);
        rounded |= !(std::abs(value) > rounding_[p]);
        lost |= !(margin > 0.0);
        rival = margin < worst ? other : rival;
        worst = std::min(margin, worst);
      };
      // Variables of a pair are the rows of its first class, then those of the second.
      for (std::size_t i = 0; i < k; ++i) {
        const std::size_t p = pair_number(classes_, i, k);
        const PairModel& pair = fold_.pairs[p];
        const double g = pair.gradient[starts_[i + 1] - starts_[i] + member];
        const double value = -1.0 - g + pair.offset;
        note(i, p, value, -value);
      }
      for (std::size_t j = k + 1; j < classes_; ++j) {
        const std::size_t p = pair_number(classes_, k, j);
        const PairModel& pair = fold_.pairs[p];
        const double value = 1.0 - pair.gradient[member] + pair.offset;
        note(j, p, value, value);
      }
      if (lost | rounded) loses(q, rival, rounded);
    }
  }

  // Gives queries the class of their rivals where these win all of their pairs, and forgets them.
  // Where whole rows are kept, those of queries that errors are made of are there: they are support
  // vectors of other folds.
  void ask_rivals(std::vector<Contested>& contested, std::int32_t* labels) {
    const std::vector<std::int32_t> queries = rows_of(contested);
    std::vector<double> row(starts_.back());
    std::vector<double> values(classes_ - 1);
    std::vector<Contested> left;
    for (std::size_t c = 0; c < contested.size(); ++c) {
      read(std::span(queries).subspan(c), row);
      const std::size_t rival = contested[c].rival;
      bool wins = true;
      for (std::size_t k = 0, at = 0; k < classes_; ++k) {
        if (k == rival) continue;
        const double value = value_of(std::min(k, rival), std::max(k, rival), row);
        wins &= (value > 0.0) == (rival < k);
        values[at++] = value;
      }
      if (!wins) {
        left.push_back(contested[c]);
        continue;
      }
      for (const double value : values) look_at(value);
      labels[contested[c].query] = static_cast<std::int32_t>(rival);
    }
    contested = std::move(left);
  }

  void ask_all_pairs(const std::vector<Contested>& contested, std::int32_t* labels) {
    const std::size_t n = contested.size();
    const std::vector<std::int32_t> queries = rows_of(contested);
    const std::vector<double> values =
        has_whole_rows() ? values_over_rows(queries) : values_over_support(queries);
    std::vector<std::int32_t> votes(classes_ * n, 0);  // class by class
    for (std::size_t i = 0, p = 0; i < classes_; ++i) {
      for (std::size_t j = i + 1; j < classes_; ++j, ++p) {
        for (std::size_t q = 0; q < n; ++q) {
          const double value = values[p * n + q];
          if (classes_ > 2) look_at(value);  // of two classes it was looked at before
          ++votes[(value > 0.0 ? i : j) * n + q];
        }
      }
    }
    for (std::size_t q = 0; q < n; ++q) {
      std::size_t winner = 0;
      for (std::size_t k = 1; k < classes_; ++k) {
        if (votes[k * n + q] > votes[winner * n + q]) winner = k;
      }
      labels[contested[q].query] = static_cast<std::int32_t>(winner);
    }
  }

  std::vector<std::int32_t> rows_of(const std::vector<Contested>& contested) const {
    std::vector<std::int32_t> rows;
    for (const Contested& c : contested) rows.push_back(fold_.queries[c.query]);
    return rows;
  }

  // The kernel row of the first of these; if the store lacks it, it may evaluate the next with it.
  void read(std::span<const std::int32_t> queries, std::vector<double>& row) {
    const std::size_t more = std::min(store_.preferred_rows(), queries.size() - 1);
    const HeldRow held = store_.hold(queries[0], 1, queries.subspan(1, more), 1);
    std::copy_n(held.block(0), row.size(), row.begin());
  }

  // What the pair (i, j) says of a query with this kernel row.
  double value_of(std::size_t i, std::size_t j, const std::vector<double>& row) const {
    const PairModel& pair = fold_.pairs[pair_number(classes_, i, j)];
    const std::size_t of_first = starts_[i + 1] - starts_[i];
    return loops().dot(of_first, pair.beta, row.data() + starts_[i]) +
           loops().dot(starts_[j + 1] - starts_[j], pair.beta + of_first, row.data() + starts_[j]) +
           pair.offset;
  }

  // Pair by pair, for each query.
  std::vector<double> values_over_rows(std::span<const std::int32_t> queries) {
    const std::size_t n = queries.size();
    std::vector<double> values(fold_.pairs.size() * n);
    std::vector<double> row(starts_.back());
    for (std::size_t q = 0; q < n; ++q) {
      read(queries.subspan(q), row);
      double* value = values.data() + q;
      for (std::size_t i = 0; i < classes_; ++i) {
        for (std::size_t j = i + 1; j < classes_; ++j, value += n) *value = value_of(i, j, row);
      }
    }
    return values;
  }

  std::vector<double> values_over_support(std::span<const std::int32_t> queries) {
    std::vector<double> coef((classes_ - 1) * starts_.back());
    set_coefficients(fold_, starts_, coef.data());
    std::vector<std::int32_t> rows(starts_.back());
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<double> values = sums_of_pairs(store_, rows, starts_, coef.data(), queries);
    for (std::size_t at = 0; at < values.size(); ++at) {
      values[at] += fold_.pairs[at / queries.size()].offset;
    }
    return values;
  }

  KernelStore& store_;
  std::span<const std::size_t> starts_;
  std::size_t classes_;
  const FittedFold& fold_;
  double tol_;
  std::vector<double> rounding_;  // of each pair
  std::size_t looked_at_ = 0;
  std::size_t small_ = 0;
};

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
                     std::int32_t* labels, double* small) {
  std::vector<std::int32_t*> to;
  for (const FittedFold& fold : folds) {
    to.push_back(labels);
    labels += fold.queries.size();
  }
  const std::size_t users = std::max<std::size_t>(1, std::min(threads, store.most_users()));
  parallel_for(folds.size(), users, [&](std::size_t begin, std::size_t end) {
    for (std::size_t f = begin; f < end; ++f) {
      small[f] = Vote(store, starts, folds[f], tol).run(to[f]);
    }
  });
}

}  // namespace onefit
