// Where the first steps of all folds of a kernel start: from the same steps on all rows.
//
// With a small C most support vectors are at their bounds, and are so in every fold: a fold that
// takes the fit on all rows without the rows that it holds out has most of them from the start,
// and reads the kernel rows of those that leave. Cold, it would read those of all support vectors,
// most of them several times. Where C is large the next smaller C of the same fold is nearer.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cells.hpp"

namespace onefit {

// The first steps of a pair of classes and a kernel on all rows that take part in some fold.
struct WholeStart {
  Chain chain;
  std::vector<double> bounds;
  std::vector<std::size_t> lines;  // that start from it
  std::size_t pair;
  std::vector<Solution> solved;
  std::atomic<bool> is_done = false;
};

// Those that pay.
std::vector<std::unique_ptr<WholeStart>> whole_starts(const std::vector<Line>& lines,
                                                      std::size_t threads);

// Solves the steps, as far as starting there pays.
void solve_whole(WholeStart& whole, const Settings& settings, std::size_t scratch,
                 Interrupt& interrupt);

}  // namespace onefit
