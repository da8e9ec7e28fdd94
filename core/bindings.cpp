// Casts between Python and the core, releases the GIL, and lets Ctrl-C through. No mathematics.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "active.hpp"
#include "lapack.hpp"
#include "loops.hpp"
#include "solve_many.hpp"
#include "source.hpp"
#include "store.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace onefit {
namespace {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// ---- Ctrl-C and progress
// -------------------------------------------------------------------------------------

// Runs Python's signal handlers from time to time and tells a function how far the work is; what
// they raise is thrown when the work has ended. The function may ask to stop.
class PythonInterrupt final : public Interrupt {
 public:
  explicit PythonInterrupt(nb::object progress) : progress_(std::move(progress)) {}

  void reached(double share) override { share_ = share; }
  bool requested() override {
    if (raised_ || stopped_) return true;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(50)) return false;
    last_ = now;
    const nb::gil_scoped_acquire gil;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!progress_.is_none()) stopped_ = nb::cast<bool>(progress_(share_));
    } catch (nb::python_error& error) {
      raised_.emplace(std::move(error));
    }
    return stopped_ || raised_;
  }
  void rethrow() {
    if (raised_) throw nb::python_error(std::move(*raised_));
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::optional<nb::python_error> raised_;
  nb::object progress_;
  double share_ = 0.0;
  bool stopped_ = false;
};

// ---- arrays -------------------------------------------------------------------------------------

template <class T>
DenseView<T> view(const Matrix<T>& a) {
  return {a.data(), a.shape(0), a.shape(1)};
}

CsrView view(const Vector<double>& data, const Vector<std::int32_t>& indices,
             const Vector<std::int64_t>& indptr, std::size_t cols) {
  if (indptr.shape(0) == 0) throw std::invalid_argument("indptr is empty");
  const std::size_t rows = indptr.shape(0) - 1;
  if (indptr.data()[rows] != static_cast<std::int64_t>(data.shape(0)) ||
      indices.shape(0) != data.shape(0)) {
    throw std::invalid_argument("the parts of the CSR matrix do not fit together");
  }
  return {data.data(), indices.data(), indptr.data(), rows, cols};
}

std::vector<double> to_vector(const Vector<double>& a) { return {a.data(), a.data() + a.shape(0)}; }

// A NumPy array that shares the memory of a vector inside `owner`.
nb::ndarray<nb::numpy, const double> shared(const std::vector<double>& values, nb::handle owner) {
  return {values.data(), {values.size()}, owner};
}

using Block = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

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

void check_rows(const KernelStore& store, const Vector<std::int32_t>& rows) {
  for (std::size_t k = 0; k < rows.shape(0); ++k) {
    const std::int32_t row = rows.data()[k];
    if (row < 0 || static_cast<std::size_t>(row) >= store.size()) {
      throw std::invalid_argument("row " + std::to_string(row) + " is not in the store");
    }
  }
}

nb::ndarray<nb::numpy, float, nb::ndim<2>> block_of_rows(KernelStore& store,
                                                         const Vector<std::int32_t>& rows,
                                                         const Vector<std::int32_t>& columns) {
  check_rows(store, rows);
  check_rows(store, columns);
  const std::size_t n = rows.shape(0);
  const std::size_t m = columns.shape(0);
  auto* values = new float[n * m];
  const nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<float*>(p); });
  {
    const nb::gil_scoped_release release;
    entries(store, {rows.data(), n}, {columns.data(), m}, values);
  }
  return {values, {n, m}, owner};
}

// ---- problems -----------------------------------------------------------------------------------

Problem make_problem(const Vector<std::int32_t>& rows, const Vector<double>& linear,
                     const Vector<double>& lower, const Vector<double>& upper, double kink,
                     std::optional<std::size_t> split, std::optional<Vector<double>> start,
                     std::optional<Vector<double>> start_gradient) {
  Problem problem;
  const std::size_t n = rows.shape(0);
  const auto check = [n](std::size_t length, const char* name) {
    if (length != n) {
      throw std::invalid_argument(std::string(name) + " has " + std::to_string(length) +
                                  " entries, rows has " + std::to_string(n));
    }
  };
  check(linear.shape(0), "linear");
  check(lower.shape(0), "lower");
  check(upper.shape(0), "upper");
  if (split.value_or(n) > n) throw std::invalid_argument("split is larger than the problem");
  problem.rows.assign(rows.data(), rows.data() + n);
  problem.linear = to_vector(linear);
  problem.lower = to_vector(lower);
  problem.upper = to_vector(upper);
  problem.kink = kink;
  problem.split = split.value_or(n);
  if (start) {
    check(start->shape(0), "start");
    problem.start = to_vector(*start);
    for (std::size_t v = 0; v < n; ++v) {
      if (!(problem.start[v] >= problem.lower[v] && problem.start[v] <= problem.upper[v])) {
        throw std::invalid_argument("start leaves the bounds at entry " + std::to_string(v));
      }
    }
  }
  if (start_gradient) {
    if (!start) throw std::invalid_argument("start_gradient is given without start");
    check(start_gradient->shape(0), "start_gradient");
    problem.start_gradient = to_vector(*start_gradient);
  }
  return problem;
}

std::vector<Solution> solve_from_python(KernelStore& store, const std::vector<Problem>& problems,
                                        double tol, std::int64_t max_iter, bool shrinking,
                                        std::size_t threads, bool forget, nb::object progress) {
  for (const Problem& problem : problems) {
    for (const std::int32_t row : problem.rows) {
      if (row < 0 || static_cast<std::size_t>(row) >= store.size()) {
        throw std::invalid_argument("row " + std::to_string(row) + " is not in the store");
      }
    }
  }
  Settings settings;
  settings.tol = tol;
  settings.max_iter = max_iter;
  settings.shrinking = shrinking;
  PythonInterrupt interrupt(std::move(progress));
  std::vector<Solution> solutions;
  {
    const nb::gil_scoped_release release;
    solutions = solve_many(store, problems, settings, threads, forget, interrupt);
  }
  interrupt.rethrow();
  return solutions;
}

const std::vector<std::size_t>& checked(const std::vector<std::size_t>& starts, std::size_t size) {
  const bool ok = !starts.empty() && starts[0] == 0 && starts.back() < size &&
                  std::is_sorted(starts.begin(), starts.end());
  if (!ok) throw std::invalid_argument("block_starts must begin with 0 and rise");
  return starts;
}

template <class T>
std::shared_ptr<KernelStore> dense_store(const Matrix<T>& x, const Kernel& kernel,
                                         std::size_t budget,
                                         const std::vector<std::size_t>& starts) {
  const nb::gil_scoped_release release;
  return std::make_shared<KernelStore>(points_source(view(x), kernel), budget,
                                       checked(starts, x.shape(0)));
}

}  // namespace

NB_MODULE(_core, m) {
  m.doc() = "The C++ core of onefit: kernel rows, the dual problem and its solver.";

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
      .def_static("from_dense", &dense_store<double>, "x"_a, "kernel"_a, "budget_bytes"_a,
                  "block_starts"_a = whole)
      .def_static("from_dense", &dense_store<float>, "x"_a, "kernel"_a, "budget_bytes"_a,
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
            std::vector<std::int32_t> chosen(rows.data(), rows.data() + rows.shape(0));
            for (const std::int32_t row : chosen) {
              if (row < 0 || static_cast<std::size_t>(row) >= k.shape(0)) {
                throw std::invalid_argument("row " + std::to_string(row) + " is not in the matrix");
              }
            }
            const std::size_t size = chosen.size();
            return std::make_shared<KernelStore>(matrix_source(view(k), std::move(chosen)), budget,
                                                 checked(starts, size));
          },
          "k"_a.noconvert(), "rows"_a, "budget_bytes"_a, "block_starts"_a = whole,
          nb::keep_alive<0, 1>())
      .def_static(
          "from_distances",
          [](const std::shared_ptr<KernelStore>& distances, double gamma, std::size_t budget) {
            return std::make_shared<KernelStore>(distance_source(distances, gamma), budget);
          },
          "distances"_a, "gamma"_a, "budget_bytes"_a)
      .def("__len__", &KernelStore::size)
      .def_prop_ro("capacity", &KernelStore::capacity, "rows that fit into the budget")
      .def_prop_ro("entries_evaluated", &KernelStore::entries_evaluated)
      .def(
          "row",
          [](KernelStore& store, std::int32_t row) {
            if (row < 0 || static_cast<std::size_t>(row) >= store.size()) {
              throw std::out_of_range("row " + std::to_string(row) + " is not in the store");
            }
            const HeldRow held = store.hold(row, store.blocks(0, store.size()), {}, 1);
            auto* copy = new float[store.size()];
            for (std::size_t first = 0; first < store.size();) {
              const Run run = store.run(first, store.size());
              std::copy_n(held.block(run.block) + run.offset, run.length, copy + first);
              first += run.length;
            }
            const nb::capsule owner(copy,
                                    [](void* p) noexcept { delete[] static_cast<float*>(p); });
            return nb::ndarray<nb::numpy, float, nb::ndim<1>>(copy, {store.size()}, owner);
          },
          "row"_a, "A copy of one kernel row.")
      .def("block", &block_of_rows, "rows"_a, "columns"_a,
           "Entries of some rows in some columns, as an array of float32.");

  nb::class_<Problem>(m, "Problem",
                      "min 1/2 b'Kb - linear'b + kink|b|_1, lower <= b <= upper, the sum of b of "
                      "each group fixed by the start.")
      .def(
          "__init__",
          [](Problem* self, const Vector<std::int32_t>& rows, const Vector<double>& linear,
             const Vector<double>& lower, const Vector<double>& upper, double kink,
             std::optional<std::size_t> split, std::optional<Vector<double>> start,
             std::optional<Vector<double>> start_gradient) {
            new (self) Problem(make_problem(rows, linear, lower, upper, kink, split,
                                            std::move(start), std::move(start_gradient)));
          },
          "rows"_a, "linear"_a, "lower"_a, "upper"_a, "kink"_a = 0.0, "split"_a = nb::none(),
          "start"_a = nb::none(), "start_gradient"_a = nb::none())
      .def("__len__", &Problem::size);

  nb::enum_<Status>(m, "Status")
      .value("converged", Status::Converged)
      .value("max_iter", Status::MaxIter)
      .value("stalled", Status::Stalled)
      .value("interrupted", Status::Interrupted);

  nb::class_<Solution>(m, "Solution")
      .def_prop_ro("beta",
                   [](nb::handle self) { return shared(nb::cast<Solution&>(self).beta, self); })
      .def_prop_ro("gradient",
                   [](nb::handle self) { return shared(nb::cast<Solution&>(self).gradient, self); })
      .def_prop_ro("offset", [](const Solution& s) { return s.offset[0]; })
      .def_prop_ro("offsets", [](const Solution& s) { return std::pair(s.offset[0], s.offset[1]); })
      .def_ro("objective", &Solution::objective)
      .def_ro("gap", &Solution::gap)
      .def_ro("n_iter", &Solution::n_iter)
      .def_ro("status", &Solution::status);

  m.def("solve", &solve_from_python, "store"_a, "problems"_a, "tol"_a = 1e-3, "max_iter"_a = -1,
        "shrinking"_a = true, "threads"_a = 1, "forget"_a = false, "progress"_a = nb::none(),
        "Solves each problem to the KKT gap `tol`; Ctrl-C stops it. With `forget`, kernel entries "
        "are given up as soon as no problem of this call needs them. `progress` is called now and "
        "then with the share of the work that is done, and stops it by returning True.");

  m.def(
      "shifted_gradient",
      [](KernelStore& store, const Vector<std::int32_t>& rows, const Vector<double>& gradient,
         const Vector<double>& change) {
        check_rows(store, rows);
        const std::size_t n = rows.shape(0);
        if (gradient.shape(0) != n || change.shape(0) != n) {
          throw std::invalid_argument("rows, gradient and change have different lengths");
        }
        auto* values = new double[n];
        const nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<double*>(p); });
        std::copy_n(gradient.data(), n, values);
        PythonInterrupt interrupt{nb::object(nb::none())};
        {
          const nb::gil_scoped_release release;
          shift_gradient(store, {rows.data(), n}, change.data(), interrupt, values);
        }
        interrupt.rethrow();
        return nb::ndarray<nb::numpy, double, nb::ndim<1>>(values, {n}, owner);
      },
      "store"_a, "rows"_a, "gradient"_a, "change"_a,
      "gradient - K change, over variables that are `rows` of the store.");

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
