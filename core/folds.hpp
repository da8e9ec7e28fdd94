// Folds: problems over the same variables with other bounds, started from one another.
//
// A variable of these problems may rise from 0 to the bound c of its row, or fall to -c, or both.
// In a fold c is 0 for the rows that it holds out; nothing else changes, so that a solution of one
// fold is a start for another as soon as it is brought within the bounds and to the sums. Its
// gradient needs the kernel rows of the coefficients that differ, and no more.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "interrupt.hpp"
#include "problem.hpp"
#include "solution.hpp"
#include "store.hpp"

namespace onefit {

// The problem with another bound c for each row of the store, to be started cold. Sums that are not
// 0 (those of nu) are a share of all bounds, and remain so.
Problem with_bounds(const Problem& all, std::span<const double> c);
void with_bounds(const Problem& all, std::span<const double> c, Problem& fold);

// LIBSVM's start of a problem with a nu, to the last bit: it decides which offset is found where no
// variable ends up free.
void set_nu_start(Problem& problem);

// Leaves out the variables that take no part.
void leave_out_others(Problem& fold);

// Brings beta within the bounds and to the sums of the problem's start. What a sum lacks is spread
// evenly: over the variables of `first` as far as they have room, then over those that are not 0,
// then over all.
void make_feasible(const Problem& problem, const std::vector<bool>& first,
                   std::vector<double>& beta);

// The coefficients of a solution over the same variables as far as the bounds allow; what leaves is
// spread over the free variables (AVG; DeCoste & Wagstaff, KDD 2000). `share`: what each of these
// is given that has room for it; 0 if there are two groups.
std::vector<double> average_start(const Problem& problem, const Solution& solved,
                                  double* share = nullptr);

// Whether a solution over the same variables is one of this problem, too: within its bounds, with
// its conditions met, and with free variables that decide the offset. So are folds that hold out no
// row with a coefficient.
bool has_same_solution(const Problem& fold, const Solution& solved, double tol);

// A problem of a fold: what it is on all rows, the bounds of the fold, a solution to start from or
// nothing, and a variable of which the sign is all that is asked, or none.
struct FoldProblem {
  const Problem* all;
  std::span<const double> bounds;
  const Solution* solved;
  std::optional<std::size_t> sign_of = std::nullopt;
};

// Takes a solution as soon as it is there, with its number. Called on the thread that solved it.
using Solved = std::function<void(std::size_t, Solution&)>;

// Solves problems of folds, on `threads` threads. `same_kernel`: the gradients of the solutions
// that they start from belong to this store. `alone`: a fold that starts cold, or from a solution
// of its own, is solved without the variables of rows that it holds out, so that no bit of its
// answer depends on their labels; their gradients are NaN then. Solutions that are taken are not
// returned.
std::vector<Solution> solve_folds(KernelStore& store, const std::vector<FoldProblem>& problems,
                                  bool same_kernel, const Settings& settings, std::size_t threads,
                                  Interrupt& interrupt, const Solved& taken = {},
                                  bool alone = false);

}  // namespace onefit
