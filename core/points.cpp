#include "points.hpp"

#include <algorithm>
#include <type_traits>

#include "loops.hpp"

namespace onefit {
namespace {

// A CSR matrix with more than this share of its entries stored is faster as a dense one: a dense
// product does about three times as many multiplications a second.
constexpr double kDense = 0.35;

// How many rows to evaluate at a time: more share the reading of the data, but are more often rows
// that turn out not to be needed. With few features reading costs little; larger data than
// kCachedBytes come from main memory for every block. Measured from 270 x 13 to 10,000 x 784
// against 1, 2, 3, 4, 8, 12, 16 and 64.
constexpr std::size_t kSparseQueries = kLanes;  // products are as long with fewer
constexpr std::size_t kFewFeatures = 48;
constexpr std::size_t kCachedBytes = std::size_t{16} << 20;

std::size_t padded(std::size_t n) { return (n + kPanel - 1) / kPanel * kPanel; }

}  // namespace

// 0 times an infinity or a NaN is not 0. In several sums, which do not wait for one another.
bool is_finite(std::span<const double> values) {
  constexpr std::size_t kSums = 16;
  const double* at = values.data();
  double sums[kSums] = {};
  std::size_t k = 0;
  for (; k + kSums <= values.size(); k += kSums) {
    for (std::size_t l = 0; l < kSums; ++l) sums[l] += 0.0 * at[k + l];
  }
  for (; k < values.size(); ++k) sums[0] += 0.0 * at[k];
  return std::ranges::all_of(sums, [](double sum) { return sum == 0.0; });
}

template <class T>
std::size_t Points<T>::dense_at(std::size_t row, std::size_t col) const {
  return ((row / kPanel) * cols_ + col) * kPanel + row % kPanel;
}

template <class T>
void Points<T>::start_dense() {
  values_ = Buffer<T>(padded(rows_) * cols_);
  for (std::size_t i = rows_; i < padded(rows_); ++i) {
    for (std::size_t k = 0; k < cols_; ++k) values_[dense_at(i, k)] = T{0};
  }
}

template <class T>
template <class S>
Points<T>::Points(DenseView<S> view, const double* centre, double scale)
    : rows_(view.rows), cols_(view.cols), sq_(padded(view.rows), T{0}), exact_sq_(view.rows) {
  start_dense();
  for (std::size_t first = 0; first < rows_; first += kPanel) {
    const std::size_t count = std::min(kPanel, rows_ - first);
    const S* x[kPanel];
    for (std::size_t r = 0; r < count; ++r) x[r] = view.row(first + r);
    // Norms of the stored values, not of the given ones: their rounding then cancels in distances.
    // Those of a panel grow together, and do not wait for one another.
    double sq[kPanel] = {};
    for (std::size_t k = 0; k < cols_; ++k) {
      const double c = centre == nullptr ? 0.0 : centre[k];
      T* values = values_.data() + dense_at(first, k);
      for (std::size_t r = 0; r < count; ++r) {
        values[r] = static_cast<T>((static_cast<double>(x[r][k]) - c) * scale);
        sq[r] += static_cast<double>(values[r]) * static_cast<double>(values[r]);
      }
    }
    for (std::size_t r = 0; r < count; ++r) {
      sq_[first + r] = static_cast<T>(sq[r]);
      exact_sq_[first + r] = sq[r];
    }
  }
}

template <class T>
Points<T>::Points(CsrView view, double scale)
    : rows_(view.rows), cols_(view.cols), sq_(padded(view.rows), T{0}), exact_sq_(view.rows) {
  const auto stored = static_cast<std::size_t>(view.indptr[rows_]);
  const double cells = static_cast<double>(rows_) * static_cast<double>(cols_);
  sparse_ = static_cast<double>(stored) <= kDense * cells;
  if (sparse_) {
    indptr_.assign(view.indptr, view.indptr + rows_ + 1);
    indices_.assign(view.indices, view.indices + stored);
    values_ = Buffer<T>(stored);
  } else {
    start_dense();
    std::fill_n(values_.data(), values_.size(), T{0});
  }
  for (std::size_t i = 0; i < rows_; ++i) {
    double sq = 0.0;
    for (std::int64_t e = view.indptr[i]; e < view.indptr[i + 1]; ++e) {
      const T v = static_cast<T>(view.data[e] * scale);
      const auto k = static_cast<std::size_t>(view.indices[e]);
      values_[sparse_ ? static_cast<std::size_t>(e) : dense_at(i, k)] = v;
      sq += static_cast<double>(v) * static_cast<double>(v);
    }
    sq_[i] = static_cast<T>(sq);
    exact_sq_[i] = sq;
  }
}

template <class T>
Points<T>::Points(const Points& from, std::span<const std::int32_t> rows)
    : sparse_(from.sparse_),
      rows_(rows.size()),
      cols_(from.cols_),
      sq_(padded(rows.size()), T{0}),
      exact_sq_(rows.size()) {
  if (sparse_) {
    indptr_.assign(1, 0);
    for (const std::int32_t row : rows) {
      const auto r = static_cast<std::size_t>(row);
      indptr_.push_back(indptr_.back() + from.indptr_[r + 1] - from.indptr_[r]);
    }
    values_ = Buffer<T>(static_cast<std::size_t>(indptr_.back()));
    indices_.reserve(values_.size());
  } else {
    start_dense();
  }
  for (std::size_t i = 0; i < rows_; ++i) {
    const auto row = static_cast<std::size_t>(rows[i]);
    sq_[i] = from.sq_[row];
    exact_sq_[i] = from.exact_sq_[row];
    from.read_row(row, [&](std::size_t k, T value) {
      values_[sparse_ ? indices_.size() : dense_at(i, k)] = value;
      if (sparse_) indices_.push_back(static_cast<std::int32_t>(k));
    });
  }
}

// write(k, value) for the features of a row, those that are stored.
template <class T>
template <class Write>
void Points<T>::read_row(std::size_t row, const Write& write) const {
  if (!sparse_) {
    for (std::size_t k = 0; k < cols_; ++k) write(k, values_[dense_at(row, k)]);
    return;
  }
  const auto end = static_cast<std::size_t>(indptr_[row + 1]);
  for (auto e = static_cast<std::size_t>(indptr_[row]); e < end; ++e) {
    write(static_cast<std::size_t>(indices_[e]), values_[e]);
  }
}

template <class T>
std::size_t Points<T>::preferred_queries() const {
  if (sparse_) return kSparseQueries;
  if (cols_ <= kFewFeatures) return 1;
  return rows_ * cols_ * sizeof(T) <= kCachedBytes ? 4 : 8;
}

template <class T>
void Points<T>::gather(const Points& from, std::span<const std::int32_t> rows, Queries& out) const {
  out.count = rows.size();
  out.sq.resize(rows.size());
  if (sparse_) {
    // Few of the values are not zero: only those are cleared.
    if (!out.spread) out.values.clear();
    for (const std::size_t at : out.set) out.values[at] = T{0};
    const std::size_t blocks = (rows.size() + kLanes - 1) / kLanes;
    if (out.values.size() < blocks * cols_ * kLanes) out.values.resize(blocks * cols_ * kLanes);
  } else {
    out.values.assign(rows.size() * cols_, T{0});
  }
  out.spread = sparse_;
  out.set.clear();
  for (std::size_t q = 0; q < rows.size(); ++q) {
    const auto row = static_cast<std::size_t>(rows[q]);
    out.sq[q] = from.sq_[row];
    if (sparse_) {
      const std::size_t first = (q / kLanes) * cols_ * kLanes + q % kLanes;
      from.read_row(row, [&](std::size_t k, T value) {
        out.values[first + k * kLanes] = value;
        out.set.push_back(first + k * kLanes);
      });
    } else {
      T* values = out.values.data() + q * cols_;
      from.read_row(row, [&](std::size_t k, T value) { values[k] = value; });
    }
  }
}

template <class T>
void Points<T>::dots(const Queries& queries, std::size_t first, std::size_t last, T* tile,
                     std::vector<T>& scratch) const {
  const Loops& loop = loops();
  if (!sparse_) {
    for (std::size_t t = first; t < last; t += kPanel) {
      const T* panel = values_.data() + t * cols_;
      if constexpr (std::is_same_v<T, float>) {
        loop.panel_f(cols_, panel, queries.count, queries.values.data(), tile + t - first, kTile);
      } else {
        loop.panel_d(cols_, panel, queries.count, queries.values.data(), tile + t - first, kTile);
      }
    }
    return;
  }
  const std::size_t n = last - first;
  scratch.resize(kTile * kLanes);
  for (std::size_t q0 = 0; q0 < queries.count; q0 += kLanes) {
    const T* w = queries.values.data() + q0 * cols_;
    if constexpr (std::is_same_v<T, float>) {
      loop.csr_f(n, indptr_.data() + first, indices_.data(), values_.data(), w, scratch.data());
    } else {
      loop.csr_d(n, indptr_.data() + first, indices_.data(), values_.data(), w, scratch.data());
    }
    const std::size_t lanes = std::min(kLanes, queries.count - q0);
    for (std::size_t l = 0; l < lanes; ++l) {
      T* out = tile + (q0 + l) * kTile;
      for (std::size_t t = 0; t < n; ++t) out[t] = scratch[t * kLanes + l];
    }
  }
}

template <class T>
void Points<T>::exact_dots(std::size_t row, std::span<const std::int32_t> others,
                           double* out) const {
  std::vector<double> values(cols_, 0.0);
  read_row(row, [&](std::size_t k, T value) { values[k] = static_cast<double>(value); });
  for (std::size_t t = 0; t < others.size(); ++t) {
    double dot = 0.0;
    read_row(static_cast<std::size_t>(others[t]),
             [&](std::size_t k, T value) { dot += values[k] * static_cast<double>(value); });
    out[t] = dot;
  }
}

template class Points<float>;
template class Points<double>;
template Points<float>::Points(DenseView<float>, const double*, double);
template Points<float>::Points(DenseView<double>, const double*, double);
template Points<double>::Points(DenseView<float>, const double*, double);
template Points<double>::Points(DenseView<double>, const double*, double);

}  // namespace onefit
