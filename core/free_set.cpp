#include "free_set.hpp"

#include <algorithm>
#include <cmath>

#include "blas.hpp"

namespace onefit {

namespace {

// If others leave at least this share of every row (of its diagonal entry, and what that is lifted
// by), single precision does for all of it, in half the time: steps of up to 5 were off by at most
// 1e-4, and by 1e-3 where a tenth of that is left (30 cases of 10 data sets, C up to 10,000).
constexpr double kWellApart = 5e-3;

constexpr std::size_t kBlock = 128;  // columns that are factorised at a time
constexpr std::size_t kFew = 16;     // the same where rows depend on others
constexpr std::size_t kSmall = 64;   // triangles that LAPACK inverts
constexpr std::size_t kTile = 32;    // of a matrix that is transposed

char kLeft = 'L', kRight = 'R', kLower = 'L', kPlain = 'N', kTransposed = 'T';

struct Scale {
  double lift;     // c
  double largest;  // diagonal entry, with the lift
};

Scale scale_of(const float* kernel, std::size_t n) {
  double sum = 0.0;
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < n; ++i) {
    const double entry = kernel[i * n + i];
    sum += std::abs(entry);
    largest = std::max(largest, entry);
  }
  const double lift = sum > 0.0 ? sum / static_cast<double>(n) : 1.0;
  return {lift, largest + lift};
}

// Whether two rows are so near that one leaves less than `least` of the other.
bool has_twins(const float* kernel, std::size_t n, double least) {
  for (std::size_t i = 1; i < n; ++i) {
    const float own = kernel[i * n + i] - static_cast<float>(least);
    const float* row = kernel + i * n;
    int near = 0;
    for (std::size_t j = 0; j < i; ++j) near |= 2 * row[j] - kernel[j * n + j] > own;
    if (near != 0) return true;
  }
  return false;
}

// The factor of a small block of the diagonal, with what is left of each row made at least `least`.
template <class T>
void factor_repaired(T* a, std::size_t lda, std::size_t n, double least) {
  for (std::size_t j = 0; j < n; ++j) {
    T* column = a + j * lda;
    const T pivot = static_cast<T>(std::sqrt(std::max(static_cast<double>(column[j]), least)));
    column[j] = pivot;
    for (std::size_t i = j + 1; i < n; ++i) column[i] /= pivot;
    for (std::size_t k = j + 1; k < n; ++k) {
      const T entry = column[k];
      for (std::size_t i = k; i < n; ++i) a[k * lda + i] -= entry * column[i];
    }
  }
}

// Cholesky factor in the lower triangle, `block` columns at a time. Where less than `least` is left
// of a row it is made that much if `repair`; else false is returned at once.
template <class T>
bool factor(T* a, std::size_t lda, std::size_t n, std::size_t block, double least, bool repair) {
  const Blas<T>& routines = given_blas<T>();
  int stride = static_cast<int>(lda);
  const std::size_t most = std::min(n, block);
  std::vector<T> kept(repair ? most * most : 0);
  for (std::size_t first = 0; first < n; first += block) {
    const std::size_t size = std::min(block, n - first);
    T* corner = a + first * lda + first;
    for (std::size_t j = 0; repair && j < size; ++j) {
      std::copy_n(corner + j * lda, size, kept.data() + j * size);
    }
    int columns = static_cast<int>(size), info = 0;
    routines.potrf(&kLower, &columns, corner, &stride, &info);
    bool fine = info == 0;
    for (std::size_t j = 0; fine && j < size; ++j) {
      const double pivot = static_cast<double>(corner[j * lda + j]);
      fine = pivot * pivot > least;
    }
    if (!fine) {
      if (!repair) return false;
      for (std::size_t j = 0; j < size; ++j) {
        std::copy_n(kept.data() + j * size, size, corner + j * lda);
      }
      if (size > kFew) {
        factor(corner, lda, size, kFew, least, true);
      } else {
        factor_repaired(corner, lda, size, least);
      }
    }
    int rest = static_cast<int>(n - first - size);
    if (rest == 0) break;
    T one = 1, minus = -1;
    routines.trsm(&kRight, &kLower, &kTransposed, &kPlain, &rest, &columns, &one, corner, &stride,
                  corner + size, &stride);
    routines.syrk(&kLower, &kPlain, &rest, &columns, &minus, corner + size, &stride, &one,
                  corner + size * lda + size, &stride);
  }
  return true;
}

// The inverse of a lower triangle, in its place.
template <class T>
void invert_triangle(T* a, std::size_t lda, std::size_t n) {
  const Blas<T>& routines = given_blas<T>();
  int stride = static_cast<int>(lda);
  if (n <= kSmall) {
    int size = static_cast<int>(n), info = 0;
    routines.trtri(&kLower, &kPlain, &size, a, &stride, &info);
    return;
  }
  const std::size_t half = n / 2;
  T* below = a + half;
  T* corner = a + half * lda + half;
  invert_triangle(a, lda, half);
  invert_triangle(corner, lda, n - half);
  int rows = static_cast<int>(n - half), columns = static_cast<int>(half);
  T one = 1, minus = -1;
  routines.trmm(&kLeft, &kLower, &kPlain, &kPlain, &rows, &columns, &minus, corner, &stride, below,
                &stride);
  routines.trmm(&kRight, &kLower, &kPlain, &kPlain, &rows, &columns, &one, a, &stride, below,
                &stride);
}

// What the border makes of the inverse of K + c 11', of which there is the lower triangle.
template <class T>
void add_border(FreeSet<T>& set, double lift) {
  const std::size_t n = set.size;
  std::vector<double> sums(n, 0.0);
  for (std::size_t j = 0; j < n; ++j) {
    const T* column = set.inverse + j * n;
    double sum = static_cast<double>(column[j]);
    for (std::size_t i = j + 1; i < n; ++i) {
      const double entry = static_cast<double>(column[i]);
      sum += entry;
      sums[i] += entry;
    }
    sums[j] += sum;
  }
  double total = 0.0;
  for (const double sum : sums) total += sum;
  set.border.resize(n);
  for (std::size_t i = 0; i < n; ++i) set.border[i] = sums[i] / total;
  set.corner = lift - 1.0 / total;
  const std::vector<T> right(sums.begin(), sums.end());
  const std::vector<T> left(set.border.begin(), set.border.end());
  T* a = set.inverse;
  for (std::size_t j0 = 0; j0 < n; j0 += kTile) {
    const std::size_t j1 = std::min(n, j0 + kTile);
    for (std::size_t i0 = j0; i0 < n; i0 += kTile) {
      const std::size_t i1 = std::min(n, i0 + kTile);
      for (std::size_t j = j0; j < j1; ++j) {
        for (std::size_t i = std::max(i0, j); i < i1; ++i) {
          const T entry = a[j * n + i] - left[j] * right[i];
          a[j * n + i] = entry;
          a[i * n + j] = entry;
        }
      }
    }
  }
}

// The inverse for K + c 11', in its place.
template <class T>
std::optional<FreeSet<T>> inverted(T* lifted, std::size_t n, double lift, double least,
                                   bool repair) {
  if (!factor(lifted, n, n, kBlock, least, repair)) return std::nullopt;
  invert_triangle(lifted, n, n);
  int size = static_cast<int>(n), info = 0;
  given_blas<T>().lauum(&kLower, &size, lifted, &size, &info);
  FreeSet<T> set{n, lifted, {}, 0.0};
  add_border(set, lift);
  return set;
}

}  // namespace

std::optional<FreeSet<float>> single_free_set(float* kernel, std::size_t n) {
  const Scale scale = scale_of(kernel, n);
  const double least = kWellApart * scale.largest;
  if (has_twins(kernel, n, least)) return std::nullopt;
  const auto lift = static_cast<float>(scale.lift);
  for (std::size_t k = 0; k < n * n; ++k) kernel[k] += lift;
  return inverted(kernel, n, scale.lift, least, false);
}

FreeSet<double> double_free_set(const float* kernel, std::size_t n, Workspace& workspace,
                                double independent) {
  const Scale scale = scale_of(kernel, n);
  auto* lifted = workspace.take<double>(n * n);
  for (std::size_t k = 0; k < n * n; ++k) lifted[k] = static_cast<double>(kernel[k]) + scale.lift;
  return *inverted(lifted, n, scale.lift, independent * scale.largest, true);
}

}  // namespace onefit
