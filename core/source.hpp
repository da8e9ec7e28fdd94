// Where kernel rows come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernel.hpp"
#include "points.hpp"

namespace onefit {

class KernelStore;

// Kernel values have to be this small, so that the curvature of two of them is a float32 too.
inline constexpr float kLargestEntry = 0x1p125F;

// Throws std::overflow_error where a value is larger than that, or not a number.
void check_entries(const float* values, std::size_t n);

// Evaluates some columns of kernel rows, which nobody keeps. For one thread.
class ColumnSource {
 public:
  virtual ~ColumnSource() = default;
  // Fills out[r] with these columns of kernel row rows[r], as the rows that they are part of are
  // evaluated; at most kQueries rows.
  virtual void evaluate(std::span<const std::int32_t> rows, float* const* out) = 0;
};

// Evaluates rows of a symmetric n x n kernel matrix as float32, or entries of a row in double
// precision. May be used from several threads at once.
class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual std::size_t size() const = 0;
  virtual double diagonal(std::size_t row) const = 0;
  virtual bool is_between_0_and_1() const { return false; }  // every entry
  // How many rows at a time are evaluated best.
  virtual std::size_t preferred_rows() const = 0;
  // Fills out[r][0 .. last - first) with the columns [first, last) of kernel row rows[r].
  virtual void evaluate(std::span<const std::int32_t> rows, float* const* out, std::size_t first,
                        std::size_t last, std::size_t threads) const = 0;
  // Some columns alone; nullptr where they come with whole rows. It must not outlive this source.
  virtual std::unique_ptr<ColumnSource> only(std::span<const std::int32_t> /*columns*/) const {
    return nullptr;
  }
  // out[t] = entry `columns[t]` of a kernel row in double precision; `diagonal` at the row's own
  // column. Data rows that are kept in float32 are taken as they are: their kernel is a little off,
  // but it is one of points, and so positive semi-definite where rounded entries are not.
  virtual void evaluate_exact(std::int32_t row, std::span<const std::int32_t> columns,
                              double* out) const = 0;
};

// Kernel of data rows. Dot products are taken in float32 where that leaves entries correct to about
// float32 rounding, and in double precision elsewhere.
std::unique_ptr<RowSource> points_source(DenseView<float> view, const Kernel& kernel);
std::unique_ptr<RowSource> points_source(DenseView<double> view, const Kernel& kernel);
std::unique_ptr<RowSource> points_source(CsrView view, const Kernel& kernel);

// Some rows and columns, in some order, of a kernel matrix that is given and must outlive the
// source.
std::unique_ptr<RowSource> matrix_source(DenseView<double> view, std::vector<std::int32_t> rows);

// RBF kernel of the squared distances that another store holds.
std::unique_ptr<RowSource> distance_source(std::shared_ptr<KernelStore> distances, double gamma);

// out (queries x support, row-major) = k(query, support), all in double precision.
void kernel_block(const Points<double>& queries, const Points<double>& support,
                  const Kernel& kernel, std::size_t first, std::size_t last, double* out);

}  // namespace onefit
