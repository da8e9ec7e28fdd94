// Routines of BLAS and LAPACK for both precisions, given to the core when it is loaded: SciPy
// carries them, so that nothing has to be linked. Matrices are stored by columns.
#pragma once

#include <cstddef>
#include <stdexcept>

namespace onefit {

template <class T>
struct Blas {
  void (*gemm)(char* transa, char* transb, int* m, int* n, int* k, T* alpha, T* a, int* lda, T* b,
               int* ldb, T* beta, T* c, int* ldc) = nullptr;
  void (*syrk)(char* uplo, char* trans, int* n, int* k, T* alpha, T* a, int* lda, T* beta, T* c,
               int* ldc) = nullptr;
  void (*trsm)(char* side, char* uplo, char* transa, char* diag, int* m, int* n, T* alpha, T* a,
               int* lda, T* b, int* ldb) = nullptr;
  void (*trmm)(char* side, char* uplo, char* transa, char* diag, int* m, int* n, T* alpha, T* a,
               int* lda, T* b, int* ldb) = nullptr;
  void (*potrf)(char* uplo, int* n, T* a, int* lda, int* info) = nullptr;
  void (*trtri)(char* uplo, char* diag, int* n, T* a, int* lda, int* info) = nullptr;
  void (*lauum)(char* uplo, int* n, T* a, int* lda, int* info) = nullptr;

  // c = a b + kept c, with so many entries from a column of each to the next.
  void multiply(std::size_t m, std::size_t n, std::size_t k, const T* a, std::size_t lda,
                const T* b, std::size_t ldb, T* c, std::size_t ldc, T kept = 0) const {
    if (m == 0 || n == 0) return;
    char plain = 'N';
    int rows = static_cast<int>(m), columns = static_cast<int>(n), inner = static_cast<int>(k);
    int of_a = static_cast<int>(lda), of_b = static_cast<int>(ldb), of_c = static_cast<int>(ldc);
    T one = 1;
    gemm(&plain, &plain, &rows, &columns, &inner, &one, const_cast<T*>(a), &of_a, const_cast<T*>(b),
         &of_b, &kept, c, &of_c);
  }
  // c = a b, without gaps between columns.
  void multiply(std::size_t m, std::size_t n, std::size_t k, const T* a, const T* b, T* c) const {
    multiply(m, n, k, a, m, b, k, c, m);
  }
};

// Written once, before it is used.
template <class T>
Blas<T>& blas() {
  static Blas<T> routines;
  return routines;
}

// The routines, or an error where there are none.
template <class T>
const Blas<T>& given_blas() {
  if (blas<T>().gemm == nullptr) throw std::logic_error("use_blas has not been called");
  return blas<T>();
}

}  // namespace onefit
