// What pairs of classes say of the rows that a fold holds out: decision values, and the votes of
// all pairs.
//
// A row that all pairs of a class give to that class needs no other pair: no class that lost to it
// can have as many votes. Of the pairs of its own class it is a variable, fixed at 0, and its
// gradients are their values: most rows need no kernel value at all. But gradients were rounded
// with the row's own label in them, so that they do not decide where rounding could. The other rows
// need kernel values with the support vectors of their fold once, and never again: these are
// evaluated tile by tile and kept nowhere, unless the store has them already and reading is faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "problem.hpp"
#include "solution.hpp"
#include "store.hpp"

namespace onefit {

// Sums of kernel values over support vectors, for each of `queries` and each pair of classes, query
// by query. `rows` are sorted by class, class k from starts[k] on; coef has LIBSVM's layout: that
// of row r for the pair (i, j) is coef[j - 1][r] if r is of class i, and coef[i][r] if it is of j.
// All are rows of the store.
void pair_products(KernelStore& store, std::span<const std::int32_t> rows,
                   std::span<const std::size_t> starts, const double* coef,
                   std::span<const std::int32_t> queries, double* out);

// What is needed of the solution of a pair.
struct PairModel {
  PairModel(const Solution* solution)  // NOLINT: a solution is one
      : beta(solution->beta.data()),
        gradient(solution->gradient.data()),
        offset(solution->offset[0]) {}
  PairModel(const double* coefficients, const double* gradients, double b)
      : beta(coefficients), gradient(gradients), offset(b) {}
  const double* beta;
  const double* gradient;
  double offset;
};

// A fold: the models of all pairs, in LIBSVM's order, and the rows that it holds out.
struct FittedFold {
  std::vector<PairModel> pairs;
  std::span<const std::int32_t> queries;
};

// For every held-out row of C-SVC the class with most votes (a value of exactly 0 votes for the
// second class of its pair, ties go to the lowest class), fold by fold; and for every fold which
// share of the values that decide it are smaller than `tol`. The variables of pair (i, j) are the
// rows of class i, then those of j; all rows of the store take part, class k from starts[k] on.
void held_out_labels(KernelStore& store, std::span<const std::size_t> starts,
                     const std::vector<FittedFold>& folds, double tol, std::size_t threads,
                     std::int32_t* labels, double* small);

}  // namespace onefit
