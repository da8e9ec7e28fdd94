// Routines of BLAS and LAPACK for tests, which have no SciPy to take them from.
#pragma once

#include <cmath>

#include "blas.hpp"

namespace onefit::testing {

// BLAS and LAPACK as their textbooks have them, for lower triangles and what is asked of them.
template <class T>
struct Plain {
  static void gemm(char*, char*, int* m, int* n, int* k, T*, T* a, int* lda, T* b, int* ldb,
                   T* kept, T* c, int* ldc) {
    for (int j = 0; j < *n; ++j) {
      for (int i = 0; i < *m; ++i) {
        T sum = 0;
        for (int l = 0; l < *k; ++l) sum += a[l * *lda + i] * b[j * *ldb + l];
        c[j * *ldc + i] = *kept == 0 ? sum : *kept * c[j * *ldc + i] + sum;
      }
    }
  }
  static void syrk(char*, char*, int* n, int* k, T*, T* a, int* lda, T*, T* c, int* ldc) {
    for (int j = 0; j < *n; ++j) {
      for (int i = j; i < *n; ++i) {
        for (int l = 0; l < *k; ++l) c[j * *ldc + i] -= a[l * *lda + i] * a[l * *lda + j];
      }
    }
  }
  // From the right, with the transposed triangle.
  static void trsm(char*, char*, char*, char*, int* m, int* n, T*, T* a, int* lda, T* b, int* ldb) {
    for (int j = 0; j < *n; ++j) {
      for (int i = 0; i < *m; ++i) {
        T sum = b[j * *ldb + i];
        for (int l = 0; l < j; ++l) sum -= b[l * *ldb + i] * a[l * *lda + j];
        b[j * *ldb + i] = sum / a[j * *lda + j];
      }
    }
  }
  static void trmm(char* side, char*, char*, char*, int* m, int* n, T* alpha, T* a, int* lda, T* b,
                   int* ldb) {
    for (int j = 0; j < *n; ++j) {
      for (int t = 0; t < *m; ++t) {
        const int i = *side == 'L' ? *m - 1 - t : t;
        T sum = 0;
        if (*side == 'L') {
          for (int l = 0; l <= i; ++l) sum += a[l * *lda + i] * b[j * *ldb + l];
        } else {
          for (int l = j; l < *n; ++l) sum += b[l * *ldb + i] * a[j * *lda + l];
        }
        b[j * *ldb + i] = *alpha * sum;
      }
    }
  }
  static void potrf(char*, int* n, T* a, int* lda, int* info) {
    *info = 0;
    for (int j = 0; j < *n; ++j) {
      for (int i = j; i < *n; ++i) {
        T sum = a[j * *lda + i];
        for (int l = 0; l < j; ++l) sum -= a[l * *lda + i] * a[l * *lda + j];
        if (i == j && !(sum > 0)) {
          *info = j + 1;
          return;
        }
        a[j * *lda + i] = i == j ? std::sqrt(sum) : sum / a[j * *lda + j];
      }
    }
  }
  static void trtri(char*, char*, int* n, T* a, int* lda, int*) {
    for (int j = 0; j < *n; ++j) {
      a[j * *lda + j] = 1 / a[j * *lda + j];
      for (int i = j + 1; i < *n; ++i) {
        T sum = 0;
        for (int l = j; l < i; ++l) sum += a[l * *lda + i] * a[j * *lda + l];
        a[j * *lda + i] = -sum / a[i * *lda + i];
      }
    }
  }
  static void lauum(char*, int* n, T* a, int* lda, int*) {
    for (int j = 0; j < *n; ++j) {
      for (int i = j; i < *n; ++i) {
        T sum = 0;
        for (int l = i; l < *n; ++l) sum += a[i * *lda + l] * a[j * *lda + l];
        a[j * *lda + i] = sum;
      }
    }
  }
  static Blas<T> all() { return {gemm, syrk, trsm, trmm, potrf, trtri, lauum}; }
};

// The routines are there while this lives.
struct WithBlas {
  WithBlas() {
    blas<float>() = Plain<float>::all();
    blas<double>() = Plain<double>::all();
  }
  ~WithBlas() {
    blas<float>() = {};
    blas<double>() = {};
  }
};

}  // namespace onefit::testing
