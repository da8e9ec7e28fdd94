// Rows of data, laid out so that dot products of a few rows with all of them are fast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "buffer.hpp"

namespace onefit {

template <class S>
struct DenseView {
  const S* data;
  std::size_t rows;
  std::size_t cols;
  const std::int64_t* order = nullptr;  // which rows of the data these are; nullptr: the first ones

  const S* row(std::size_t i) const {
    return data + (order == nullptr ? i : static_cast<std::size_t>(order[i])) * cols;
  }
};

struct CsrView {
  const double* data;
  const std::int32_t* indices;
  const std::int64_t* indptr;
  std::size_t rows;
  std::size_t cols;
};

// Whether there is neither an infinity nor a NaN among them.
bool is_finite(std::span<const double> values);

// How many rows a block of queries may have, and how many columns are worked on at a time: the
// products of a block with a tile stay in the second-level cache until the kernel is applied.
inline constexpr std::size_t kQueries = 64;
inline constexpr std::size_t kTile = 1024;

template <class T>
class Points {
 public:
  // `centre` (cols values, or nullptr) is subtracted from every row; then all is times `scale`.
  template <class S>
  Points(DenseView<S> view, const double* centre, double scale);
  Points(CsrView view, double scale);
  // Some rows of another set.
  Points(const Points& from, std::span<const std::int32_t> rows);

  std::size_t rows() const { return rows_; }
  std::size_t cols() const { return cols_; }
  const T* squared_norms() const { return sq_.data(); }
  double exact_squared_norm(std::size_t row) const { return exact_sq_[row]; }

  // Some rows of a set of points in the layout that `dots` of another (or the same) set reads.
  struct Queries {
    std::size_t count = 0;
    std::vector<T> values;
    std::vector<T> sq;
    bool spread = false;           // for a sparse set: a value for each feature and lane,
    std::vector<std::size_t> set;  // of which these are not zero
  };

  // Reads rows of `from` as queries for this set.
  void gather(const Points& from, std::span<const std::int32_t> rows, Queries& out) const;

  // How many queries at a time are worth waiting for.
  std::size_t preferred_queries() const;

  // tile[q * kTile + t - first] = <query q, row t> for first <= t < last <= first + kTile.
  // `first` is a multiple of kPanel. `scratch` is this thread's.
  void dots(const Queries& queries, std::size_t first, std::size_t last, T* tile,
            std::vector<T>& scratch) const;

  // out[t] = <row, row others[t]>, summed in double precision whatever T is.
  void exact_dots(std::size_t row, std::span<const std::int32_t> others, double* out) const;

 private:
  // Dense: value k of row i at values_[((i / kPanel) * cols_ + k) * kPanel + i % kPanel].
  std::size_t dense_at(std::size_t row, std::size_t col) const;
  void start_dense();
  template <class Write>
  void read_row(std::size_t row, const Write& write) const;

  bool sparse_ = false;
  std::size_t rows_;
  std::size_t cols_;
  Buffer<T> values_;
  std::vector<std::int64_t> indptr_;
  std::vector<std::int32_t> indices_;
  std::vector<T> sq_;
  std::vector<double> exact_sq_;
};

}  // namespace onefit
