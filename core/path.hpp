// What the optimum does while one variable, or several, go to zero.
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
#include <optional>
#include <span>
#include <vector>

#include "problem.hpp"
#include "solution.hpp"

namespace onefit {

// Columns of T: of each the entries at every place. Variables have an order of their own here:
// those of the pivot, then others, of which those come first that are likely to move to another
// limit.
class PathColumns {
 public:
  virtual ~PathColumns() = default;
  // The column of a place, or nullptr where there is none. Several threads may ask.
  virtual const double* at(std::size_t place) = 0;
  // Kernel entries of a place that has a column with every place, in double precision; nullptr
  // where they are not kept.
  virtual const double* kernel_at(std::size_t /*place*/) { return nullptr; }
};

// Columns that somebody has made.
class GivenColumns final : public PathColumns {
 public:
  // `columns`: each with the offset, then an entry for each place. `column_of` a place, -1 for
  // none. `kernel`: for each column the kernel entries of its place, or nullptr.
  GivenColumns(const double* columns, std::span<const std::int32_t> column_of,
               const double* kernel = nullptr)
      : columns_(columns), column_of_(column_of), kernel_(kernel) {}
  const double* at(std::size_t place) override {
    const std::int32_t number = column_of_[place];
    if (number < 0) return nullptr;
    return columns_ + static_cast<std::size_t>(number) * (column_of_.size() + 1) + 1;
  }
  const double* kernel_at(std::size_t place) override {
    if (kernel_ == nullptr) return nullptr;
    return kernel_ + static_cast<std::size_t>(column_of_[place]) * column_of_.size();
  }

 private:
  const double* columns_;
  std::span<const std::int32_t> column_of_;
  const double* kernel_;
};

// A solution that paths start from. Most variables never move to another limit: of those that are
// not near, only the end is looked at.
struct PivotedSolution {
  const Problem* problem;
  const Solution* solution;
  std::span<const std::int32_t> order;  // variables by place
  std::size_t n_pivot;                  // places whose b is an output
  std::size_t n_near;                   // places that are looked at all along
  double ridge;                         // in T on the diagonal of K
};

// What goes to zero. Among these are places whose b is an input: `column` has the changes at every
// place if they all go the whole way, times `factor`.
struct Leaving {
  std::span<const std::size_t> places;
  const double* column = nullptr;
  double factor = 0.0;
};

// A path from the solution, again and again.
class Path {
 public:
  Path(const PivotedSolution& start, PathColumns& columns);

  enum class Kind : std::uint8_t { Reached, ColumnMissing, LeftOpen };

  // Follows the path, and looks at the first places only on the way.
  Kind leave(const Leaving& leaving, std::size_t n_near);

  bool leaves(std::size_t p) const { return leaves_[p] != 0; }
  double b_of(std::size_t p) const { return in_pivot(p) ? output_[p] : input_[p]; }
  // T has a ridge, the kernel has none.
  double true_u(std::size_t p) const;
  double gap() const;          // of the KKT conditions at the end
  bool far_ones_stay() const;  // whether places that were not looked at are within their limits

  // Solves the equations of the end again, without the ridge and the rounding of T: by residuals
  // from kernel entries in double precision, which the columns must have. What is left of these
  // residuals, or nothing where coefficients would leave their limits.
  std::optional<double> refine();
  // Of a place that left, from the same entries, after `refine`.
  double refined_u(std::size_t p);

  std::size_t missing() const { return missing_; }  // the place whose column is needed
  std::int64_t n_swapped() const { return n_swapped_; }

 private:
  struct Limits {
    double low;
    double high;
  };

  // A variable whose output is held and whose input moves.
  struct Swapped {
    std::size_t place;
    const double* column;
    double output;
    Limits limits;  // of its input
    double rate = 0.0;
  };

  struct Hit {
    double distance;
    std::size_t index = 0;  // a place, or a number among the swapped ones
    bool is_swapped = false;
    bool rises = false;  // whether the upper limit was met
    bool nothing = false;
  };

  bool in_pivot(std::size_t p) const { return p < start_.n_pivot; }
  Limits limits_of_free(std::size_t p, double b, double u) const;
  Limits limits_of_held(std::size_t p, double b, double u) const;

  bool begin(const Leaving& leaving, std::size_t n_near);
  bool find_rates();
  Hit next_hit(double left) const;
  void move(double distance);
  bool swap(std::size_t p, bool rises);
  void put_back(std::size_t i, bool rises);
  bool factorise();
  void drop_from_factor(std::size_t i);
  void solve(std::vector<double>& x) const;
  void find_far_outputs();
  bool any_is_free(double at_bound) const;
  double free_u(const Limits& limits) const;
  void find_kernel_changes();
  double kernel_change(std::size_t p);

  const PivotedSolution start_;
  PathColumns& source_;
  const double kink_;
  const std::size_t n_;

  // By place: bounds, where every path starts, and where this one is.
  std::vector<double> b0_, lower_, upper_;
  std::vector<double> output0_, input0_, low0_, high0_;
  std::vector<double> output_, input_, low_, high_, rate_;

  Leaving leaving_;
  std::vector<char> leaves_;              // by place
  std::vector<std::size_t> left_places_;  // whose marks are set
  std::size_t n_near_ = 0;
  std::vector<Swapped> swapped_;
  std::vector<std::size_t> touched_;         // places whose inputs may have changed
  std::vector<std::vector<double>> factor_;  // rows of L, with D on the diagonal
  std::size_t n_factorised_ = 0;             // of these
  std::size_t missing_ = 0;
  std::int64_t n_swapped_ = 0;

  // Work space.
  std::vector<double> right_;
  std::vector<const double*> columns_;
  std::vector<double> coef_;

  // Of `refine`: places whose b has changed, by how much, and K times that at those of the pivot.
  std::vector<std::size_t> changed_;
  std::vector<double> change_;
  std::vector<double> kernel_changes_;
  std::vector<double> residual_;
  double offset_change_ = 0.0;
};

struct PathEnd {
  Path::Kind kind = Path::Kind::LeftOpen;
  double u = 0.0;              // of the variable that left, at the end
  double gap = 0.0;            // of the KKT conditions there
  double residual = 0.0;       // of the free variables, where the end was refined
  std::size_t missing = 0;     // the place whose column is needed
  std::int64_t n_swapped = 0;  // changes of what is held
};

// The ends of the paths of the variables at some places, of a problem with one group. Where a
// variable that is not near is beyond its limit at the end the path is followed again with all of
// them.
std::vector<PathEnd> follow_paths(const PivotedSolution& start, PathColumns& columns,
                                  std::span<const std::int32_t> leaving, std::size_t threads);

}  // namespace onefit
