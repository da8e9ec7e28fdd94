// Where iterations lead.
//
// Over a window of iterations the coefficients change by D, and the gradient by G = -K D, which is
// known without looking at the kernel. Of all points b + t_1 D_1 + ... + t_m D_m of the last m
// windows the best one solves a system of m equations,
//
//   sum_l (D_k' K D_l) t_l = D_k' (p - K b).
//
// That is what parallel tangents do for steepest descent (Shah, Buehler & Kempthorne, "Some
// algorithms for minimizing a function of several variables", J. SIAM 12, 1964), for windows of
// steps of two variables. A variable that would soon meet its bound is left out.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "active.hpp"
#include "interrupt.hpp"
#include "loops.hpp"
#include "problem.hpp"

namespace onefit {

// The active variables of a solve, by position; coefficients are of all variables.
struct ActiveState {
  const Problem& problem;
  ActiveSet& active;
  const std::int32_t* variable;
  float* up;
  float* low;
  std::vector<double>& beta;
};

class Trend {
 public:
  // Positions stand for other variables from now on, or these have moved in another way.
  void forget();

  // For the gradients of n positions, which `follow` starts from and changes.
  double* gradients(std::size_t n);

  // One more window has ended. Goes to where the last ones lead, as far as the bounds allow;
  // returns what the objective gains, 0 where nothing moves. `resolution`: what
  // gradients are rounded to, relative to the largest; `tol`: of the solve.
  double follow(const ActiveState& state, double resolution, double tol, std::size_t threads,
                Interrupt& interrupt);

 private:
  // Windows that are known at most; of many variables more is worth its time.
  static constexpr std::size_t kWindows = 8;
  static constexpr std::size_t kWindowsOfFew = 4;
  static constexpr std::size_t kMany = 2000;

  struct Window {
    std::vector<double> change;           // D
    std::vector<double> gradient_change;  // G
    double rounding;                      // in D' K D, or rather more
  };

  void begin(const ActiveState& state);
  void end_window(const TrendArrays& arrays, double resolution, double tol);
  bool find_direction();
  bool leave_out_blocked(const ActiveState& state, const TrendArrays& arrays, std::size_t threads,
                         Interrupt& interrupt, double* nearest);
  std::size_t widest(const ActiveState& state, std::size_t group) const;
  bool are_many() const { return n_ >= kMany; }
  std::size_t most_windows() const { return are_many() ? kWindows : kWindowsOfFew; }
  std::size_t number(std::size_t age) const {
    return (newest_ + most_windows() - age) % most_windows();
  }

  std::size_t n_ = 0;
  bool begun_ = false;
  std::size_t count_ = 0;  // windows that are known
  std::size_t newest_ = 0;
  double farthest_ = 0.0;  // that windows may be followed
  std::array<Window, kWindows> windows_;
  std::array<std::array<double, kWindows>, kWindows> products_{};  // D_k' K D_l

  // By position, padded with zeros.
  std::vector<double> lower_, upper_;
  std::vector<double> b_, b_before_;
  std::vector<double> g_, g_before_;
  std::vector<double> slopes_;
  std::vector<double> direction_, rate_, end_, room_;

  // Those that are left out, and by how much.
  std::vector<std::size_t> positions_;
  std::vector<double> amounts_;
};

}  // namespace onefit
