// The solver's last stage, on kernel entries in double precision.
//
// Kernels of low rank (few features, small degree, an RBF kernel with a tiny gamma) have directions
// in which the objective does not curve at all. Entries rounded to float32 make up a curvature
// there, of either sign, and a solver that follows it wanders on with a gap above a tight
// tolerance. On entries in double precision the same steps converge. They are evaluated for this
// stage alone and all kept, which is for small problems only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "interrupt.hpp"
#include "problem.hpp"
#include "solution.hpp"
#include "store.hpp"

namespace onefit {

// Whether the rows of so many variables may be kept in double precision.
bool can_solve_precisely(std::size_t n);

// Whether rounding of entries in T may do as much to a gradient as this gap.
template <class T>
bool rounding_may_cause(double gap, const std::vector<double>& beta, double largest_diagonal);
// Whether that of float32 is likely to do so much more than a tolerance that a gap says nothing;
// `squares` are summed up over beta.
bool rounding_hides(double tol, double squares, double largest_diagonal);

// Whether that of double precision may do as much as the tolerance: targets are then lost in it,
// and a gap below the tolerance proves nothing.
bool rounding_hides_all(double tol, double squares, double largest_diagonal);

// Goes on from `beta`, reached after `n_iter` iterations, which count towards the limit.
Solution solve_precisely(const KernelStore& store, const Problem& problem, const Settings& settings,
                         std::vector<double> beta, std::int64_t n_iter, Interrupt& interrupt);

}  // namespace onefit
