#include "source.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "loops.hpp"
#include "parallel.hpp"
#include "store.hpp"

namespace onefit {
namespace {

// A squared distance from float32 dot products is off by about 2^-24 (|x|^2 + |x'|^2), and an RBF
// entry by gamma times that. Float32 is used while this is below 5e-7 for rows of mean norm and
// 4e-6 for the largest: always with gamma="scale", unless the data have far outliers.
constexpr double kMeanExponent = 4.0;
constexpr double kLargestExponent = 32.0;
// So few rows are multiplied in double precision: entries are then rounded once, and the same for
// dense and sparse rows.
constexpr std::size_t kFewRows = 200;

// A thread is worth starting for this many multiplications (half a millisecond); beside its dot
// product an entry takes as long as kEntryWork of them.
constexpr std::size_t kThreadWork = 20000000;
constexpr std::size_t kEntryWork = 16;

// Values in double precision are written through a small buffer of this many.
constexpr std::size_t kPart = 256;

// Kernel values of a row with n others, from their dot products and squared norms.
template <class T>
void write_values(const Kernel& kernel, std::size_t n, const T* dot, const T* sq, T sq_row,
                  float* out) {
  if constexpr (std::is_same_v<T, float>) {
    kernel_values<float>(kernel, n, dot, sq, sq_row, out);
  } else {
    if (kernel.kind == KernelKind::Rbf) {
      loops().rbf_df(n, dot, sq, sq_row, kernel.gamma, out);
      return;
    }
    double values[kPart];
    for (std::size_t t = 0; t < n; t += kPart) {
      const std::size_t m = std::min(kPart, n - t);
      kernel_values<double>(kernel, m, dot + t, sq + t, sq_row, values);
      for (std::size_t k = 0; k < m; ++k) out[t + k] = static_cast<float>(values[k]);
    }
    // Those of the others are no larger than the diagonal.
    if (kernel.kind == KernelKind::Poly) check_entries(out, n);
  }
}

template <class T>
class PointsColumns final : public ColumnSource {
 public:
  PointsColumns(const Points<T>& all, const Kernel& kernel, std::span<const std::int32_t> columns)
      : all_(all), kernel_(kernel), columns_(all, columns), at_(all.rows(), kAbsent) {
    for (std::size_t t = 0; t < columns.size(); ++t) {
      at_[static_cast<std::size_t>(columns[t])] = static_cast<std::int32_t>(t);
    }
  }

  void evaluate(std::span<const std::int32_t> rows, float* const* out) override {
    columns_.gather(all_, rows, queries_);
    tile_.resize(kQueries * kTile);
    for (std::size_t from = 0; from < columns_.rows(); from += kTile) {
      const std::size_t to = std::min(from + kTile, columns_.rows());
      columns_.dots(queries_, from, to, tile_.data(), scratch_);
      for (std::size_t q = 0; q < rows.size(); ++q) {
        write_values(kernel_, to - from, tile_.data() + q * kTile, columns_.squared_norms() + from,
                     queries_.sq[q], out[q] + from);
      }
    }
    for (std::size_t q = 0; q < rows.size(); ++q) {
      const auto row = static_cast<std::size_t>(rows[q]);
      if (at_[row] == kAbsent) continue;
      out[q][at_[row]] = static_cast<float>(kernel_diagonal(kernel_, all_.exact_squared_norm(row)));
    }
  }

 private:
  static constexpr std::int32_t kAbsent = -1;
  const Points<T>& all_;
  const Kernel& kernel_;
  Points<T> columns_;
  std::vector<std::int32_t> at_;  // per row: which of the columns it is
  typename Points<T>::Queries queries_;
  std::vector<T> tile_;
  std::vector<T> scratch_;
};

template <class T>
class PointsSource final : public RowSource {
 public:
  PointsSource(Points<T> points, const Kernel& kernel)
      : points_(std::move(points)), kernel_(kernel) {}

  std::size_t size() const override { return points_.rows(); }
  std::size_t preferred_rows() const override { return points_.preferred_queries(); }

  double diagonal(std::size_t row) const override {
    return kernel_diagonal(kernel_, points_.exact_squared_norm(row));
  }
  bool is_between_0_and_1() const override { return kernel_.kind == KernelKind::Rbf; }

  void evaluate(std::span<const std::int32_t> rows, float* const* out, std::size_t first,
                std::size_t last, std::size_t threads) const override {
    const std::size_t start = first / kPanel * kPanel;  // panels are evaluated whole
    const std::size_t tiles = (last - start + kTile - 1) / kTile;
    for (std::size_t r0 = 0; r0 < rows.size(); r0 += kQueries) {
      const std::size_t count = std::min(kQueries, rows.size() - r0);
      const typename Points<T>::Queries& queries = gathered(rows.subspan(r0, count));
      const std::size_t work = count * (last - start) * (points_.cols() + kEntryWork);
      parallel_for(tiles, std::min(threads, 1 + work / kThreadWork),
                   [&](std::size_t begin, std::size_t end) {
                     thread_local std::vector<T> tile;
                     thread_local std::vector<T> scratch;
                     tile.resize(kQueries * kTile);
                     for (std::size_t i = begin; i < end; ++i) {
                       const std::size_t from = start + i * kTile;
                       const std::size_t to = std::min(from + kTile, last);
                       const std::size_t skip = first > from ? first - from : 0;
                       points_.dots(queries, from, to, tile.data(), scratch);
                       for (std::size_t q = 0; q < count; ++q) {
                         write_values(kernel_, to - from - skip, tile.data() + q * kTile + skip,
                                      points_.squared_norms() + from + skip, queries.sq[q],
                                      out[r0 + q] + (from + skip - first));
                       }
                     }
                   });
      for (std::size_t q = 0; q < count; ++q) {
        const auto row = static_cast<std::size_t>(rows[r0 + q]);
        if (first <= row && row < last) {
          out[r0 + q][row - first] = static_cast<float>(diagonal(row));
        }
      }
    }
  }

  std::unique_ptr<ColumnSource> only(std::span<const std::int32_t> columns) const override {
    return std::make_unique<PointsColumns<T>>(points_, kernel_, columns);
  }

  void evaluate_exact(std::int32_t row, std::span<const std::int32_t> columns,
                      double* out) const override {
    const auto r = static_cast<std::size_t>(row);
    std::vector<double> dots(columns.size());
    points_.exact_dots(r, columns, dots.data());
    std::vector<double> sq(columns.size());
    for (std::size_t t = 0; t < columns.size(); ++t) {
      sq[t] = points_.exact_squared_norm(static_cast<std::size_t>(columns[t]));
    }
    const double sq_row = points_.exact_squared_norm(r);
    kernel_values<double>(kernel_, columns.size(), dots.data(), sq.data(), sq_row, out);
    for (std::size_t t = 0; t < columns.size(); ++t) {
      if (columns[t] == row) out[t] = diagonal(r);
    }
  }

 private:
  // The rows as queries. Blocks of the same rows are often evaluated one after another, so that
  // each thread keeps the last ones.
  const typename Points<T>::Queries& gathered(std::span<const std::int32_t> rows) const {
    struct Last {
      std::uint64_t source = 0;
      std::vector<std::int32_t> rows;
      typename Points<T>::Queries queries;
    };
    thread_local Last last;
    if (last.source != id_ ||
        !std::equal(rows.begin(), rows.end(), last.rows.begin(), last.rows.end())) {
      last.source = 0;
      points_.gather(points_, rows, last.queries);
      last.rows.assign(rows.begin(), rows.end());
      last.source = id_;
    }
    return last.queries;
  }

  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  Points<T> points_;
  Kernel kernel_;
  std::uint64_t id_ = next_id();  // never used again, as an address would be
};

class MatrixSource final : public RowSource {
 public:
  MatrixSource(DenseView<double> view, std::vector<std::int32_t> rows)
      : view_(view), rows_(std::move(rows)) {}

  std::size_t size() const override { return rows_.size(); }
  std::size_t preferred_rows() const override { return 1; }
  double diagonal(std::size_t row) const override { return given_row(row)[rows_[row]]; }

  void evaluate(std::span<const std::int32_t> rows, float* const* out, std::size_t first,
                std::size_t last, std::size_t threads) const override {
    parallel_for(rows.size(), threads, [&](std::size_t begin, std::size_t end) {
      for (std::size_t r = begin; r < end; ++r) {
        const double* row = given_row(static_cast<std::size_t>(rows[r]));
        for (std::size_t t = first; t < last; ++t) {
          out[r][t - first] = static_cast<float>(row[rows_[t]]);
        }
        check_entries(out[r], last - first);
      }
    });
  }

  void evaluate_exact(std::int32_t row, std::span<const std::int32_t> columns,
                      double* out) const override {
    const double* given = given_row(static_cast<std::size_t>(row));
    for (std::size_t t = 0; t < columns.size(); ++t) {
      out[t] = given[rows_[static_cast<std::size_t>(columns[t])]];
      if (!std::isfinite(out[t])) throw std::overflow_error("kernel values overflow");
    }
  }

 private:
  const double* given_row(std::size_t row) const {
    return view_.row(static_cast<std::size_t>(rows_[row]));
  }

  DenseView<double> view_;
  std::vector<std::int32_t> rows_;
};

class DistanceSource final : public RowSource {
 public:
  DistanceSource(std::shared_ptr<KernelStore> distances, double gamma)
      : distances_(std::move(distances)), gamma_(gamma) {}

  std::size_t size() const override { return distances_->size(); }
  std::size_t preferred_rows() const override { return distances_->preferred_rows(); }
  double diagonal(std::size_t /*row*/) const override { return 1.0; }
  bool is_between_0_and_1() const override { return true; }

  void evaluate(std::span<const std::int32_t> rows, float* const* out, std::size_t first,
                std::size_t last, std::size_t threads) const override {
    const std::uint64_t blocks = distances_->blocks(first, last);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const HeldRow held = distances_->hold(rows[r], blocks, rows.subspan(r + 1), threads);
      for (std::size_t from = first; from < last;) {
        const Run run = distances_->run(from, last);
        loops().rbf_from_distance(run.length, held.block(run.block) + run.offset,
                                  static_cast<float>(gamma_), out[r] + (from - first));
        from += run.length;
      }
    }
  }

  void evaluate_exact(std::int32_t row, std::span<const std::int32_t> columns,
                      double* out) const override {
    distances_->evaluate_exact(row, columns, out);
    for (std::size_t t = 0; t < columns.size(); ++t) out[t] = std::exp(-gamma_ * out[t]);
  }

 private:
  std::shared_ptr<KernelStore> distances_;
  double gamma_;
};

// Up to `most` of the rows of the data, evenly spaced: the same whatever order the view has them
// in. Rows are in the order of their classes, and labels must not reach kernel entries.
template <class S>
std::vector<const S*> some_rows(DenseView<S> view, std::size_t most) {
  const std::span<const std::int64_t> order(view.order, view.order == nullptr ? 0 : view.rows);
  std::vector<std::int64_t> numbers;  // sorted, unless they are all from 0 on
  if (!order.empty() && static_cast<std::size_t>(std::ranges::max(order)) + 1 != view.rows) {
    numbers.assign(order.begin(), order.end());
    std::ranges::sort(numbers);
  }
  const std::size_t count = std::min(most, view.rows);
  std::vector<const S*> rows(count);
  for (std::size_t r = 0; r < count; ++r) {
    const std::size_t at = r * view.rows / count;
    rows[r] =
        view.data + (numbers.empty() ? at : static_cast<std::size_t>(numbers[at])) * view.cols;
  }
  return rows;
}

// The middle of the data: the median of some rows in each column. One row that is far away would
// move the mean, and leave the others without their digits.
template <class S>
std::vector<double> middle_row(DenseView<S> view) {
  constexpr std::size_t kSome = 63;
  const std::vector<const S*> rows = some_rows(view, kSome);
  const std::size_t count = rows.size();
  std::vector<double> middle(view.cols, 0.0);
  std::vector<double> values(count);
  for (std::size_t k = 0; k < view.cols && count > 0; ++k) {
    for (std::size_t r = 0; r < count; ++r) values[r] = static_cast<double>(rows[r][k]);
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count / 2),
                     values.end());
    middle[k] = values[count / 2];
  }
  return middle;
}

// Squared norms of rows.
struct Norms {
  double sum = 0.0;
  double largest = 0.0;
  void add(double sq) {
    sum += sq;
    largest = std::max(largest, sq);
  }
};

template <class S>
Norms norms(DenseView<S> view, const double* centre) {
  constexpr std::size_t kTogether = 8;  // sums that do not wait for one another
  Norms all;
  for (std::size_t first = 0; first < view.rows; first += kTogether) {
    const std::size_t count = std::min(kTogether, view.rows - first);
    const S* rows[kTogether];
    for (std::size_t r = 0; r < kTogether; ++r) rows[r] = view.row(first + std::min(r, count - 1));
    double sq[kTogether] = {};
    for (std::size_t k = 0; k < view.cols; ++k) {
      for (std::size_t r = 0; r < kTogether; ++r) {
        const double v = static_cast<double>(rows[r][k]) - centre[k];
        sq[r] += v * v;
      }
    }
    for (std::size_t r = 0; r < count; ++r) all.add(sq[r]);
  }
  return all;
}

Norms norms(CsrView view) {
  Norms all;
  for (std::size_t i = 0; i < view.rows; ++i) {
    double sq = 0.0;
    for (std::int64_t e = view.indptr[i]; e < view.indptr[i + 1]; ++e) {
      sq += view.data[e] * view.data[e];
    }
    all.add(sq);
  }
  return all;
}

bool float_suffices(const Kernel& kernel, const Norms& norms, std::size_t rows) {
  return rows > kFewRows && kernel.kind == KernelKind::Rbf &&
         kernel.gamma * norms.largest <= kLargestExponent &&
         kernel.gamma * norms.sum <= kMeanExponent * static_cast<double>(rows);
}

void check_finite(const Norms& norms) {
  if (!std::isfinite(norms.sum)) throw std::overflow_error("squared norms of the rows overflow");
}

// An RBF kernel of rows times sqrt(gamma) has gamma = 1: whatever the units of the data, the values
// then fit into a float32.
double row_scale(const Kernel& kernel) {
  return kernel.kind == KernelKind::Rbf ? std::sqrt(kernel.gamma) : 1.0;
}

Kernel of_scaled_rows(Kernel kernel) {
  if (kernel.kind == KernelKind::Rbf) kernel.gamma = 1.0;
  return kernel;
}

template <class T, class... View>
std::unique_ptr<RowSource> make_source(const Kernel& kernel, View... view) {
  return std::make_unique<PointsSource<T>>(Points<T>(view..., row_scale(kernel)),
                                           of_scaled_rows(kernel));
}

template <class S>
std::unique_ptr<RowSource> dense_source(DenseView<S> view, const Kernel& kernel) {
  std::vector<double> centre(view.cols, 0.0);
  if (kernel.translation_invariant()) centre = middle_row(view);
  const Norms sq = norms(view, centre.data());
  check_finite(sq);
  return float_suffices(kernel, sq, view.rows) ? make_source<float>(kernel, view, centre.data())
                                               : make_source<double>(kernel, view, centre.data());
}

}  // namespace

void check_entries(const float* values, std::size_t n) {
  int beyond = 0;
  for (std::size_t t = 0; t < n; ++t) {
    beyond |= static_cast<int>(!(std::abs(values[t]) <= kLargestEntry));
  }
  if (beyond != 0) throw std::overflow_error("kernel values overflow");
}

std::unique_ptr<RowSource> points_source(DenseView<float> view, const Kernel& kernel) {
  return dense_source(view, kernel);
}

std::unique_ptr<RowSource> points_source(DenseView<double> view, const Kernel& kernel) {
  return dense_source(view, kernel);
}

std::unique_ptr<RowSource> points_source(CsrView view, const Kernel& kernel) {
  const Norms sq = norms(view);
  check_finite(sq);
  return float_suffices(kernel, sq, view.rows) ? make_source<float>(kernel, view)
                                               : make_source<double>(kernel, view);
}

std::unique_ptr<RowSource> matrix_source(DenseView<double> view, std::vector<std::int32_t> rows) {
  return std::make_unique<MatrixSource>(view, std::move(rows));
}

std::unique_ptr<RowSource> distance_source(std::shared_ptr<KernelStore> distances, double gamma) {
  return std::make_unique<DistanceSource>(std::move(distances), gamma);
}

void kernel_block(const Points<double>& queries, const Points<double>& support,
                  const Kernel& kernel, std::size_t first, std::size_t last, double* out) {
  const std::size_t columns = support.rows();
  Points<double>::Queries block;
  std::vector<std::int32_t> rows;
  std::vector<double> tile(kQueries * kTile);
  std::vector<double> scratch;
  for (std::size_t r0 = first; r0 < last; r0 += kQueries) {
    rows.resize(std::min(kQueries, last - r0));
    std::iota(rows.begin(), rows.end(), static_cast<std::int32_t>(r0));
    support.gather(queries, rows, block);
    for (std::size_t c0 = 0; c0 < columns; c0 += kTile) {
      const std::size_t c1 = std::min(c0 + kTile, columns);
      support.dots(block, c0, c1, tile.data(), scratch);
      for (std::size_t q = 0; q < rows.size(); ++q) {
        kernel_values<double>(kernel, c1 - c0, tile.data() + q * kTile,
                              support.squared_norms() + c0, block.sq[q],
                              out + (r0 - first + q) * columns + c0);
      }
    }
  }
}

}  // namespace onefit
