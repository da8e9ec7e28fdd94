// Classes of labels, and the folds of StratifiedKFold, against their definitions.
#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "check.hpp"
#include "labels.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

std::vector<std::int64_t> drawn(std::size_t n, std::int64_t classes, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::int64_t> draw(-classes / 2, classes - classes / 2 - 1);
  std::vector<std::int64_t> labels(n);
  for (std::int64_t& label : labels) label = draw(random);
  return labels;
}

// Row r, sorted by class in the order of their first rows, is dealt to fold r mod k; a class then
// hands its rows out in their own order, to its first fold first.
std::vector<std::size_t> slow_folds(const std::vector<std::int64_t>& labels, std::size_t n_folds) {
  std::vector<std::int64_t> appearing;
  for (const std::int64_t label : labels) {
    if (std::ranges::find(appearing, label) == appearing.end()) appearing.push_back(label);
  }
  std::vector<std::size_t> fold_of(labels.size());
  std::size_t dealt = 0;
  for (const std::int64_t label : appearing) {
    std::vector<std::size_t> folds;
    for (std::size_t k = 0; k < labels.size(); ++k) {
      if (labels[k] == label) folds.push_back(dealt++ % n_folds);
    }
    std::ranges::sort(folds);
    auto next = folds.begin();
    for (std::size_t k = 0; k < labels.size(); ++k) {
      if (labels[k] == label) fold_of[k] = *next++;
    }
  }
  return fold_of;
}

}  // namespace

TEST(classes_are_sorted_and_keep_the_order_of_their_rows) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<std::int64_t> labels = drawn(1 + 7 * seed, 1 + seed % 6, seed);
    const Classes classes = classes_of(labels);
    const std::set<std::int64_t> different(labels.begin(), labels.end());
    CHECK(std::ranges::equal(classes.labels, different));
    CHECK(classes.starts.size() == different.size() + 1);
    CHECK(classes.starts.front() == 0);
    CHECK(classes.starts.back() == static_cast<std::int64_t>(labels.size()));
    CHECK(classes.order.size() == labels.size());
    for (std::size_t row = 0; row < labels.size(); ++row) {
      CHECK(classes.labels[static_cast<std::size_t>(classes.codes[row])] == labels[row]);
    }
    for (std::size_t k = 0; k < different.size(); ++k) {
      for (std::int64_t at = classes.starts[k]; at < classes.starts[k + 1]; ++at) {
        const std::int64_t row = classes.order[static_cast<std::size_t>(at)];
        CHECK(classes.codes[static_cast<std::size_t>(row)] == static_cast<std::int64_t>(k));
        CHECK(at == classes.starts[k] || classes.order[static_cast<std::size_t>(at - 1)] < row);
      }
    }
  }
}

TEST(labels_may_be_any_integers_or_none) {
  const Classes none = classes_of({});
  CHECK(none.labels.empty() && none.codes.empty() && none.order.empty());
  CHECK(none.starts == std::vector<std::int64_t>{0});
  using Limits = std::numeric_limits<std::int64_t>;
  const std::vector<std::int64_t> labels = {Limits::max(), Limits::min(), 0, Limits::max()};
  const Classes classes = classes_of(labels);
  CHECK((classes.labels == std::vector<std::int64_t>{Limits::min(), 0, Limits::max()}));
  CHECK((classes.order == std::vector<std::int64_t>{1, 2, 0, 3}));
}

TEST(folds_are_dealt_as_they_are_defined) {
  std::size_t n_dealt = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const std::vector<std::int64_t> labels = drawn(10 + 5 * seed, 1 + seed % 5, seed);
    const std::size_t n_folds = 2 + seed % 9;
    const std::optional<Dealt> dealt = dealt_folds(labels, n_folds);
    const Classes classes = classes_of(labels);
    bool enough = true;
    for (std::size_t k = 0; k + 1 < classes.starts.size(); ++k) {
      const auto size = static_cast<std::size_t>(classes.starts[k + 1] - classes.starts[k]);
      enough = enough && size >= n_folds;
    }
    CHECK(dealt.has_value() == enough);
    if (!dealt) continue;
    ++n_dealt;
    CHECK(dealt->sizes.size() == n_folds);
    CHECK(std::reduce(dealt->sizes.begin(), dealt->sizes.end()) == labels.size());
    const std::vector<std::size_t> expected = slow_folds(labels, n_folds);
    std::size_t at = 0;
    for (std::size_t fold = 0; fold < n_folds; ++fold) {
      for (std::size_t k = 0; k < dealt->sizes[fold]; ++k, ++at) {
        CHECK(expected[static_cast<std::size_t>(dealt->rows[at])] == fold);
        CHECK(k == 0 || dealt->rows[at - 1] < dealt->rows[at]);
      }
    }
  }
  CHECK(n_dealt >= 30);
}

TEST(too_few_rows_or_folds_are_not_dealt) {
  const std::vector<std::int64_t> labels = {0, 1, 0, 1, 0};
  CHECK(!dealt_folds({}, 2));
  CHECK(!dealt_folds(labels, 0));
  CHECK(!dealt_folds(labels, 1));
  CHECK(dealt_folds(labels, 2).has_value());
  CHECK(!dealt_folds(labels, 3));
}
