// Sequential minimal optimisation with second-order selection (Fan, Chen & Lin, JMLR 2005).
//
// With g = p - K b, raising b_i and lowering b_j by the same s > 0 changes the objective by
// -s (u_i - l_j) + s^2/2 (K_ii + K_jj - 2 K_ij), where u_i = g_i (less `kink` when b_i >= 0, plus
// it when b_i < 0) and l_j likewise. At the optimum no u_i of a variable that may rise exceeds an
// l_j of one that may fall; max u - min l is the KKT gap, and the stopping rule is LIBSVM's: gap <
// tol.
//
// What makes it fast: whether a variable may rise or fall, and its kink, live in two arrays `up`
// and `low` that are added to g (a huge number where it may not), so that one branch-free pass over
// contiguous arrays updates the gradient and finds the next candidate.
//
// What makes its tail short: steps are longer than to the optimum of their two variables, and now
// and then one step goes to where the last windows of them lead (trend.hpp), or to the optimum of
// all free variables (newton.hpp).
//
// Kernel entries are float32. A small problem on which their rounding keeps the gap above the
// tolerance is finished on entries in double precision (precise.hpp).
#pragma once

#include <cstddef>
#include <memory>

#include "interrupt.hpp"
#include "problem.hpp"
#include "solution.hpp"
#include "store.hpp"

namespace onefit {

struct SmoMemory;

// A solve that goes on in steps of many iterations. An iteration on few variables is a chain of
// operations that wait for one another: two solves whose iterations alternate take less time
// together than one after the other, with the same results.
class StepwiseSolve {
 public:
  // As `solve`, whose arguments have to live as long as this.
  StepwiseSolve(KernelStore& store, const Problem& problem, const Settings& settings,
                std::size_t scratch_bytes, Interrupt& interrupt, SmoMemory& memory);
  StepwiseSolve(StepwiseSolve&&) noexcept;
  StepwiseSolve& operator=(StepwiseSolve&&) noexcept;
  ~StepwiseSolve();

  bool has_ended() const;
  Solution take();

  // Only while they have not ended.
  void step();
  static void step(StepwiseSolve& a, StepwiseSolve& b);

 private:
  class Steps;
  std::unique_ptr<Steps> steps_;
};

// `scratch_bytes`: memory for compact copies of kernel rows. `memory` is what the problem before
// was solved in, for those of one thread that are solved one after another.
Solution solve(KernelStore& store, const Problem& problem, const Settings& settings,
               std::size_t scratch_bytes, Interrupt& interrupt, SmoMemory& memory);
Solution solve(KernelStore& store, const Problem& problem, const Settings& settings,
               std::size_t scratch_bytes, Interrupt& interrupt);

}  // namespace onefit
