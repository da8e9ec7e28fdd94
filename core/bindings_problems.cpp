// Problems, solutions and the solver for Python; Ctrl-C gets through.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

#include "active.hpp"
#include "bindings.hpp"
#include "certificate.hpp"
#include "folds.hpp"
#include "precise.hpp"
#include "python_interrupt.hpp"
#include "solve_many.hpp"

namespace onefit {

using namespace nb::literals;

namespace {

// ---- arrays -------------------------------------------------------------------------------------

std::vector<double> to_vector(const Vector<double>& a) { return {a.data(), a.data() + a.shape(0)}; }

// A NumPy array that shares the memory of a vector inside `owner`.
nb::ndarray<nb::numpy, const double> shared(const std::vector<double>& values, nb::handle owner) {
  return {values.data(), {values.size()}, owner};
}

// ---- problems -----------------------------------------------------------------------------------

void check_length(std::size_t length, std::size_t n, const char* name) {
  if (length != n) {
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(length) +
                                " entries, rows has " + std::to_string(n));
  }
}

void set_start(Problem& problem, const Vector<double>& start,
               const std::optional<Vector<double>>& gradient) {
  const std::size_t n = problem.size();
  check_length(start.shape(0), n, "start");
  problem.start = to_vector(start);
  for (std::size_t v = 0; v < n; ++v) {
    if (!(problem.start[v] >= problem.lower[v] && problem.start[v] <= problem.upper[v])) {
      throw std::invalid_argument("start leaves the bounds at entry " + std::to_string(v));
    }
  }
  problem.start_gradient.clear();
  if (gradient) {
    check_length(gradient->shape(0), n, "start_gradient");
    problem.start_gradient = to_vector(*gradient);
  }
}

Problem make_problem(const Vector<std::int32_t>& rows, const Vector<double>& linear,
                     const Vector<double>& lower, const Vector<double>& upper, double kink,
                     std::optional<std::size_t> split, std::optional<Vector<double>> start,
                     std::optional<Vector<double>> start_gradient, double nu) {
  Problem problem;
  const std::size_t n = rows.shape(0);
  check_length(linear.shape(0), n, "linear");
  check_length(lower.shape(0), n, "lower");
  check_length(upper.shape(0), n, "upper");
  if (split.value_or(n) > n) throw std::invalid_argument("split is larger than the problem");
  problem.rows.assign(rows.data(), rows.data() + n);
  problem.linear = to_vector(linear);
  problem.lower = to_vector(lower);
  problem.upper = to_vector(upper);
  problem.kink = kink;
  problem.split = split.value_or(n);
  problem.nu = nu;
  if (start) set_start(problem, *start, start_gradient);
  if (nu > 0.0 && !start) {
    set_nu_start(problem);
    if (start_gradient) {
      check_length(start_gradient->shape(0), n, "start_gradient");
      problem.start_gradient = to_vector(*start_gradient);
    }
  } else if (start_gradient && !start) {
    throw std::invalid_argument("start_gradient is given without start");
  }
  return problem;
}

// Signs are proven of C-SVC.
void check_is_c_svc(const Problem& problem, std::size_t variable) {
  if (problem.kink != 0.0 || problem.split != problem.size() || !problem.start.empty() ||
      variable >= problem.size()) {
    throw std::invalid_argument("sign_of is for the variables of a C-SVC");
  }
}

std::vector<Solution> solve_from_python(KernelStore& store, const Problems& list, double tol,
                                        std::int64_t max_iter, bool shrinking, std::size_t threads,
                                        bool forget, nb::object progress) {
  const std::vector<const Problem*> problems = problems_in(list, store);
  const Settings settings = make_settings(tol, max_iter, shrinking);
  PythonInterrupt interrupt(std::move(progress));
  std::vector<Solution> solutions;
  {
    const nb::gil_scoped_release release;
    solutions = solve_many(store, problems, settings, threads, forget, interrupt);
  }
  interrupt.rethrow();
  return solutions;
}

std::vector<Solution> solve_folds_from_python(
    KernelStore& store, const Problems& list, const nb::typed<nb::list, Vector<double>>& bounds,
    const nb::typed<nb::list, std::optional<Solution>>& solutions, bool same_kernel, double tol,
    std::int64_t max_iter, bool shrinking, std::size_t threads,
    const std::vector<std::optional<std::size_t>>& sign_of, bool alone) {
  const std::vector<const Problem*> problems = problems_in(list, store);
  if (!sign_of.empty() && sign_of.size() != problems.size()) {
    throw std::invalid_argument("problems and sign_of have different lengths");
  }
  if (bounds.size() != problems.size() || solutions.size() != problems.size()) {
    throw std::invalid_argument("problems, bounds and solutions have different lengths");
  }
  std::vector<FoldProblem> folds;
  std::vector<Vector<double>> arrays;  // as long as they are used
  for (std::size_t k = 0; k < problems.size(); ++k) {
    arrays.push_back(nb::cast<Vector<double>>(bounds[k]));
    if (arrays.back().shape(0) != store.size()) {
      throw std::invalid_argument("bounds must have an entry for each row of the store");
    }
    const Solution* solved =
        solutions[k].is_none() ? nullptr : &nb::cast<const Solution&>(solutions[k]);
    if (solved != nullptr) check_is_of(*solved, *problems[k]);
    const std::optional<std::size_t> asked = sign_of.empty() ? std::nullopt : sign_of[k];
    if (asked) check_is_c_svc(*problems[k], *asked);
    folds.push_back({problems[k], {arrays.back().data(), store.size()}, solved, asked});
  }
  const Settings settings = make_settings(tol, max_iter, shrinking);
  PythonInterrupt interrupt{nb::object(nb::none())};
  std::vector<Solution> result;
  {
    const nb::gil_scoped_release release;
    result = solve_folds(store, folds, same_kernel, settings, threads, interrupt, {}, alone);
  }
  interrupt.rethrow();
  return result;
}

Solution solve_precisely_from_python(const KernelStore& store, const Problem& problem, double tol,
                                     std::int64_t max_iter) {
  check_rows(store, problem.rows);
  if (!can_solve_precisely(problem.size())) {
    throw std::invalid_argument("too many variables for entries in double precision");
  }
  std::vector<double> start = problem.start;
  start.resize(problem.size(), 0.0);
  PythonInterrupt interrupt{nb::object(nb::none())};
  std::optional<Solution> solution;
  {
    const nb::gil_scoped_release release;
    solution = solve_precisely(store, problem, make_settings(tol, max_iter, true), std::move(start),
                               0, interrupt);
  }
  interrupt.rethrow();
  return std::move(*solution);
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> owned(std::vector<double> values) {
  auto* kept = new std::vector<double>(std::move(values));
  const nb::capsule owner(kept,
                          [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return {kept->data(), {kept->size()}, owner};
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> feasible(const Problem& problem,
                                                     const Vector<double>& beta,
                                                     const Vector<bool>& first) {
  if (beta.shape(0) != problem.size() || first.shape(0) != problem.size()) {
    throw std::invalid_argument("beta and first must have an entry for each variable");
  }
  std::vector<double> values = to_vector(beta);
  make_feasible(problem, std::vector<bool>(first.data(), first.data() + first.shape(0)), values);
  return owned(std::move(values));
}

}  // namespace

std::vector<const Problem*> problems_in(const Problems& list, const KernelStore& store) {
  std::vector<const Problem*> problems;
  for (const nb::handle item : list) {
    problems.push_back(&nb::cast<const Problem&>(item));
    check_rows(store, problems.back()->rows);
  }
  return problems;
}

Settings make_settings(double tol, std::int64_t max_iter, bool shrinking) {
  Settings settings;
  settings.tol = tol;
  settings.max_iter = max_iter;
  settings.shrinking = shrinking;
  return settings;
}

void bind_problems(nb::module_& m) {
  nb::class_<Problem>(m, "Problem",
                      "min 1/2 b'Kb - linear'b + kink|b|_1, lower <= b <= upper, the sum of b of "
                      "each group fixed by the start.")
      .def(
          "__init__",
          [](Problem* self, const Vector<std::int32_t>& rows, const Vector<double>& linear,
             const Vector<double>& lower, const Vector<double>& upper, double kink,
             std::optional<std::size_t> split, std::optional<Vector<double>> start,
             std::optional<Vector<double>> start_gradient, double nu) {
            new (self) Problem(make_problem(rows, linear, lower, upper, kink, split,
                                            std::move(start), std::move(start_gradient), nu));
          },
          "rows"_a, "linear"_a, "lower"_a, "upper"_a, "kink"_a = 0.0, "split"_a = nb::none(),
          "start"_a = nb::none(), "start_gradient"_a = nb::none(), "nu"_a = 0.0)
      .def("__len__", &Problem::size)
      .def(
          "with_bounds",
          [](const Problem& problem, const Vector<double>& bounds) {
            for (const std::int32_t row : problem.rows) {
              if (row < 0 || static_cast<std::size_t>(row) >= bounds.shape(0)) {
                throw std::invalid_argument("bounds must have an entry for each row");
              }
            }
            return with_bounds(problem, {bounds.data(), bounds.shape(0)});
          },
          "bounds"_a, "The problem with another bound for each row of the store, started cold.")
      .def(
          "started",
          [](const Problem& problem, const Vector<double>& start,
             std::optional<Vector<double>> gradient) {
            Problem started = problem;
            set_start(started, start, gradient);
            return started;
          },
          "start"_a, "gradient"_a = nb::none(), "The problem with another start.")
      .def_prop_ro("rows",
                   [](nb::handle self) {
                     const std::vector<std::int32_t>& rows = nb::cast<Problem&>(self).rows;
                     return nb::ndarray<nb::numpy, const std::int32_t>(rows.data(), {rows.size()},
                                                                       self);
                   })
      .def_prop_ro("linear",
                   [](nb::handle self) { return shared(nb::cast<Problem&>(self).linear, self); })
      .def_prop_ro("lower",
                   [](nb::handle self) { return shared(nb::cast<Problem&>(self).lower, self); })
      .def_prop_ro("upper",
                   [](nb::handle self) { return shared(nb::cast<Problem&>(self).upper, self); })
      .def_ro("kink", &Problem::kink)
      .def_ro("split", &Problem::split)
      .def_prop_ro("two_groups", [](const Problem& p) { return p.split < p.size(); });

  nb::enum_<Status>(m, "Status")
      .value("converged", Status::Converged)
      .value("max_iter", Status::MaxIter)
      .value("stalled", Status::Stalled)
      .value("interrupted", Status::Interrupted)
      .value("sign_proven", Status::SignProven);

  nb::class_<Solution>(m, "Solution")
      .def_prop_ro("beta",
                   [](nb::handle self) { return shared(nb::cast<Solution&>(self).beta, self); })
      .def_prop_ro("gradient",
                   [](nb::handle self) { return shared(nb::cast<Solution&>(self).gradient, self); })
      .def_prop_ro("offset", [](const Solution& s) { return s.offset[0]; })
      .def_prop_ro("offsets", [](const Solution& s) { return std::pair(s.offset[0], s.offset[1]); })
      .def_ro("free_rows", &Solution::free_rows)
      .def_ro("objective", &Solution::objective)
      .def_ro("gap", &Solution::gap)
      .def_ro("n_iter", &Solution::n_iter)
      .def_ro("status", &Solution::status);

  m.def("solve", &solve_from_python, "store"_a, "problems"_a, "tol"_a = 1e-3, "max_iter"_a = -1,
        "shrinking"_a = true, "threads"_a = 1, "forget"_a = false, "progress"_a = nb::none(),
        "Solves each problem to the KKT gap `tol`; Ctrl-C stops it. With `forget`, kernel entries "
        "are given up as soon as no problem of this call needs them. `progress` is called now and "
        "then with the share of the work that is done, and stops it by returning True.");

  m.def("can_solve_precisely", &can_solve_precisely, "n"_a,
        "Whether a problem of so many variables can be solved on entries in double precision.");
  m.def("solve_precisely", &solve_precisely_from_python, "store"_a, "problem"_a, "tol"_a,
        "max_iter"_a = -1,
        "Solves a problem on kernel entries in double precision, from its start.");

  m.def("solve_folds", &solve_folds_from_python, "store"_a, "problems"_a, "bounds"_a, "solutions"_a,
        "same_kernel"_a, "tol"_a = 1e-3, "max_iter"_a = -1, "shrinking"_a = true, "threads"_a = 1,
        "sign_of"_a = std::vector<std::optional<std::size_t>>(), "alone"_a = false,
        "Solves each problem with other bounds, one for each row of the store, from a solution (or "
        "from nothing where it is None); Ctrl-C stops it. same_kernel: the gradients of the "
        "solutions belong to this store. sign_of: for each problem a held-out variable of whose "
        "value only the sign is asked, or None. alone: no bit of a fold that starts from None, or "
        "from a solution of its own, depends on the labels of rows that it holds out; the "
        "gradients of these are NaN.");

  m.def(
      "proven_sign",
      [](KernelStore& store, const Problem& problem, const Solution& solution,
         std::size_t variable) {
        check_rows(store, problem.rows);
        check_is_c_svc(problem, variable);
        check_is_of(solution, problem);
        const nb::gil_scoped_release release;
        return proven_sign(problem, variable, solution.beta, solution.gradient.data(),
                           solution.offset[0], feature_distances(store, problem, variable, 1));
      },
      "store"_a, "problem"_a, "solution"_a, "variable"_a,
      "+1 or -1 where the value of a held-out variable of a C-SVC has that sign at the optimum, 0 "
      "where that is not proven.");

  m.def(
      "rounding_hides",
      [](const KernelStore& store, const Problem& problem, const Solution& solution, double tol) {
        check_rows(store, problem.rows);
        double squares = 0.0;
        for (const double b : solution.beta) squares += b * b;
        return rounding_hides(tol, squares, store.largest_diagonal(problem.rows));
      },
      "store"_a, "problem"_a, "solution"_a, "tol"_a,
      "Whether float32 entries of the kernel are likely to change a gradient of the solution by so "
      "much more than the tolerance that it has to be computed anew.");

  m.def("feasible", &feasible, "problem"_a, "beta"_a, "first"_a,
        "beta within the bounds and with the sums of the problem; what is lacking is spread over "
        "the variables `first` first.");

  m.def(
      "shifted_gradient",
      [](KernelStore& store, const Vector<std::int32_t>& rows, const Vector<double>& gradient,
         const Vector<double>& change) {
        const std::size_t n = rows.shape(0);
        check_rows(store, {rows.data(), n});
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
}

}  // namespace onefit
