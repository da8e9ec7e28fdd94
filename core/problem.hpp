// The dual problem of every support vector machine here, as data.
//
//   minimise    1/2 b' K b - p' b + kink * |b|_1
//   subject to  lower <= b <= upper,  and sum(b) of each group unchanged from the start
//
// K is the kernel matrix over `rows` of a store (a row may occur more than once). For C-SVC b = y *
// a and p = y: the bounds are [0, C] for y = +1 and [-C, 0] for y = -1, and the sign of y
// disappears from the kernel. For epsilon-SVR p = y, kink = epsilon and the bounds are [-C, C],
// half the variables of the usual form. The nu variants have two groups: the variables before
// `split` and those from it on.
//
// A row that takes no part (held out, weight zero) has lower = upper = 0, and is never chosen. Its
// gradient p - (K b) is rounded with its own label in it: what a model says about the row is summed
// anew where that could matter (held_out.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace onefit {

struct Problem {
  std::vector<std::int32_t> rows;
  std::vector<double> linear;  // p
  std::vector<double> lower;
  std::vector<double> upper;
  double kink = 0.0;
  std::size_t split = 0;  // variables of the first group; all of them when there is one group

  // nu of nu-SVC and nu-SVR: the share of all bounds that each group sums to. 0 of the others.
  double nu = 0.0;

  // Passes are to see the variables as one run of each group, whatever other rows lie between them
  // in the store: of a fold that starts cold, so that nothing of the rows that it holds out, not
  // even where they are, reaches a single bit of its answer.
  bool in_one_run = false;

  // Where to start: feasible, or empty for 0. The gradient p - K b belongs to it, or is empty and
  // then computed.
  std::vector<double> start;
  std::vector<double> start_gradient;

  // Variables to begin with, which whoever made the start expects to be enough until the gap is
  // well below that of the start: rising, and kept elsewhere. All of them where there are none.
  std::span<const std::int32_t> likely;

  // A held-out variable of a C-SVC of whose value only the sign is asked: a solve ends as soon as
  // it is proven.
  std::optional<std::size_t> sign_of;

  std::size_t size() const { return rows.size(); }
};

}  // namespace onefit
