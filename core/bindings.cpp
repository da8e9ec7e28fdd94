// Casts between Python and the core, and releases the GIL. No mathematics.
#include "bindings.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include "active.hpp"
#include "lapack.hpp"
#include "loops.hpp"
#include "parallel.hpp"
#include "source.hpp"
#include "store.hpp"

namespace onefit {

using namespace nb::literals;

namespace {

// ---- arrays -------------------------------------------------------------------------------------

// Rows and columns are numbered with 32-bit integers.
constexpr std::size_t kMostNumbered = std::numeric_limits<std::int32_t>::max();

template <class T>
DenseView<T> view(const Matrix<T>& a) {
  return {a.data(), a.shape(0), a.shape(1)};
}

CsrView view(const Vector<double>& data, const Vector<std::int32_t>& indices,
             const Vector<std::int64_t>& indptr, std::size_t cols) {
  if (indptr.shape(0) == 0) throw std::invalid_argument("indptr is empty");
  const std::size_t rows = indptr.shape(0) - 1;
  const std::int64_t* ends = indptr.data();
  if (ends[0] != 0 || !std::is_sorted(ends, ends + rows + 1) ||
      ends[rows] != static_cast<std::int64_t>(data.shape(0)) || indices.shape(0) != data.shape(0)) {
    throw std::invalid_argument("the parts of the CSR matrix do not fit together");
  }
  if (rows > kMostNumbered || cols > kMostNumbered) {
    throw std::invalid_argument("rows and columns are numbered with 32 bits");
  }
  for (std::size_t e = 0; e < data.shape(0); ++e) {
    const std::int32_t column = indices.data()[e];
    if (column < 0 || static_cast<std::size_t>(column) >= cols) {
      throw std::invalid_argument("column " + std::to_string(column) + " is not in the matrix");
    }
  }
  return {data.data(), indices.data(), indptr.data(), rows, cols};
}

Block block_of(const Points<double>& queries, const Points<double>& support, const Kernel& kernel,
               std::size_t first, std::size_t last) {
  if (queries.cols() != support.cols()) {
    throw std::invalid_argument("queries and support have different numbers of columns");
  }
  if (first > last || last > queries.rows()) throw std::invalid_argument("rows out of range");
  auto* values = new double[(last - first) * support.rows()];
  const nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  {
    const nb::gil_scoped_release release;
    kernel_block(queries, support, kernel, first, last, values);
  }
  return Block(values, {last - first, support.rows()}, owner);
}

nb::ndarray<nb::numpy, float, nb::ndim<2>> block_of_rows(KernelStore& store,
                                                         const Vector<std::int32_t>& rows,
                                                         const Vector<std::int32_t>& columns) {
  const std::size_t n = rows.shape(0);
  const std::size_t m = columns.shape(0);
  check_rows(store, {rows.data(), n});
  check_rows(store, {columns.data(), m});
  auto* values = new float[n * m];
  const nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<float*>(p); });
  {
    const nb::gil_scoped_release release;
    entries(store, {rows.data(), n}, {columns.data(), m}, values);
  }
  return {values, {n, m}, owner};
}

Block exact_block_of_rows(const KernelStore& store, const Vector<std::int32_t>& rows,
                          const Vector<std::int32_t>& columns, std::size_t threads) {
  const std::size_t n = rows.shape(0);
  const std::size_t m = columns.shape(0);
  check_rows(store, {rows.data(), n});
  check_rows(store, {columns.data(), m});
  auto* values = new double[n * m];
  const nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  {
    const nb::gil_scoped_release release;
    parallel_for(n, threads, [&](std::size_t first, std::size_t last) {
      for (std::size_t k = first; k < last; ++k) {
        store.evaluate_exact(rows.data()[k], {columns.data(), m}, values + k * m);
      }
    });
  }
  return Block(values, {n, m}, owner);
}

const std::vector<std::size_t>& checked(const std::vector<std::size_t>& starts, std::size_t size) {
  const bool ok = !starts.empty() && starts[0] == 0 && starts.back() < size &&
                  std::is_sorted(starts.begin(), starts.end());
  if (!ok) throw std::invalid_argument("block_starts must begin with 0 and rise");
  return starts;
}

// Whether these are rows of a matrix with `size` of them, which is `what`.
template <class I>
void check_chosen(const Vector<I>& rows, std::size_t size, const char* what) {
  for (std::size_t i = 0; i < rows.shape(0); ++i) {
    const I row = rows.data()[i];
    if (row < 0 || static_cast<std::size_t>(row) >= size) {
      throw std::invalid_argument("row " + std::to_string(row) + " is not in the " + what);
    }
  }
}

// Kernel rows from a function of Python: function(rows, first, last) gives the entries of some rows
// in the columns [first, last), as a matrix of doubles. What it raises goes through the solver to
// whoever called that.
class FunctionSource final : public RowSource {
 public:
  FunctionSource(nb::object function, std::vector<double> diagonal)
      : function_(std::move(function)), diagonal_(std::move(diagonal)) {}
  ~FunctionSource() override {
    const nb::gil_scoped_acquire gil;
    function_.reset();
  }
  FunctionSource(const FunctionSource&) = delete;
  FunctionSource& operator=(const FunctionSource&) = delete;

  std::size_t size() const override { return diagonal_.size(); }
  std::size_t preferred_rows() const override { return kRowsWithoutRoom; }
  double diagonal(std::size_t row) const override { return diagonal_[row]; }

  void evaluate(std::span<const std::int32_t> rows, float* const* out, std::size_t first,
                std::size_t last, std::size_t /*threads*/) const override {
    for (std::size_t r0 = 0; r0 < rows.size(); r0 += kRowsWithoutRoom) {
      const std::size_t count = std::min(kRowsWithoutRoom, rows.size() - r0);
      call(rows.subspan(r0, count), first, last, [&](const double* values) {
        for (std::size_t r = 0; r < count; ++r) {
          for (std::size_t t = 0; t < last - first; ++t) {
            const auto value = static_cast<float>(values[r * (last - first) + t]);
            if (!std::isfinite(value)) throw std::overflow_error("kernel values overflow");
            out[r0 + r][t] = value;
          }
        }
      });
    }
  }

  void evaluate_exact(std::int32_t row, std::span<const std::int32_t> columns,
                      double* out) const override {
    call({&row, 1}, 0, size(), [&](const double* values) {
      for (std::size_t t = 0; t < columns.size(); ++t) out[t] = values[columns[t]];
    });
  }

 private:
  template <class Take>
  void call(std::span<const std::int32_t> rows, std::size_t first, std::size_t last,
            const Take& take) const {
    const nb::gil_scoped_acquire gil;
    const nb::object asked = nb::cast(std::vector<std::int32_t>(rows.begin(), rows.end()));
    const auto values = nb::cast<Matrix<double>>(function_(asked, first, last));
    if (values.shape(0) != rows.size() || values.shape(1) != last - first) {
      throw std::invalid_argument("the function returned a matrix of another shape");
    }
    take(values.data());
  }

  nb::object function_;
  std::vector<double> diagonal_;
};

template <class T>
std::shared_ptr<KernelStore> dense_store(const Matrix<T>& x, const Vector<std::int64_t>& rows,
                                         const Kernel& kernel, std::size_t budget,
                                         const std::vector<std::size_t>& starts) {
  check_chosen(rows, x.shape(0), "data");
  const DenseView<T> chosen{x.data(), rows.shape(0), x.shape(1), rows.data()};
  const nb::gil_scoped_release release;
  return std::make_shared<KernelStore>(points_source(chosen, kernel), budget,
                                       checked(starts, chosen.rows));
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of onefit: kernel rows, the dual problem and its solver.";

  m.def(
      "is_finite",
      [](const nb::ndarray<const double, nb::c_contig, nb::device::cpu>& values) {
        return is_finite({values.data(), values.size()});
      },
      "values"_a);

  nb::enum_<KernelKind>(m, "KernelKind")
      .value("linear", KernelKind::Linear)
      .value("poly", KernelKind::Poly)
      .value("rbf", KernelKind::Rbf)
      .value("sigmoid", KernelKind::Sigmoid)
      .value("distance", KernelKind::Distance, "squared distances, which RBF kernels share");

  nb::class_<Kernel>(m, "Kernel")
      .def(
          "__init__",
          [](Kernel* self, KernelKind kind, double gamma, double coef0, int degree) {
            if (degree < 0) throw std::invalid_argument("degree is negative");
            new (self) Kernel{kind, gamma, coef0, degree};
          },
          "kind"_a, "gamma"_a = 1.0, "coef0"_a = 0.0, "degree"_a = 3);

  nb::class_<Points<double>>(m, "Points", "Rows of data for double-precision kernel blocks.")
      .def(
          "__init__",
          [](Points<double>* self, const Matrix<double>& x, std::optional<Vector<double>> centre) {
            if (centre && centre->shape(0) != x.shape(1)) {
              throw std::invalid_argument("centre does not fit to x");
            }
            new (self) Points<double>(view(x), centre ? centre->data() : nullptr, 1.0);
          },
          "x"_a, "centre"_a = nb::none(), "The rows of x, less `centre`.")
      .def(
          "__init__",
          [](Points<double>* self, const Vector<double>& data, const Vector<std::int32_t>& indices,
             const Vector<std::int64_t>& indptr, std::size_t cols) {
            new (self) Points<double>(view(data, indices, indptr, cols), 1.0);
          },
          "data"_a, "indices"_a, "indptr"_a, "cols"_a)
      .def_prop_ro("shape", [](const Points<double>& p) { return std::pair(p.rows(), p.cols()); });

  m.def("kernel_block", &block_of, "queries"_a, "support"_a, "kernel"_a, "first"_a, "last"_a,
        "Kernel values of queries[first:last] with all support points, in double precision.");

  const std::vector<std::size_t> whole = {0};
  nb::class_<KernelStore>(
      m, "KernelStore",
      "Float32 kernel rows, evaluated when first asked for, block of columns by "
      "block of columns.")
      .def_static("from_dense", &dense_store<double>, "x"_a, "rows"_a, "kernel"_a, "budget_bytes"_a,
                  "block_starts"_a = whole)
      .def_static("from_dense", &dense_store<float>, "x"_a, "rows"_a, "kernel"_a, "budget_bytes"_a,
                  "block_starts"_a = whole)
      .def_static(
          "from_csr",
          [](const Vector<double>& data, const Vector<std::int32_t>& indices,
             const Vector<std::int64_t>& indptr, std::size_t cols, const Kernel& kernel,
             std::size_t budget, const std::vector<std::size_t>& starts) {
            const CsrView csr = view(data, indices, indptr, cols);
            const nb::gil_scoped_release release;
            return std::make_shared<KernelStore>(points_source(csr, kernel), budget,
                                                 checked(starts, csr.rows));
          },
          "data"_a, "indices"_a, "indptr"_a, "cols"_a, "kernel"_a, "budget_bytes"_a,
          "block_starts"_a = whole)
      .def_static(
          "from_matrix",
          [](const Matrix<double>& k, const Vector<std::int32_t>& rows, std::size_t budget,
             const std::vector<std::size_t>& starts) {
            if (k.shape(0) != k.shape(1)) throw std::invalid_argument("the matrix is not square");
            check_chosen(rows, k.shape(0), "matrix");
            std::vector<std::int32_t> chosen(rows.data(), rows.data() + rows.shape(0));
            const std::size_t size = chosen.size();
            return std::make_shared<KernelStore>(matrix_source(view(k), std::move(chosen)), budget,
                                                 checked(starts, size));
          },
          "k"_a.noconvert(), "rows"_a, "budget_bytes"_a, "block_starts"_a = whole,
          nb::keep_alive<0, 1>())
      .def_static(
          "from_function",
          [](nb::object function, const Vector<double>& diagonal, std::size_t budget,
             const std::vector<std::size_t>& starts) {
            std::vector<double> entries(diagonal.data(), diagonal.data() + diagonal.shape(0));
            const std::size_t size = entries.size();
            return std::make_shared<KernelStore>(
                std::make_shared<FunctionSource>(std::move(function), std::move(entries)), budget,
                checked(starts, size));
          },
          "function"_a, "diagonal"_a, "budget_bytes"_a, "block_starts"_a = whole,
          "Rows of function(rows, first, last), which gives entries in these columns.")
      .def_static(
          "from_distances",
          [](const std::shared_ptr<KernelStore>& distances, double gamma, std::size_t budget) {
            return std::make_shared<KernelStore>(distance_source(distances, gamma), budget);
          },
          "distances"_a, "gamma"_a, "budget_bytes"_a)
      .def(
          "in_blocks",
          [](const KernelStore& store, std::size_t budget, const std::vector<std::size_t>& starts) {
            return std::make_shared<KernelStore>(store.source(), budget,
                                                 checked(starts, store.size()));
          },
          "budget_bytes"_a, "block_starts"_a, nb::keep_alive<0, 1>(),
          "A store of the same rows that evaluates and forgets them by blocks.")
      .def("__len__", &KernelStore::size)
      .def_prop_ro("capacity", &KernelStore::capacity, "rows that fit into the budget")
      .def_prop_ro("spare_bytes", &KernelStore::spare_bytes,
                   "what the budget leaves beside all rows, or all that fit")
      .def_prop_ro("entries_evaluated", &KernelStore::entries_evaluated)
      .def(
          "row",
          [](KernelStore& store, std::int32_t row) {
            if (row < 0 || static_cast<std::size_t>(row) >= store.size()) {
              throw std::out_of_range("row " + std::to_string(row) + " is not in the store");
            }
            auto* copy = new float[store.size()];
            const nb::capsule owner(copy,
                                    [](void* p) noexcept { delete[] static_cast<float*>(p); });
            {
              // Another thread may be evaluating the row, and need the GIL for it.
              const nb::gil_scoped_release release;
              const HeldRow held = store.hold(row, store.blocks(0, store.size()), {}, 1);
              for (std::size_t first = 0; first < store.size();) {
                const Run run = store.run(first, store.size());
                std::copy_n(held.block(run.block) + run.offset, run.length, copy + first);
                first += run.length;
              }
            }
            return nb::ndarray<nb::numpy, float, nb::ndim<1>>(copy, {store.size()}, owner);
          },
          "row"_a, "A copy of one kernel row.")
      .def(
          "forget",
          [](KernelStore& store, std::size_t block, std::size_t other) {
            if (std::max(block, other) >= store.n_blocks()) {
              throw std::out_of_range("there are " + std::to_string(store.n_blocks()) + " blocks");
            }
            store.forget(block, other);
          },
          "block"_a, "other"_a,
          "Gives up the entries of rows in one block and columns in the other, both ways.")
      .def("block", &block_of_rows, "rows"_a, "columns"_a,
           "Entries of some rows in some columns, as an array of float32.")
      .def("exact_block", &exact_block_of_rows, "rows"_a, "columns"_a, "threads"_a = 1,
           "The same in double precision, evaluated each time they are asked for.");

  bind_problems(m);
  bind_paths(m);
  bind_together(m);
  bind_held_out(m);
  bind_left_out(m);
  bind_chains(m);

  m.def(
      "use_lapack",
      [](const nb::capsule& potrf, const nb::capsule& trsv) {
        lapack().potrf = reinterpret_cast<decltype(Lapack::potrf)>(potrf.data());
        lapack().trsv = reinterpret_cast<decltype(Lapack::trsv)>(trsv.data());
      },
      "potrf"_a, "trsv"_a,
      "Takes dpotrf and dtrsv as scipy.linalg.cython_lapack and cython_blas export them.");

  m.def(
      "instruction_sets",
      [] {
        const char* names[8];
        const std::size_t n = available_loops(names, 8);
        return std::vector<std::string>(names, names + n);
      },
      "Instruction sets of this machine that the core can use, widest first.");
  m.def("instruction_set", [] { return std::string(loops().name); });
  m.def(
      "use_instruction_set",
      [](const std::string& name) {
        if (!select_loops(name.c_str())) {
          throw std::invalid_argument("this machine does not have the instruction set " + name);
        }
      },
      "name"_a);
}

}  // namespace onefit
