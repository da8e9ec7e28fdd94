// All problems of all folds in one call, and their solutions in one piece.
//
// With many classes there are hundreds of them, of which nobody looks at more than their votes and
// their iterations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "fold_paths.hpp"
#include "interrupt.hpp"
#include "problem.hpp"
#include "solution.hpp"
#include "store.hpp"

namespace onefit {

// A solution whose numbers are kept elsewhere.
struct KeptSolution {
  Solution ends;  // without them
  std::span<const double> beta;
  std::span<const double> gradient;
  std::int64_t spent = 0;  // iterations in all
};

class FoldSolutions {
 public:
  FoldSolutions() = default;
  // `is_part`: of many that will be joined.
  FoldSolutions(std::size_t n_folds, const std::vector<const Problem*>& problems, bool is_part);
  FoldSolutions(const FoldSolutions&) = delete;
  FoldSolutions& operator=(const FoldSolutions&) = delete;
  FoldSolutions(FoldSolutions&&) = default;
  FoldSolutions& operator=(FoldSolutions&&) = default;

  std::size_t n_folds() const { return n_problems_ == 0 ? 0 : kept_.size() / n_problems_; }
  std::size_t n_problems() const { return n_problems_; }  // of a fold
  std::size_t size() const { return kept_.size(); }

  // Fold by fold.
  const KeptSolution& operator[](std::size_t k) const { return kept_[k]; }
  Solution whole(std::size_t k) const;

  // Takes the numbers of a solution, and adds what it took. Several threads may, of different ones.
  void keep(std::size_t k, Solution& solution);

 private:
  friend FoldSolutions joined(std::vector<FoldSolutions> parts);

  std::size_t n_problems_ = 0;
  std::vector<KeptSolution> kept_;
  std::vector<double*> places_;     // for the numbers of each
  std::vector<std::size_t> sizes_;  // of the problems
  std::vector<Buffer<double>> memory_;
};

// Solves each problem with the bounds of each fold, one for each row of the store, fold by fold,
// from a solution of it (nullptr: from nothing) whose gradient belongs to the store, along its
// paths if there are any (nullptr: none). Without a free row any offset between two values is
// right: that of a cold solve is wanted, and such folds are solved again from nothing.
FoldSolutions solve_together(KernelStore& store, const std::vector<const Problem*>& problems,
                             std::span<const double> bounds,
                             const std::vector<const Solution*>& solved,
                             const std::vector<FoldPaths*>& paths, const Settings& settings,
                             std::size_t threads, Interrupt& interrupt);

// Folds whose problems were solved in several parts.
FoldSolutions joined(std::vector<FoldSolutions> parts);

}  // namespace onefit
