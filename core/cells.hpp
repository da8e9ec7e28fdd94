// Cells of a search: for each fold and kernel a chain of every pair of classes, and what each of
// their steps says of the rows that the fold holds out.
//
// A solution is needed for the next step of its chain and for the values of the held-out rows. Both
// happen here, on the thread that solved the last pair of a fold; a search is given the values, and
// as many solutions as it wants to warn of. Values are sums over the support vectors
// (kernel_sums.hpp): each kernel row is read once for all steps and pairs.
//
// Where more than a few of the values of a step are smaller than the tolerance, another start would
// give other answers: its problems are solved on to a tenth of what decides the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "chains.hpp"

namespace onefit {

// A fold and a kernel.
struct Line {
  KernelStore* store;
  // Of classes, in LIBSVM's order: of C-SVC, with all rows of the first class and then all of the
  // second as variables. All rows of the store take part, class k from starts[k] on.
  std::vector<const Problem*> pairs;
  std::vector<std::size_t> starts;
  std::span<const double> bounds;
  std::vector<double> factors;
  std::span<const std::int32_t> queries;  // rows of the store that are held out
  std::span<const std::int32_t> codes;    // the class of each; -1 if it is none of these
};

// What the steps of a line say of its queries.
struct Said {
  std::size_t line = 0;
  // Of every step, pair and query in turn. Positive speaks for the first class of a pair, but where
  // there are two classes for the second.
  std::vector<double> values;
  // By step: how many queries get their class, the class with most votes (a value of exactly 0
  // votes for the second class of its pair, ties go to the lowest class); and the iterations.
  std::vector<std::int64_t> right;
  std::vector<std::int64_t> n_iter;
  std::vector<bool> finite;  // whether all of its values are
  // The solutions of each step that did not converge; empty if all did.
  std::vector<std::vector<Solution>> unfinished;
};

// When values of a step are too small.
struct Decided {
  double share;     // so many may be smaller than the tolerance
  double tightest;  // those below cannot be decided
};

using FinishedLine = std::function<bool(Said&& said)>;

// Solves all steps of all pairs of all lines, as `solve_chains` does.
void solve_cells(const std::vector<Line>& lines, bool cold, const Settings& settings,
                 const Decided& decided, std::size_t threads, const FinishedLine& finished,
                 Interrupt& interrupt);

}  // namespace onefit
