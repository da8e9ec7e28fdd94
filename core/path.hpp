// What the optimum does while one variable goes to zero.
//
// With u = p - K b - offset, the conditions of the optimum hold for every variable either its b (at
// a bound, or at the kink) or its u (free: u = 0, or the slope of the kink). Pivoted on the
// variables that are free in a solution (P, with the offset), the equations
//
//   [ 0  1' ] [ offset ]   [ sum b ]
//   [ 1  K  ] [   b    ] = [ p - u ]
//
// give b of P and u of the others (outputs) from u of P and b of the others (inputs): changes of
// outputs = T * changes of inputs. Along the way every output and every input moves in a straight
// line until one of them meets its limit, and what was held and what moved change places for that
// variable: it joins the few that are `swapped`, for which inputs follow from a system as small as
// they are few. Columns of T, one for each variable that leaves or is swapped, serve every path
// (Cauwenberghs & Poggio, "Incremental and decremental support vector machine learning", NIPS
// 2000, follow such paths with an inverse that changes from step to step).
//
// Conditions hold at the end as well as they did at the start. What rounding, and a ridge in T,
// have done to them is in the gap that is returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "problem.hpp"
#include "solution.hpp"

namespace onefit {

// A solution and the columns of T that are there. Variables have an order of their own here: those
// of the pivot, then the others with those first that are likely to move to another limit. Most
// never do: of the variables that are not near, only the end is looked at, and where one is beyond
// its limit there the path is followed again with all of them.
struct PivotedSolution {
  const Problem* problem;
  const Solution* solution;
  std::span<const std::int32_t> order;      // variables by place
  std::size_t n_pivot;                      // places whose b is an output
  std::size_t n_near;                       // places that are looked at all along
  double ridge;                             // in T on the diagonal of K
  const double* columns;                    // each with the offset, then an entry for each place
  std::span<const std::int32_t> column_of;  // of a place; -1 where there is none
};

struct PathEnd {
  enum class Kind : std::uint8_t { Reached, ColumnMissing, LeftOpen };
  Kind kind = Kind::LeftOpen;
  double u = 0.0;              // of the variable that left, at the end
  double gap = 0.0;            // of the KKT conditions there
  std::size_t missing = 0;     // the place whose column is needed
  std::int64_t n_swapped = 0;  // changes of what is held
};

// The ends of the paths of the variables at some places, of a problem with one group.
std::vector<PathEnd> follow_paths(const PivotedSolution& start,
                                  std::span<const std::int32_t> leaving, std::size_t threads);

}  // namespace onefit
