#include "labels.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

namespace onefit {
namespace {

// A class that hands its rows out.
struct Hand {
  std::size_t fold = 0;                // whose turn it is
  std::vector<std::size_t> left = {};  // for each fold
};

// Classes in the order in which they appear.
struct Appearing {
  std::vector<std::int64_t> labels = {};
  std::vector<std::size_t> sizes = {};
  std::vector<std::size_t> of_row = {};

  explicit Appearing(std::span<const std::int64_t> all) {
    std::unordered_map<std::int64_t, std::size_t> number;
    of_row.reserve(all.size());
    for (const std::int64_t label : all) {
      const std::size_t k = number.try_emplace(label, labels.size()).first->second;
      if (k == labels.size()) {
        labels.push_back(label);
        sizes.push_back(0);
      }
      ++sizes[k];
      of_row.push_back(k);
    }
  }
};

}  // namespace

Classes classes_of(std::span<const std::int64_t> labels) {
  const Appearing found(labels);
  const std::size_t n_classes = found.labels.size();
  std::vector<std::size_t> sorted(n_classes);
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::sort(sorted, {}, [&](std::size_t k) { return found.labels[k]; });
  Classes classes;
  std::vector<std::int64_t> code(n_classes);  // of classes as they appear
  std::vector<std::size_t> next(n_classes);   // where the next row of each goes
  std::size_t first = 0;
  for (const std::size_t k : sorted) {
    code[k] = static_cast<std::int64_t>(classes.labels.size());
    classes.labels.push_back(found.labels[k]);
    classes.starts.push_back(static_cast<std::int64_t>(first));
    next[k] = first;
    first += found.sizes[k];
  }
  classes.starts.push_back(static_cast<std::int64_t>(first));
  classes.order.resize(labels.size());
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const std::size_t k = found.of_row[row];
    classes.codes.push_back(code[k]);
    classes.order[next[k]++] = static_cast<std::int64_t>(row);
  }
  return classes;
}

std::optional<Dealt> dealt_folds(std::span<const std::int64_t> labels, std::size_t n_folds) {
  if (labels.empty() || n_folds < 2) return std::nullopt;
  const Appearing found(labels);
  std::vector<Hand> hands(found.labels.size());
  std::size_t first = 0;
  for (std::size_t k = 0; k < hands.size(); ++k) {
    const std::size_t size = found.sizes[k];
    if (size < n_folds) return std::nullopt;
    hands[k].left.resize(n_folds);
    // Of `size` numbers from `first` on, those that leave each remainder.
    for (std::size_t r = 0; r < n_folds; ++r) {
      hands[k].left[(first + r) % n_folds] = (size - r + n_folds - 1) / n_folds;
    }
    first += size;
  }
  Dealt dealt{std::vector<std::int64_t>(labels.size()), std::vector<std::size_t>(n_folds)};
  for (const Hand& hand : hands) {
    for (std::size_t f = 0; f < n_folds; ++f) dealt.sizes[f] += hand.left[f];
  }
  std::vector<std::size_t> next(n_folds);  // where the next row of each fold goes
  std::exclusive_scan(dealt.sizes.begin(), dealt.sizes.end(), next.begin(), std::size_t{0});
  for (std::size_t row = 0; row < labels.size(); ++row) {
    Hand& hand = hands[found.of_row[row]];
    while (hand.left[hand.fold] == 0) ++hand.fold;
    --hand.left[hand.fold];
    dealt.rows[next[hand.fold]++] = static_cast<std::int64_t>(row);
  }
  return dealt;
}

}  // namespace onefit
