// The sign that a decision value has at the optimum, known before a solve gets there.
//
// A C-SVC minimises F(w, b) = 1/2 |w|^2 + sum C_i xi_i, which is strongly convex in w: at any
// feasible b = y * a with duality gap D the optimum is near, |w - w*|^2 <= 2 D, and with
// r = sqrt(2 D) every <w, phi_i - phi_q> is within r |phi_i - phi_q| of what it will be. What the
// optimum says of a point q, f = <w, phi_q> + b, minimises for that w
//
//   sum C_i max(0, 1 - y_i (<w, phi_i - phi_q> + f)),
//
// a convex function of f alone whose slope at 0 is a sum of C_i over the rows beyond their margin.
// If that slope is negative however the products move within their distance, then f > 0; likewise f
// < 0. The optimum is not needed, nor another problem to be solved (Franc, Laskov & Mueller, ICML
// 2008, solve one for the same end): a pass over the gradient and one kernel row suffice.
#pragma once

#include <cstddef>
#include <vector>

#include "problem.hpp"
#include "store.hpp"

namespace onefit {

// |phi_v - phi_query| of all variables v of a problem, from the kernel row of one of them.
std::vector<float> feature_distances(KernelStore& store, const Problem& problem, std::size_t query,
                                     std::size_t threads);

// +1 or -1 where the value of `query` has that sign at the optimum of a C-SVC, and 0 where that is
// not proven. `gradient` is p - K beta; any offset will do, the better the nearer to its optimum.
template <class G>
int proven_sign(const Problem& problem, std::size_t query, const std::vector<double>& beta,
                const G* gradient, double offset, const std::vector<float>& distance);

}  // namespace onefit
