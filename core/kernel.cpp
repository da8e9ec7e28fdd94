#include "kernel.hpp"

#include <cmath>
#include <type_traits>

#include "loops.hpp"

namespace onefit {
namespace {

double power(double base, int exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

}  // namespace

template <class T>
void kernel_values(const Kernel& kernel, std::size_t n, const T* dot, const T* sq, T sq_row,
                   T* out) {
  const Loops& loop = loops();
  switch (kernel.kind) {
    case KernelKind::Rbf:
      if constexpr (std::is_same_v<T, float>) {
        loop.rbf_f(n, dot, sq, sq_row, static_cast<float>(kernel.gamma), out);
      } else {
        loop.rbf_d(n, dot, sq, sq_row, kernel.gamma, out);
      }
      return;
    case KernelKind::Distance:
      if constexpr (std::is_same_v<T, float>) {
        loop.distance_f(n, dot, sq, sq_row, out);
      } else {
        loop.distance_d(n, dot, sq, sq_row, out);
      }
      return;
    case KernelKind::Linear:
      for (std::size_t t = 0; t < n; ++t) out[t] = dot[t];
      return;
    case KernelKind::Poly:
      for (std::size_t t = 0; t < n; ++t) {
        const double base = kernel.gamma * static_cast<double>(dot[t]) + kernel.coef0;
        out[t] = static_cast<T>(power(base, kernel.degree));
      }
      return;
    case KernelKind::Sigmoid:
      for (std::size_t t = 0; t < n; ++t) {
        out[t] =
            static_cast<T>(std::tanh(kernel.gamma * static_cast<double>(dot[t]) + kernel.coef0));
      }
      return;
  }
}

double kernel_diagonal(const Kernel& kernel, double sq) {
  switch (kernel.kind) {
    case KernelKind::Rbf:
      return 1.0;
    case KernelKind::Distance:
      return 0.0;
    case KernelKind::Linear:
      return sq;
    case KernelKind::Poly:
      return power(kernel.gamma * sq + kernel.coef0, kernel.degree);
    case KernelKind::Sigmoid:
      return std::tanh(kernel.gamma * sq + kernel.coef0);
  }
  return 0.0;
}

template void kernel_values<float>(const Kernel&, std::size_t, const float*, const float*, float,
                                   float*);
template void kernel_values<double>(const Kernel&, std::size_t, const double*, const double*,
                                    double, double*);

}  // namespace onefit
