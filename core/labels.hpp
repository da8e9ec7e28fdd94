// What labels say: which classes there are, and the folds of scikit-learn's StratifiedKFold without
// shuffling.
//
// Sorted by class, in the order in which classes appear, row r is dealt to fold r mod k; each class
// then hands its rows out in their own order, fold by fold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace onefit {

struct Classes {
  std::vector<std::int64_t> labels;  // in rising order
  std::vector<std::int64_t> codes;   // of the rows: numbers of their classes
  std::vector<std::int64_t> order;   // rows by class
  std::vector<std::int64_t> starts;  // of classes in it, and its end
};
Classes classes_of(std::span<const std::int64_t> labels);

// The rows that each fold holds out, fold by fold, and how many.
struct Dealt {
  std::vector<std::int64_t> rows;
  std::vector<std::size_t> sizes;
};

// Nothing where a class has fewer rows than there are folds, or where there are fewer than two of
// these, or no rows.
std::optional<Dealt> dealt_folds(std::span<const std::int64_t> labels, std::size_t n_folds);

}  // namespace onefit
