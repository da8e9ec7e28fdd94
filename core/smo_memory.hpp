// What a solver works in, kept from one problem to the next.
//
// A problem of some hundred variables takes tens of microseconds; to allocate its arrays, and to
// find out where in the store its kernel rows are, takes about as long. Folds of one problem are
// rows of the store in the same order: what is known of these stays known.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "active.hpp"
#include "buffer.hpp"
#include "burst.hpp"
#include "likely_rows.hpp"
#include "problem.hpp"
#include "trend.hpp"

namespace onefit {

struct SmoMemory {
  Problem problem;  // for who makes the problem that is solved next
  std::vector<double> change;

  // Per variable.
  std::vector<double> known_at;  // where the gradient is known

  // Per active position.
  std::vector<std::int32_t> variable;
  std::vector<float> up;
  std::vector<float> low;
  std::vector<Ways> ways;
  std::vector<float> diagonal;
  bool even_diagonal = false;     // the same everywhere
  float largest_diagonal = 0.0F;  // without its sign
  Buffer<float> gradient32;
  Buffer<double> gradient64;
  ActiveSet active;
  std::vector<BurstPart> parts;  // its segments
  bool is_known = false;         // whether these are those of the active set
  ActiveSet other_active;        // likely variables, or those active after them
  ActiveSet all;                 // all variables, while not all are active

  std::vector<std::int32_t> columns;
  LikelyRows likely_rows;
  std::vector<std::int32_t> also;
  std::vector<float> zeros;  // for a sweep that only looks
  Changes changes;           // of the gradient
  Trend trend;

  // Makes these columns the active ones, unless they are.
  void activate(KernelStore& store, std::span<const std::int32_t> rows, std::size_t split,
                std::size_t cache_bytes, bool may_be_coarse = false, bool in_one_run = false) {
    if (!active.set(store, rows, split, cache_bytes, may_be_coarse, in_one_run) && is_known) return;
    is_known = true;
    active.note_rows();
    diagonal.resize(std::max(diagonal.size(), rows.size() + kBurstPad));
    std::transform(rows.begin(), rows.end(), diagonal.begin(),
                   [&](std::int32_t row) { return store.diagonal()[row]; });
    const auto [least, most] = std::ranges::minmax_element(std::span(diagonal).first(rows.size()));
    largest_diagonal = rows.empty() ? 0.0F : std::max(std::abs(*least), std::abs(*most));
    even_diagonal = !rows.empty() && *least == *most;
    parts.clear();
    for (const Segment& s : active.segments()) parts.push_back({s.first, s.size()});
  }

  // Rows of likely variables are the same in every fold, and are gathered once: what is active
  // after them is in another set.
  void swap_active() {
    std::swap(active, other_active);
    is_known = false;
  }

  ActiveSet& all_rows(KernelStore& store, const Problem& of) {
    all.set(store, of.rows, of.split, 0);
    all.note_rows();
    return all;
  }
};

}  // namespace onefit
