// Starts of folds: where the optimum of all rows moves to when the rows of a fold leave.
//
// One matrix, pivoted on the free variables of the fit on all rows, serves the paths of all folds
// (path.hpp). The coefficients of a fold that are at their bounds go to zero together, and take one
// column of it: with B the inverse of the bordered matrix of the free variables F, and s and k the
// sums of what leaves, of its coefficients and of its kernel rows,
//
//   offset and b_F change by  B [s; k_F],   u of the others by  k - [1 K_F]' B [s; k_F].
//
// Variables that are far from being free are not looked at: what a path leads to is a start, which
// its solver makes an answer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "free_set.hpp"
#include "gathered.hpp"
#include "interrupt.hpp"
#include "path.hpp"
#include "problem.hpp"
#include "solution.hpp"
#include "store.hpp"
#include "workspace.hpp"

namespace onefit {

// Memory of the paths of several problems, of which one works at a time.
struct PathMemory {
  Workspace kept;
  Workspace scratch;
  std::uint64_t n_cleared = 0;

  // Takes the memory from paths that are there, for others.
  void clear() {
    ++n_cleared;
    kept.clear();
    scratch.clear();
  }
};

// What the matrix may take.
struct PathLimits {
  std::size_t bytes;
  double products;  // of two numbers
};

class FoldPaths final : private PathColumns {
 public:
  // From a solution of a problem with one group; there are paths if it has free variables and the
  // matrix is within the limits. The memory lives as long as they do.
  FoldPaths(KernelStore& store, const Problem& problem, const Solution& solution,
            const PathLimits& limits, PathMemory& memory, Interrupt& interrupt);

  // Not when the memory was cleared since.
  bool available() const { return available_ && n_cleared_ == memory_.n_cleared; }
  std::size_t n_rows() const { return store_.size(); }
  bool is_of(const KernelStore& store, const Problem& problem) const {
    return &store == &store_ && &problem == &problem_;
  }

  // The ends of the paths on which the rows whose bound is 0 leave, fold by fold: solved where the
  // gap is below `tol`, and else something to start from. Nothing where a path does not end.
  std::vector<std::optional<Solution>> ends(std::span<const std::span<const double>> bounds,
                                            double tol, std::size_t threads, Interrupt& interrupt);

 private:
  struct Fold;
  const double* at(std::size_t place) override;
  void make_columns(std::size_t first, std::size_t count);
  void leave(Fold& fold, std::size_t v) const;
  void columns_of_folds(std::span<Fold> folds);
  void follow(Path& path, Fold& fold);
  void find_gradients(std::span<const Fold* const> ended, double* gradients, Interrupt& interrupt);

  KernelStore& store_;
  const Problem& problem_;
  const Solution& solution_;
  PathMemory& memory_;
  std::uint64_t n_cleared_ = memory_.n_cleared;
  bool available_ = false;
  std::vector<std::int32_t> order_;  // variables by place: the free ones, then those that are near
  std::vector<std::int32_t> rows_;   // of the store, by place
  std::vector<std::int32_t> place_of_;  // by variable, -1 where it is far
  std::size_t n_free_ = 0;
  double ridge_ = 0.0;

  // The offset's part of B, for the free variables and itself; B is in the columns of these.
  std::vector<double> border_;
  double corner_ = 0.0;
  double* across_ = nullptr;           // K of the others with the free ones, free one by free one
  std::vector<double> offset_across_;  // the part of B [1'; K] that is the offset's
  double* of_free_ = nullptr;          // columns of the free variables
  std::optional<Gathered> others_;     // kernel entries with the others
  std::size_t room_ = 0;               // for so many more columns
  std::vector<std::atomic<const double*>> columns_;
  std::mutex mutex_;
};

}  // namespace onefit
