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
#include "pairs.hpp"
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

Block owned_block(std::unique_ptr<double[]> values, std::size_t rows, std::size_t columns) {
  double* data = values.release();
  const nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  return {data, {rows, columns}, owner};
}

Numbers<std::int64_t> as_array(const std::vector<std::int64_t>& values) {
  std::unique_ptr<std::int64_t[]> copy(new std::int64_t[values.size()]);
  std::ranges::copy(values, copy.get());
  return owned(std::move(copy), values.size());
}

std::tuple<Numbers<std::int64_t>, Numbers<std::int64_t>, Numbers<std::int64_t>,
           std::vector<std::int64_t>>
sorted_classes(const Vector<std::int64_t>& labels) {
  const Classes classes = classes_of({labels.data(), labels.shape(0)});
  return {as_array(classes.labels), as_array(classes.codes), as_array(classes.order),
          classes.starts};
}

std::optional<std::pair<Numbers<std::int64_t>, std::vector<std::size_t>>> folds_of(
    const Vector<std::int64_t>& labels, std::size_t n_folds) {
  const std::optional<Dealt> dealt = dealt_folds({labels.data(), labels.shape(0)}, n_folds);
  if (!dealt) return std::nullopt;
  return std::pair(as_array(dealt->rows), dealt->sizes);
}

void check_sizes(const std::vector<std::size_t>& sizes, std::size_t n_rows) {
  std::size_t left = n_rows;
  const auto takes = [&](std::size_t size) { return size <= left && (left -= size, true); };
  if (!std::ranges::all_of(sizes, takes) || left != 0) {
    throw std::invalid_argument("sizes do not sum up to the number of rows");
  }
}

bool are_classes(const std::vector<std::size_t>& starts, std::size_t size) {
  return starts.size() > 2 && std::is_sorted(starts.begin(), starts.end()) && starts[0] == 0 &&
         starts.back() == size;
}

nb::typed<nb::list, Problem> problems_of_pairs(const std::vector<std::size_t>& starts,
                                               const Vector<double>& bounds) {
  if (!are_classes(starts, bounds.shape(0))) {
    throw std::invalid_argument("starts does not fit to the bounds");
  }
  nb::list pairs;
  for (Problem& pair : c_svc_pairs(starts, {bounds.data(), bounds.shape(0)})) {
    pairs.append(nb::cast(std::move(pair)));
  }
  return nb::typed<nb::list, Problem>(std::move(pairs));
}

std::optional<Block> bounds_of(const Vector<double>& bounds, const std::vector<std::size_t>& starts,
                               const Vector<std::int32_t>& rows,
                               const std::vector<std::size_t>& sizes, bool held_out) {
  const std::size_t n = bounds.shape(0);
  if (!are_classes(starts, n)) {
    throw std::invalid_argument("starts does not fit to the bounds");
  }
  check_sizes(sizes, rows.shape(0));
  check_rows(n, {rows.data(), rows.shape(0)});
  std::unique_ptr<double[]> values(new double[sizes.size() * n]);
  if (!bounds_of_folds({bounds.data(), n}, starts, {rows.data(), rows.shape(0)}, sizes, held_out,
                       values.get())) {
    return std::nullopt;
  }
  return owned_block(std::move(values), sizes.size(), n);
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
  std::unique_ptr<double[]> values(new double[n * pairs]);
  {
    const nb::gil_scoped_release release;
    pair_products(store, {rows.data(), rows.shape(0)}, starts, coef.data(), {queries.data(), n},
                  values.get());
  }
  return owned_block(std::move(values), n, pairs);
}

std::tuple<Numbers<std::int32_t>, std::vector<std::size_t>, std::vector<double>> labels_of_folds(
    KernelStore& store, const std::vector<std::size_t>& starts, const FoldSolutions& solved,
    std::size_t first, const Vector<std::int32_t>& queries, const std::vector<std::size_t>& sizes,
    double tol, std::size_t threads) {
  if (!are_classes(starts, store.size())) {
    throw std::invalid_argument("starts does not fit to the store");
  }
  if (solved.n_problems() != (starts.size() - 1) * (starts.size() - 2) / 2 ||
      first > solved.n_folds() || sizes.size() > solved.n_folds() - first) {
    throw std::invalid_argument("there must be a solution for each fold and pair");
  }
  check_sizes(sizes, queries.shape(0));
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
  std::vector<double> small(folds.size());
  std::vector<std::size_t> right(folds.size());
  {
    const nb::gil_scoped_release release;
    held_out_labels(store, starts, folds, tol, threads, labels.get(), small.data());
    const std::int32_t* label = labels.get();
    for (std::size_t f = 0; f < folds.size(); ++f) {
      for (const std::int32_t query : folds[f].queries) {
        const auto k = static_cast<std::size_t>(*label++);
        const auto row = static_cast<std::size_t>(query);
        right[f] += static_cast<std::size_t>(starts[k] <= row && row < starts[k + 1]);
      }
    }
  }
  return {owned(std::move(labels), queries.shape(0)), std::move(right), std::move(small)};
}

}  // namespace

void bind_held_out(nb::module_& m) {
  m.def("classes_of", &sorted_classes, "labels"_a,
        "The labels there are, in rising order, the number of each row's, the rows by class, and "
        "where these start.");

  m.def(
      "dealt_folds", &folds_of, "labels"_a, "n_folds"_a,
      "The rows that the folds of StratifiedKFold hold out, fold by fold, and how many each; None "
      "where a class has fewer rows than there are folds.");

  m.def("c_svc_pairs", &problems_of_pairs, "starts"_a, "bounds"_a,
        "A C-SVC for each pair of classes of rows that are sorted by class, with a bound for each "
        "row. Class k is the rows starts[k] to starts[k + 1]; the first class of a pair is +1.");

  m.def("bounds_of_folds", &bounds_of, "bounds"_a, "starts"_a, "rows"_a, "sizes"_a, "held_out"_a,
        "The bound of each row in each fold, 0 for those that take no part; None where a fold has "
        "no row of a class. The rows of the folds, so many each, are those that they hold out, or "
        "the only ones that take part.");

  m.def("pair_products", &products_of_pairs, "store"_a, "rows"_a, "starts"_a, "coef"_a, "queries"_a,
        "Sums of kernel values for each query and pair of classes; rows are sorted by class.");

  m.def("held_out_labels", &labels_of_folds, "store"_a, "starts"_a, "solutions"_a, "first"_a,
        "queries"_a, "sizes"_a, "tol"_a, "threads"_a = 1,
        "The number of the class that the pairs of C-SVC of each fold vote for, for each of its "
        "queries; for how many queries of each fold that is their own, and which share of the "
        "values that decide it are smaller than tol. The "
        "folds are those from `first` on; queries, so many for each fold, and the variables of "
        "pairs are rows of the store, which are sorted by class.");
}

}  // namespace onefit
