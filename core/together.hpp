// All problems of all folds in one call, and their solutions in one piece.
//
// With many classes there are hundreds of them, of which nobody looks at more than their votes and
// their iterations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "interrupt.hpp"
#include "problem.hpp"
#include "solution.hpp"
#include "store.hpp"

namespace onefit {

struct FoldSolutions {
  std::size_t n_problems = 0;       // of a fold
  std::vector<Solution> solutions;  // fold by fold
  std::vector<std::int64_t> spent;  // iterations for each
  std::size_t n_folds() const { return n_problems == 0 ? 0 : solutions.size() / n_problems; }
};

// Solves each problem with the bounds of each fold, one for each row of the store, fold by fold,
// from a solution of it (nullptr: from nothing) whose gradient belongs to the store. Without a free
// row any offset between two values is right: that of a cold solve is wanted, and such folds are
// solved again from nothing.
FoldSolutions solve_together(KernelStore& store, const std::vector<const Problem*>& problems,
                             std::span<const double> bounds,
                             const std::vector<const Solution*>& solved, const Settings& settings,
                             std::size_t threads, Interrupt& interrupt);

// Folds whose problems were solved in several parts.
FoldSolutions joined(std::vector<FoldSolutions> parts);

}  // namespace onefit
