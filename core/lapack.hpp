// The two routines of BLAS and LAPACK that the core calls, given to it when it is loaded: SciPy
// carries them, so that nothing has to be linked.
#pragma once

namespace onefit {

struct Lapack {
  // Cholesky factor of a symmetric matrix, in place.
  void (*potrf)(char* uplo, int* n, double* a, int* lda, int* info) = nullptr;
  // Solves with a triangular matrix, in place.
  void (*trsv)(char* uplo, char* trans, char* diag, int* n, double* a, int* lda, double* x,
               int* incx) = nullptr;

  bool available() const { return potrf != nullptr && trsv != nullptr; }
};

// Written once, before any solve.
inline Lapack& lapack() {
  static Lapack routines;
  return routines;
}

}  // namespace onefit
