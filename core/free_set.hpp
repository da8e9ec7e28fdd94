// The kernel matrix of the free rows, with the border of the offset, inverted.
//
//   M = [ 0  1' ]
//       [ 1  K  ]
//
// Factorised is K + c 11', which has an inverse where M has one; what the border changes is its
// Schur complement. Duplicate rows, and kernels of low rank, make K singular: a row of which the
// others leave less than what rounding may have left is taken to be a little independent, so that
// each can take the place of what it depends on, almost for nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "workspace.hpp"

namespace onefit {

// What a kernel entry and its products are known to, as a share of a diagonal entry.
inline constexpr double kRounding = 1e-6;

template <class T>
struct FreeSet {
  std::size_t size;
  T* inverse;  // the part of the rows
  std::vector<double> border;
  double corner = 0.0;

  // What S of two rows may be off by, as a share of a diagonal entry.
  static constexpr double kNoise = sizeof(T) == sizeof(double) ? kRounding : 100 * kRounding;
};

// A row depends on others if they explain all but this share of the largest diagonal entry. Less
// may be rounding of the entries, which are in single precision.
inline constexpr double kIndependent = 1e-5;

// The inverse for a kernel matrix: in single precision in its place, and in double precision in
// memory of the workspace. In single precision there is none, and the matrix is lost, if the others
// leave less of some row than single precision takes; where two rows are so near that this is
// certain nothing is factorised.
std::optional<FreeSet<float>> single_free_set(float* kernel, std::size_t n);
FreeSet<double> double_free_set(const float* kernel, std::size_t n, Workspace& workspace,
                                double independent = kIndependent);

}  // namespace onefit
