// C-SVC of all pairs of classes, and the bounds of their folds.
#include <algorithm>
#include <vector>

#include "check.hpp"
#include "pairs.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

std::vector<double> bounds_of(std::size_t n) {
  std::vector<double> bounds(n);
  for (std::size_t row = 0; row < n; ++row) bounds[row] = 1.0 + static_cast<double>(row);
  return bounds;
}

}  // namespace

TEST(a_problem_for_each_pair_of_classes) {
  const std::vector<std::size_t> starts = {0, 2, 2, 5, 9};  // a class without rows, too
  const std::vector<double> bounds = bounds_of(9);
  const std::vector<Problem> pairs = c_svc_pairs(starts, bounds);
  CHECK(pairs.size() == 6);
  std::size_t number = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = i + 1; j < 4; ++j, ++number) {
      const Problem& pair = pairs[number];
      const std::size_t first = starts[i + 1] - starts[i];
      CHECK(pair.size() == first + starts[j + 1] - starts[j]);
      CHECK(pair.split == pair.size());
      CHECK(pair.kink == 0.0 && pair.start.empty());
      CHECK(pair.linear.size() == pair.size() && pair.lower.size() == pair.size() &&
            pair.upper.size() == pair.size());
      for (std::size_t v = 0; v < pair.size(); ++v) {
        const std::size_t row = v < first ? starts[i] + v : starts[j] + v - first;
        CHECK(pair.rows[v] == static_cast<std::int32_t>(row));
        CHECK(pair.linear[v] == (v < first ? 1.0 : -1.0));
        CHECK(pair.lower[v] == (v < first ? 0.0 : -bounds[row]));
        CHECK(pair.upper[v] == (v < first ? bounds[row] : 0.0));
      }
    }
  }
  CHECK(c_svc_pairs(std::vector<std::size_t>{0, 3}, bounds_of(3)).empty());
}

TEST(bounds_of_folds_are_zero_where_no_part_is_taken) {
  const std::vector<std::size_t> starts = {0, 3, 7};
  const std::vector<double> bounds = bounds_of(7);
  const std::vector<std::int32_t> rows = {6, 0, 3, 5, 1};
  const std::vector<std::size_t> sizes = {2, 0, 3};
  for (const bool held_out : {true, false}) {
    std::vector<double> found(sizes.size() * 7, -1.0);
    const bool all_present = bounds_of_folds(bounds, starts, rows, sizes, held_out, found.data());
    CHECK(all_present == held_out);  // nobody takes part in the second fold when none is named
    std::size_t first = 0;
    for (std::size_t fold = 0; fold < sizes.size(); ++fold) {
      for (std::int32_t row = 0; row < 7; ++row) {
        const auto from = rows.begin() + static_cast<std::ptrdiff_t>(first);
        const auto to = from + static_cast<std::ptrdiff_t>(sizes[fold]);
        const bool named = std::find(from, to, row) != to;
        const auto at = static_cast<std::size_t>(row);
        CHECK(found[fold * 7 + at] == (named == held_out ? 0.0 : bounds[at]));
      }
      first += sizes[fold];
    }
  }
}

TEST(a_class_that_a_fold_lacks_is_noticed) {
  const std::vector<std::size_t> starts = {0, 2, 4};
  const std::vector<double> bounds = bounds_of(4);
  std::vector<double> found(4);
  const std::vector<std::size_t> sizes = {2};
  CHECK(
      !bounds_of_folds(bounds, starts, std::vector<std::int32_t>{2, 3}, sizes, true, found.data()));
  CHECK(
      bounds_of_folds(bounds, starts, std::vector<std::int32_t>{1, 3}, sizes, true, found.data()));
  // A bound of 0 is no part either.
  const std::vector<double> without = {0.0, 1.0, 1.0, 1.0};
  CHECK(!bounds_of_folds(without, starts, std::vector<std::int32_t>{1, 3}, sizes, true,
                         found.data()));
}
