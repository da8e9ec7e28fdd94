#include "fold_paths.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "active.hpp"
#include "blas.hpp"
#include "kkt.hpp"
#include "parallel.hpp"
#include "precise.hpp"

namespace onefit {
namespace {

// When a free variable leaves, its own u changes by |b| / B_ii. Paths look at variables whose u is
// no further from where they would be free than so many times the mean of that, and at least so
// far; columns are made beforehand of those that are nearer, and of so many at a time.
constexpr double kReach = 1.2;
constexpr double kLeastNear = 0.2;
constexpr double kLikely = 0.1;
constexpr std::size_t kAtATime = 16;

// Kernel rows, and columns, that are multiplied at a time.
constexpr std::size_t kRowsAtATime = 64;
constexpr std::size_t kColumns = 256;

// With more free variables an inverse takes longer than an interrupt may wait.
constexpr std::size_t kMostFree = 2000;

// Entries are in single precision: what that adds to a diagonal entry, relative to it.
constexpr double kRidge = 1e-6;

bool is_free(const Problem& problem, const Solution& solution, std::size_t v) {
  const double b = solution.beta[v];
  return b > problem.lower[v] && b < problem.upper[v] && (problem.kink == 0.0 || b != 0.0);
}

// How far u of a variable that is held is from where it would be free.
double distance_to_free(const Problem& problem, const Solution& solution, std::size_t v) {
  const double b = solution.beta[v];
  const double u = solution.gradient[v] - solution.offset[0];
  const double kink = problem.kink;
  double distance = std::numeric_limits<double>::infinity();
  if (!(problem.lower[v] < problem.upper[v])) return distance;
  if (b < problem.upper[v]) distance = (b < 0.0 ? -kink : kink) - u;
  if (b > problem.lower[v]) distance = std::min(distance, u - (b > 0.0 ? kink : -kink));
  return distance;
}

}  // namespace

struct FoldPaths::Fold {
  bool differs = false;                 // from all rows in more than what leaves
  std::vector<std::size_t> leaving;     // variables
  std::vector<std::size_t> places;      // theirs
  std::vector<std::int32_t> at_bounds;  // rows of the store that leave and are not in the pivot
  std::vector<double> coefficients;     // theirs
  std::vector<double> column;           // what they do when they leave, all together

  // What the path came to.
  std::int64_t n_swapped = 0;
  std::vector<double> beta;
};

FoldPaths::FoldPaths(KernelStore& store, const Problem& problem, const Solution& solution,
                     const PathLimits& limits, PathMemory& memory, Interrupt& interrupt)
    : store_(store), problem_(problem), solution_(solution), memory_(memory) {
  const std::size_t n = problem.size();
  if (problem.split != n || !problem.start.empty()) return;
  if (solution.status != Status::Converged) return;
  std::vector<std::pair<double, std::int32_t>> others;
  for (std::size_t v = 0; v < n; ++v) {
    const auto variable = static_cast<std::int32_t>(v);
    if (is_free(problem, solution, v)) {
      order_.push_back(variable);
      rows_.push_back(problem.rows[v]);
    } else {
      others.emplace_back(distance_to_free(problem, solution, v), variable);
    }
  }
  n_free_ = order_.size();
  const std::size_t square = n_free_ * n_free_;
  if (n_free_ == 0 || n_free_ > kMostFree || 3 * square * sizeof(double) > limits.bytes ||
      static_cast<double>(square) * static_cast<double>(n_free_) > limits.products) {
    return;
  }
  const std::vector<std::int32_t> free_rows = rows_;
  Workspace& scratch = memory.scratch;
  scratch.clear();
  auto* kernel = scratch.take<float>(n_free_ * n_free_);
  Gathered(store, free_rows).rows(std::span(free_rows), kernel);
  double diagonal = 0.0;
  for (std::size_t p = 0; p < n_free_; ++p) diagonal += std::abs(kernel[p * n_free_ + p]);
  ridge_ = kRidge * diagonal / static_cast<double>(n_free_);
  for (std::size_t p = 0; p < n_free_; ++p) kernel[p * n_free_ + p] += static_cast<float>(ridge_);
  if (interrupt.requested()) return;
  const FreeSet<double> free = double_free_set(kernel, n_free_, scratch, kRidge / 10);
  border_ = free.border;
  corner_ = free.corner;
  double reach = 0.0;
  for (std::size_t p = 0; p < n_free_; ++p) {
    reach += std::abs(solution.beta[static_cast<std::size_t>(order_[p])]) /
             free.inverse[p * n_free_ + p];
  }
  reach *= kReach / static_cast<double>(n_free_);
  if (!std::isfinite(reach) || !std::isfinite(corner_)) return;

  const double near = std::max(reach, kLeastNear);
  std::erase_if(others, [near](const auto& other) { return other.first > near; });
  std::ranges::sort(others);
  const auto likely = static_cast<std::size_t>(std::ranges::count_if(
      others, [near](const auto& other) { return other.first < kLikely * near; }));
  for (const auto& [distance, variable] : others) {
    order_.push_back(variable);
    rows_.push_back(problem.rows[static_cast<std::size_t>(variable)]);
  }
  place_of_.assign(n, -1);
  for (std::size_t p = 0; p < order_.size(); ++p) {
    place_of_[static_cast<std::size_t>(order_[p])] = static_cast<std::int32_t>(p);
  }
  const std::size_t m = order_.size();
  const std::size_t n_others = others.size();
  const std::size_t fixed = n_free_ * (3 * n_free_ + n_others + m) * sizeof(double);
  if (fixed >= limits.bytes) return;
  if (static_cast<double>(n_free_ * m) * static_cast<double>(n_free_ + likely) > limits.products) {
    return;
  }
  room_ = (limits.bytes - fixed) / (m * sizeof(double));
  columns_ = std::vector<std::atomic<const double*>>(m);

  across_ = memory.kept.take<double>(n_others * n_free_);
  others_.emplace(store, std::span(rows_).subspan(n_free_));
  others_->rows(std::span(free_rows), across_);

  offset_across_.assign(n_others, corner_);
  for (std::size_t p = 0; p < n_free_; ++p) {
    const double* entries = across_ + p * n_others;
    const double border = border_[p];
    for (std::size_t j = 0; j < n_others; ++j) offset_across_[j] += border * entries[j];
  }
  of_free_ = memory.kept.take<double>(n_free_ * m);
  for (std::size_t first = 0; first < n_free_; first += kColumns) {
    if (interrupt.requested()) return;
    given_blas<double>().multiply(n_others, std::min(kColumns, n_free_ - first), n_free_, across_,
                                  n_others, free.inverse + first * n_free_, n_free_,
                                  of_free_ + first * m + n_free_, m);
  }
  for (std::size_t p = 0; p < n_free_; ++p) {
    double* column = of_free_ + p * m;
    const double* inverse = free.inverse + p * n_free_;
    for (std::size_t q = 0; q < n_free_; ++q) column[q] = -inverse[q];
    for (std::size_t j = n_free_; j < m; ++j) column[j] += border_[p];
    columns_[p] = column;
  }
  for (std::size_t first = 0; first < likely && !interrupt.requested(); first += kColumns) {
    make_columns(n_free_ + first, std::min(kColumns, likely - first));
  }
  available_ = true;
}

const double* FoldPaths::at(std::size_t place) {
  if (const double* column = columns_[place]) return column;
  const std::lock_guard lock(mutex_);
  if (columns_[place] == nullptr) {
    // Those that are as likely are needed next.
    std::size_t count = 1;
    while (count < kAtATime && place + count < columns_.size() &&
           columns_[place + count] == nullptr) {
      ++count;
    }
    make_columns(place, count);
  }
  return columns_[place];
}

// Columns of places that are not in the pivot.
void FoldPaths::make_columns(std::size_t first, std::size_t count) {
  const std::size_t m = order_.size();
  const std::size_t n_others = m - n_free_;
  count = std::min(count, room_);
  if (count == 0) return;
  room_ -= count;
  auto* columns = memory_.kept.take<double>(count * m);
  std::vector<double> weights(count * n_free_);
  for (std::size_t c = 0; c < count; ++c) {
    for (std::size_t p = 0; p < n_free_; ++p)
      weights[c * n_free_ + p] = of_free_[p * m + first + c];
  }
  given_blas<double>().multiply(n_others, count, n_free_, across_, n_others, weights.data(),
                                n_free_, columns + n_free_, m);
  std::vector<float> entries(count * n_others);
  others_->rows(std::span<const std::int32_t>(rows_).subspan(first, count), entries.data());
  for (std::size_t c = 0; c < count; ++c) {
    double* column = columns + c * m;
    for (std::size_t p = 0; p < n_free_; ++p) column[p] = -weights[c * n_free_ + p];
    const double offset = offset_across_[first - n_free_ + c];
    for (std::size_t j = 0; j < n_others; ++j) {
      column[n_free_ + j] += offset - static_cast<double>(entries[c * n_others + j]);
    }
    column[first + c] -= ridge_;
    columns_[first + c] = column;
  }
}

// What the coefficients at bounds do when they leave, all of a fold's together.
void FoldPaths::columns_of_folds(std::span<Fold> folds) {
  const std::size_t m = order_.size();
  const std::size_t n_others = m - n_free_;
  const Gathered gathered(store_, rows_);
  Workspace& scratch = memory_.scratch;
  auto* sums = scratch.take<double>(folds.size() * m);  // k, at every place
  std::fill_n(sums, folds.size() * m, 0.0);
  std::vector<double> totals(folds.size(), 0.0);  // s
  std::vector<float> entries(m);
  for (std::size_t f = 0; f < folds.size(); ++f) {
    double* sum = sums + f * m;
    for (std::size_t k = 0; k < folds[f].at_bounds.size(); ++k) {
      gathered.rows(std::span<const std::int32_t>(folds[f].at_bounds).subspan(k, 1),
                    entries.data());
      const double b = folds[f].coefficients[k];
      for (std::size_t p = 0; p < m; ++p) sum[p] += b * static_cast<double>(entries[p]);
      totals[f] += b;
    }
  }
  auto* weights = scratch.take<double>(folds.size() * n_free_);
  auto* changes = scratch.take<double>(folds.size() * n_others);
  given_blas<double>().multiply(n_free_, folds.size(), n_free_, of_free_, m, sums, m, weights,
                                n_free_);
  for (std::size_t f = 0; f < folds.size(); ++f) {
    for (std::size_t p = 0; p < n_free_; ++p) {
      double& weight = weights[f * n_free_ + p];
      weight = totals[f] * border_[p] - weight;  // columns have -B
    }
  }
  given_blas<double>().multiply(n_others, folds.size(), n_free_, across_, n_others, weights,
                                n_free_, changes, n_others);
  for (std::size_t f = 0; f < folds.size(); ++f) {
    if (folds[f].at_bounds.empty()) continue;
    const double* sum = sums + f * m;
    double offset = totals[f] * corner_;
    for (std::size_t p = 0; p < n_free_; ++p) offset += border_[p] * sum[p];
    folds[f].column.resize(m);
    for (std::size_t p = 0; p < n_free_; ++p) folds[f].column[p] = -weights[f * n_free_ + p];
    for (std::size_t j = 0; j < n_others; ++j) {
      folds[f].column[n_free_ + j] = changes[f * n_others + j] + offset - sum[n_free_ + j];
    }
  }
}

void FoldPaths::follow(Path& path, Fold& fold) {
  const auto is_free = [&](std::size_t p) { return p < n_free_; };
  if (fold.at_bounds.empty() && std::ranges::none_of(fold.places, is_free)) {
    fold.beta = solution_.beta;  // nothing moves
    return;
  }
  Leaving leaving{fold.places};
  if (!fold.column.empty()) {
    leaving.column = fold.column.data();
    leaving.factor = -1.0;
  }
  if (path.leave(leaving, order_.size()) != Path::Kind::Reached) return;
  fold.n_swapped = path.n_swapped();
  std::vector<double> beta = solution_.beta;
  for (const std::size_t v : fold.leaving) beta[v] = 0.0;
  std::size_t widest = 0;
  double most = 0.0;
  for (std::size_t p = 0; p < order_.size(); ++p) {
    if (path.leaves(p)) continue;
    const auto v = static_cast<std::size_t>(order_[p]);
    const double b = std::clamp(path.b_of(p), problem_.lower[v], problem_.upper[v]);
    double room = std::min(problem_.upper[v] - b, b - problem_.lower[v]);
    if (problem_.kink > 0.0) room = std::min(room, std::abs(b));  // zero is held, too
    beta[v] = b;
    if (room > most) {
      most = room;
      widest = v;
    }
  }
  // What rounding has left of the sum is for the variable that has most room.
  const double lack = -std::accumulate(beta.begin(), beta.end(), 0.0);
  if (std::abs(lack) >= most) return;
  beta[widest] += lack;
  fold.beta = std::move(beta);
}

// Gradients at the ends, fold by fold: one pass over the kernel rows of all coefficients that have
// changed in any fold serves all of them.
void FoldPaths::find_gradients(std::span<const Fold* const> ended, double* gradients,
                               Interrupt& interrupt) {
  const std::size_t n = problem_.size();
  std::vector<char> has_changed(n, 0);
  for (const Fold* fold : ended) {
    for (std::size_t v = 0; v < n; ++v) has_changed[v] |= fold->beta[v] != solution_.beta[v];
  }
  std::vector<std::size_t> changed;
  for (std::size_t v = 0; v < n; ++v) {
    if (has_changed[v] != 0) changed.push_back(v);
  }
  ActiveSet all;
  all.set(store_, problem_.rows, n, 0);
  ActiveRow row;
  Workspace& scratch = memory_.scratch;
  auto* entries = scratch.take<double>(kRowsAtATime * n);
  auto* changes = scratch.take<double>(kRowsAtATime * ended.size());
  for (std::size_t e = 0; e < ended.size(); ++e) {
    std::ranges::copy(solution_.gradient, gradients + e * n);
  }
  for (std::size_t first = 0; first < changed.size(); first += kRowsAtATime) {
    if (interrupt.requested()) return;
    const std::size_t count = std::min(kRowsAtATime, changed.size() - first);
    for (std::size_t k = 0; k < count; ++k) {
      all.row(changed[first + k], {}, 1, {}, row);
      for (const Segment& s : all.segments()) {
        std::copy_n(row.at(s), s.size(), entries + k * n + s.first);
      }
    }
    for (std::size_t e = 0; e < ended.size(); ++e) {
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t v = changed[first + k];
        changes[e * count + k] = solution_.beta[v] - ended[e]->beta[v];
      }
    }
    given_blas<double>().multiply(n, ended.size(), count, entries, n, changes, count, gradients, n,
                                  1.0);
  }
}

std::vector<std::optional<Solution>> FoldPaths::ends(
    std::span<const std::span<const double>> bounds, double tol, std::size_t threads,
    Interrupt& interrupt) {
  std::vector<std::optional<Solution>> found(bounds.size());
  if (!available()) return found;
  // Ends are as right as float32 entries are: where the solver would not believe in these, it goes
  // on in double precision instead.
  double squares = 0.0;
  for (const double b : solution_.beta) squares += b * b;
  if (rounding_hides(tol, squares, store_.largest_diagonal(problem_.rows))) return found;
  const std::size_t n = problem_.size();
  std::vector<Fold> folds(bounds.size());
  for (std::size_t f = 0; f < folds.size(); ++f) {
    for (std::size_t v = 0; v < n; ++v) {
      const double bound = bounds[f][static_cast<std::size_t>(problem_.rows[v])];
      const double whole = std::max(problem_.upper[v], -problem_.lower[v]);
      if (bound == whole) continue;
      if (bound == 0.0) {
        leave(folds[f], v);
      } else {
        folds[f].differs = true;
      }
    }
  }
  memory_.scratch.clear();
  columns_of_folds(folds);
  const std::size_t users = std::max<std::size_t>(1, std::min(threads, store_.most_users()));
  const PivotedSolution start{&problem_, &solution_, order_, n_free_, order_.size(), ridge_};
  parallel_for(folds.size(), users, [&](std::size_t first, std::size_t last) {
    Path path(start, *this);
    for (std::size_t f = first; f < last; ++f) {
      if (first == 0 && interrupt.requested()) return;
      if (!folds[f].differs) follow(path, folds[f]);
    }
  });
  std::vector<const Fold*> ended;
  for (const Fold& fold : folds) {
    if (!fold.beta.empty()) ended.push_back(&fold);
  }
  auto* gradients = memory_.scratch.take<double>(ended.size() * n);
  find_gradients(ended, gradients, interrupt);
  Problem problem = problem_;
  for (Fold& fold : folds) {
    if (fold.beta.empty() || interrupt.requested()) continue;
    for (const std::size_t v : fold.leaving) problem.lower[v] = problem.upper[v] = 0.0;
    std::vector<double> gradient(gradients, gradients + n);
    gradients += n;
    const Judged reached = conditions<float>(problem, fold.beta, gradient);
    found[static_cast<std::size_t>(&fold - folds.data())] =
        solution_at(problem, std::move(fold.beta), std::move(gradient), reached, fold.n_swapped,
                    reached.gap() < tol ? Status::Converged : Status::MaxIter);
    for (const std::size_t v : fold.leaving) {
      problem.lower[v] = problem_.lower[v];
      problem.upper[v] = problem_.upper[v];
    }
  }
  return found;
}

void FoldPaths::leave(Fold& fold, std::size_t v) const {
  fold.leaving.push_back(v);
  const std::int32_t place = place_of_[v];
  if (place >= 0) fold.places.push_back(static_cast<std::size_t>(place));
  const double b = solution_.beta[v];
  if (b == 0.0 || (place >= 0 && static_cast<std::size_t>(place) < n_free_)) return;
  fold.at_bounds.push_back(problem_.rows[v]);
  fold.coefficients.push_back(b);
}

}  // namespace onefit
