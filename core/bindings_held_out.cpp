// Which rows folds hold out, and what they say of them, for Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "held_out.hpp"
#include "labels.hpp"
#include "together.hpp"

namespace onefit {

using namespace nb::literals;

namespace {

template <class T>
using Numbers = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T>
Numbers<T> owned(std::unique_ptr<T[]> values, std::size_t size) {
  T* data = values.release();
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return {data, {size}, owner};
}

Numbers<std::int64_t> as_array(const std::vector<std::int64_t>& values) {
  std::unique_ptr<std::int64_t[]> copy(new std::int64_t[values.size()]);
  std::ranges::copy(values, copy.get());
  return owned(std::move(copy), values.size());
}

std::tuple<Numbers<std::int64_t>, Numbers<std::int64_t>, Numbers<std::int64_t>> sorted_classes(
    const Vector<std::int64_t>& labels) {
  const Classes classes = classes_of({labels.data(), labels.shape(0)});
  return {as_array(classes.labels), as_array(classes.codes), as_array(classes.order)};
}

// The rows that each fold trains on, one fold after another, and those that it holds out.
using Folds = std::pair<std::vector<Numbers<std::int64_t>>, std::vector<Numbers<std::int64_t>>>;

std::optional<Folds> folds_of(const Vector<std::int64_t>& labels, std::size_t n_folds) {
  const std::size_t n = labels.shape(0);
  const auto fold = dealt_folds({labels.data(), n}, n_folds);
  if (!fold) return std::nullopt;
  Folds folds;
  for (std::size_t f = 0; f < n_folds; ++f) {
    const auto held_out = static_cast<std::size_t>(std::ranges::count(*fold, f));
    std::unique_ptr<std::int64_t[]> train(new std::int64_t[n - held_out]);
    std::unique_ptr<std::int64_t[]> test(new std::int64_t[held_out]);
    std::int64_t* in = train.get();
    std::int64_t* out = test.get();
    for (std::size_t row = 0; row < n; ++row) {
      std::int64_t*& to = (*fold)[row] == f ? out : in;
      *to++ = static_cast<std::int64_t>(row);
    }
    folds.first.push_back(owned(std::move(train), n - held_out));
    folds.second.push_back(owned(std::move(test), held_out));
  }
  return folds;
}

bool are_classes(const std::vector<std::size_t>& starts, std::size_t size) {
  return starts.size() > 2 && std::is_sorted(starts.begin(), starts.end()) && starts[0] == 0 &&
         starts.back() == size;
}

Block products_of_pairs(KernelStore& store, const Vector<std::int32_t>& rows,
                        const std::vector<std::size_t>& starts, const Matrix<double>& coef,
                        const Vector<std::int32_t>& queries) {
  check_rows(store, {rows.data(), rows.shape(0)});
  check_rows(store, {queries.data(), queries.shape(0)});
  const std::size_t classes = starts.size() - 1;
  if (!are_classes(starts, rows.shape(0)) || coef.shape(0) != classes - 1 ||
      coef.shape(1) != rows.shape(0)) {
    throw std::invalid_argument("rows, starts and coef do not fit together");
  }
  const std::size_t n = queries.shape(0);
  const std::size_t pairs = classes * (classes - 1) / 2;
  auto* values = new double[n * pairs];
  const nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  {
    const nb::gil_scoped_release release;
    pair_products(store, {rows.data(), rows.shape(0)}, starts, coef.data(), {queries.data(), n},
                  values);
  }
  return Block(values, {n, pairs}, owner);
}

std::pair<Numbers<std::int32_t>, Numbers<double>> labels_of_folds(
    KernelStore& store, const std::vector<std::size_t>& starts, const FoldSolutions& solved,
    std::size_t first, const Vector<std::int32_t>& queries, const std::vector<std::size_t>& sizes,
    double tol, std::size_t threads) {
  if (!are_classes(starts, store.size())) {
    throw std::invalid_argument("starts does not fit to the store");
  }
  if (solved.n_problems() != (starts.size() - 1) * (starts.size() - 2) / 2 ||
      first + sizes.size() > solved.n_folds()) {
    throw std::invalid_argument("there must be a solution for each fold and pair");
  }
  if (std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) != queries.shape(0)) {
    throw std::invalid_argument("sizes do not sum up to the number of queries");
  }
  check_rows(store, {queries.data(), queries.shape(0)});
  std::vector<FittedFold> folds(sizes.size());
  const std::int32_t* next = queries.data();
  std::size_t number = first * solved.n_problems();
  for (std::size_t f = 0; f < folds.size(); ++f) {
    folds[f].queries = {next, sizes[f]};
    next += sizes[f];
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
      for (std::size_t j = i + 1; j + 1 < starts.size(); ++j, ++number) {
        const std::size_t size = starts[i + 1] - starts[i] + starts[j + 1] - starts[j];
        const KeptSolution& pair = solved[number];
        if (pair.beta.size() != size || pair.gradient.size() != size) {
          throw std::invalid_argument("a solution has other variables than its pair of classes");
        }
        folds[f].pairs.emplace_back(pair.beta.data(), pair.gradient.data(), pair.ends.offset[0]);
      }
    }
  }
  std::unique_ptr<std::int32_t[]> labels(new std::int32_t[queries.shape(0)]);
  std::unique_ptr<double[]> small(new double[folds.size()]);
  {
    const nb::gil_scoped_release release;
    held_out_labels(store, starts, folds, tol, threads, labels.get(), small.get());
  }
  return {owned(std::move(labels), queries.shape(0)), owned(std::move(small), folds.size())};
}

}  // namespace

void bind_held_out(nb::module_& m) {
  m.def("classes_of", &sorted_classes, "labels"_a,
        "The labels there are, in rising order, the number of each row's, and the rows by class.");

  m.def("dealt_folds", &folds_of, "labels"_a, "n_folds"_a,
        "The rows to train on, and those held out, of each fold of StratifiedKFold; None where a "
        "class has fewer rows than there are folds.");

  m.def("pair_products", &products_of_pairs, "store"_a, "rows"_a, "starts"_a, "coef"_a, "queries"_a,
        "Sums of kernel values for each query and pair of classes; rows are sorted by class.");

  m.def("held_out_labels", &labels_of_folds, "store"_a, "starts"_a, "solutions"_a, "first"_a,
        "queries"_a, "sizes"_a, "tol"_a, "threads"_a = 1,
        "The number of the class that the pairs of C-SVC of each fold vote for, for each of its "
        "queries, and which share of the values that decide each fold are smaller than tol. The "
        "folds are those from `first` on; queries, so many for each fold, and the variables of "
        "pairs are rows of the store, which are sorted by class.");
}

}  // namespace onefit
