// Kernel functions of a dot product.
#pragma once

#include <cstddef>

namespace onefit {

// Distance is not a kernel but what RBF kernels of every gamma share: the squared distance.
enum class KernelKind { Linear, Poly, Rbf, Sigmoid, Distance };

struct Kernel {
  KernelKind kind = KernelKind::Rbf;
  double gamma = 1.0;
  double coef0 = 0.0;
  int degree = 3;

  // Depends on differences of rows only, so that the data may be moved to their mean.
  bool translation_invariant() const {
    return kind == KernelKind::Rbf || kind == KernelKind::Distance;
  }
};

// out[t] = k(row, column t), from their dot products and squared norms.
template <class T>
void kernel_values(const Kernel& kernel, std::size_t n, const T* dot, const T* sq, T sq_row,
                   T* out);

// k(x, x) for a row with squared norm sq.
double kernel_diagonal(const Kernel& kernel, double sq);

}  // namespace onefit
