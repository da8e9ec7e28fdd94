#include "folds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "active.hpp"
#include "kkt.hpp"
#include "precise.hpp"
#include "solve_many.hpp"

namespace onefit {
namespace {

// Sums are right to this share of what is summed up.
constexpr double kRounding = 1e-14;
constexpr double kOwnSum = 1e-10;  // of a solution, which has taken many steps

struct Group {
  std::size_t first;
  std::size_t last;
};

std::vector<Group> groups_of(const Problem& problem) {
  std::vector<Group> groups;
  if (problem.split > 0) groups.push_back({0, problem.split});
  if (problem.split < problem.size()) groups.push_back({problem.split, problem.size()});
  return groups;
}

// Of what `of` says of each variable; in four sums, which do not wait for one another.
template <class Of>
double sum_of(Group group, const Of& of) {
  double sums[4] = {};
  std::size_t v = group.first;
  for (; v + 4 <= group.last; v += 4) {
    for (std::size_t k = 0; k < 4; ++k) sums[k] += of(v + k);
  }
  for (; v < group.last; ++v) sums[0] += of(v);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

double sum(const std::vector<double>& values, Group group) {
  return sum_of(group, [&](std::size_t v) { return values[v]; });
}

// LIBSVM's start: variables at their bounds, one after another, until they sum to `total`.
void fill(const Problem& problem, Group group, double total, std::vector<double>& start) {
  for (std::size_t v = group.first; v < group.last; ++v) {
    start[v] = std::clamp(total, problem.lower[v], problem.upper[v]);
    total -= start[v];
  }
}

// Equal shares of `amount`, none above its room; all of it, if there is room for it.
double share_of(double amount, std::span<const double> rooms) {
  const Group all{0, rooms.size()};
  double full = 0.0;  // so many have less room than their share
  double taken = 0.0;
  for (;;) {
    const double open = static_cast<double>(rooms.size()) - full;
    if (open == 0.0) return rooms.empty() ? 0.0 : std::ranges::max(rooms);
    const double share = (amount - taken) / open;
    const double now_full =
        sum_of(all, [&](std::size_t k) { return rooms[k] < share ? 1.0 : 0.0; });
    if (now_full <= full) return share;
    full = now_full;
    taken = sum_of(all, [&](std::size_t k) { return rooms[k] < share ? rooms[k] : 0.0; });
  }
}

// Brings beta, which is within the bounds, to the sums of the problem's start. Returns what each of
// the first is given at first, in the last group.
template <class First>
double reach_sums(const Problem& problem, const First& first, std::vector<double>& beta) {
  double given = 0.0;
  std::vector<std::size_t> who(beta.size());
  std::vector<double> room(beta.size());
  for (const Group group : groups_of(problem)) {
    const double total = problem.start.empty() ? 0.0 : sum(problem.start, group);
    const double size = sum_of(group, [&](std::size_t v) { return std::abs(beta[v]); });
    const double rounding = kRounding * (std::abs(total) + size);
    for (int turn = 0; turn < 3; ++turn) {
      const double lack = total - sum(beta, group);
      if (std::abs(lack) <= rounding) break;
      // Who has room cannot be guessed: no branches.
      std::size_t count = 0;
      for (std::size_t v = group.first; v < group.last; ++v) {
        const bool asked = (turn > 0 || first(v)) & (turn != 1 || beta[v] != 0.0);
        who[count] = v;
        room[count] = lack > 0.0 ? problem.upper[v] - beta[v] : beta[v] - problem.lower[v];
        count += static_cast<std::size_t>(asked & (room[count] > 0.0));
      }
      const double size_of_share = share_of(std::abs(lack), {room.data(), count});
      const double share = lack > 0.0 ? size_of_share : -size_of_share;
      if (turn == 0) given = share;
      for (std::size_t k = 0; k < count; ++k) {
        const std::size_t v = who[k];
        if (size_of_share < room[k]) {
          beta[v] = std::clamp(beta[v] + share, problem.lower[v], problem.upper[v]);
        } else {
          beta[v] = lack > 0.0 ? problem.upper[v] : problem.lower[v];
        }
      }
    }
    // What rounding left of a distance to a bound would make a free variable.
    for (std::size_t v = group.first; v < group.last; ++v) {
      const double b = beta[v];
      const double at_lower = std::abs(b - problem.lower[v]) <= rounding ? problem.lower[v] : b;
      beta[v] = std::abs(b - problem.upper[v]) <= rounding ? problem.upper[v] : at_lower;
    }
  }
  return given;
}

bool is_free(const Problem& problem, std::size_t v, double b) {
  return (b > problem.lower[v]) & (b < problem.upper[v]) & !((problem.kink != 0.0) & (b == 0.0));
}

// What folds of one problem share that start from one solution. Most of its free variables change
// by the same amount in a fold: the gradient of that is this amount times one sum of their kernel
// rows, and only the others need rows of their own. And those that are far from changing in the
// solution are unlikely to do so in a fold.
class CommonChange {
 public:
  void count(const FoldProblem& fold, const KernelStore& store, double tol) {
    if (n_folds_++ > 0) return;
    double squares = 0.0;
    for (const double b : fold.solved->beta) squares += b * b;
    is_believed_ = !rounding_hides(tol, squares, store.largest_diagonal(fold.all->rows));
    find_likely(*fold.all, *fold.solved);
    free_.resize(fold.all->size());
    for (std::size_t v = 0; v < free_.size(); ++v) {
      free_[v] = is_free(*fold.all, v, fold.solved->beta[v]) ? 1.0 : 0.0;
    }
    n_free_ = static_cast<std::size_t>(std::ranges::count(free_, 1.0));
  }

  std::span<const std::int32_t> likely() const { return likely_; }

  // Whether the gradient of the solution may be shifted by float32 entries: else it is computed
  // anew, as that of the fold's own solve is.
  bool is_believed() const { return is_believed_; }

  // Takes `share` from the changes of the free variables, and what that does from the gradient, if
  // it leaves fewer rows to read.
  void take(double share, const std::vector<double>& start, const Solution& solved, ActiveSet& all,
            Interrupt& interrupt, Changes& changes, std::vector<double>& change,
            std::vector<double>& gradient) {
    if (share == 0.0 || n_free_ < kFew) return;
    std::size_t same = 0;
    for (std::size_t v = 0; v < free_.size(); ++v) {
      const bool moved = (free_[v] != 0.0) & (start[v] == solved.beta[v] + share);
      same += static_cast<std::size_t>(moved);
    }
    if (same * n_folds_ <= kWorth * n_free_) return;
    std::call_once(once_, [&] {
      sums_.assign(free_.size(), 0.0);
      shift_gradient(all, free_.data(), interrupt, changes, sums_.data());
    });
    for (std::size_t v = 0; v < free_.size(); ++v) {
      const bool moved = (free_[v] != 0.0) & (start[v] == solved.beta[v] + share);
      change[v] = moved ? 0.0 : change[v] - free_[v] * share;
      gradient[v] += share * sums_[v];
    }
  }

 private:
  // For a C-SVC: free variables, and those that are nearer than kNear to being so. For many
  // variables and long solves only: ten folds with C = 100 of magic take 0.81 of the time with
  // 16,000 rows, 0.85 with 8,000 and 0.92 with 4,000, of a9a 0.94, 0.94 and 1.05; with C = 1 those
  // of 16,000 rows of a9a take 1.06.
  void find_likely(const Problem& all, const Solution& solved) {
    if (all.size() < kManyVariables || all.kink != 0.0 || all.split < all.size() ||
        solved.n_iter < static_cast<std::int64_t>(all.size())) {
      return;
    }
    const double least = solved.offset[0] - kNear;
    const double most = solved.offset[0] + kNear;
    for (std::size_t v = 0; v < all.size(); ++v) {
      const double g = solved.gradient[v];
      const double b = solved.beta[v];
      if ((b < all.upper[v] && g >= least) || (b > all.lower[v] && g <= most)) {
        likely_.push_back(static_cast<std::int32_t>(v));
      }
    }
    if (likely_.size() > kMostLikely * all.size() / 100) likely_.clear();
  }

  static constexpr std::size_t kManyVariables = 5000;
  static constexpr double kNear = 0.1;
  static constexpr std::size_t kMostLikely = 70;  // of a hundred
  static constexpr std::size_t kFew = 64;         // rows are as quickly read as counted
  static constexpr std::size_t kWorth = 2;        // times what the sum costs
  std::size_t n_folds_ = 0;
  std::size_t n_free_ = 0;
  bool is_believed_ = true;
  std::vector<double> free_;  // 1 where it is, else 0
  std::once_flag once_;
  std::vector<double> sums_;  // - K free_
  std::vector<std::int32_t> likely_;
};

bool takes_part(const Problem& problem, std::size_t v) {
  return problem.lower[v] < problem.upper[v];
}

// Whether this is a feasible point of the fold: nothing is beyond its bounds, not even of the
// variables that take no part, and the sums are those of its start.
bool is_of_fold(const Problem& fold, const Solution& solved) {
  int beyond = 0;
  for (std::size_t v = 0; v < fold.size(); ++v) {
    const double b = solved.beta[v];
    beyond |= static_cast<int>(b < fold.lower[v]) | static_cast<int>(b > fold.upper[v]);
  }
  return beyond == 0 && std::ranges::all_of(groups_of(fold), [&](Group group) {
           const double total = fold.start.empty() ? 0.0 : sum(fold.start, group);
           const double size =
               sum_of(group, [&](std::size_t v) { return std::abs(solved.beta[v]); });
           return std::abs(sum(solved.beta, group) - total) <= kOwnSum * (std::abs(total) + size);
         });
}

template <class T>
void keep_those_that_take_part(const Problem& fold, std::vector<T>& values) {
  if (values.empty()) return;
  std::size_t to = 0;
  for (std::size_t v = 0; v < fold.size(); ++v) {
    values[to] = values[v];
    to += static_cast<std::size_t>(takes_part(fold, v));
  }
  values.resize(to);
}

// The solution of a problem without the variables that take no part, over all of them. What the
// gradient of the others is nobody knows.
void put_back(const FoldProblem& given, Solution& solution) {
  if (solution.beta.empty() || solution.gradient.empty()) return;
  const Problem fold = with_bounds(*given.all, given.bounds);
  std::vector<double> beta(fold.size(), 0.0);
  std::vector<double> gradient(fold.size(), std::numeric_limits<double>::quiet_NaN());
  std::size_t from = 0;
  for (std::size_t v = 0; v < fold.size(); ++v) {
    if (!takes_part(fold, v)) continue;
    beta[v] = solution.beta[from];
    gradient[v] = solution.gradient[from++];
  }
  solution.beta = std::move(beta);
  solution.gradient = std::move(gradient);
}

// The numbers of folds of the same problem one after another: they need the same rows of the store.
std::vector<std::size_t> by_problem(const std::vector<FoldProblem>& problems) {
  std::unordered_map<const Problem*, std::size_t> first;
  std::vector<std::size_t> order(problems.size());
  for (std::size_t k = 0; k < problems.size(); ++k) {
    first.emplace(problems[k].all, k);
    order[k] = k;
  }
  std::ranges::sort(order, {}, [&](std::size_t k) { return std::pair(first[problems[k].all], k); });
  return order;
}

}  // namespace

Problem with_bounds(const Problem& all, std::span<const double> c) {
  Problem fold;
  with_bounds(all, c, fold);
  return fold;
}

void with_bounds(const Problem& all, std::span<const double> c, Problem& fold) {
  fold.rows = all.rows;
  fold.linear = all.linear;
  fold.kink = all.kink;
  fold.split = all.split;
  fold.start.clear();
  fold.start_gradient.clear();
  fold.likely = {};
  fold.sign_of.reset();
  fold.nu = all.nu;
  fold.in_one_run = false;
  const std::size_t n = all.size();
  fold.lower.resize(n);
  fold.upper.resize(n);
  for (std::size_t v = 0; v < n; ++v) {
    const double bound = c[static_cast<std::size_t>(all.rows[v])];
    fold.lower[v] = all.lower[v] < 0.0 ? -bound : 0.0;
    fold.upper[v] = all.upper[v] > 0.0 ? bound : 0.0;
  }
  if (all.nu > 0.0) {
    set_nu_start(fold);
    fold.start_gradient = all.start_gradient;  // given where K b is 0, as it then is here
  }
}

void set_nu_start(Problem& problem) {
  const auto second = problem.rows.begin() + static_cast<std::ptrdiff_t>(problem.split);
  const bool two_of_each_row =  // nu-SVR
      std::ranges::equal(problem.rows.begin(), second, second, problem.rows.end());
  double total = 0.0;
  if (two_of_each_row) {
    for (std::size_t v = 0; v < problem.split; ++v) total += problem.upper[v];
    total *= problem.nu * 0.5;
  } else {
    for (std::size_t v = 0; v < problem.size(); ++v) {
      total += problem.nu * (problem.upper[v] - problem.lower[v]);
    }
    total /= 2.0;
  }
  problem.start.assign(problem.size(), 0.0);
  for (const Group group : groups_of(problem)) {
    fill(problem, group, group.first < problem.split ? total : -total, problem.start);
  }
}

void leave_out_others(Problem& fold) {
  std::size_t split = 0;
  for (std::size_t v = 0; v < fold.split; ++v) split += takes_part(fold, v) ? 1 : 0;
  for (auto* values : {&fold.linear, &fold.start, &fold.start_gradient}) {
    keep_those_that_take_part(fold, *values);
  }
  keep_those_that_take_part(fold, fold.rows);
  // Bounds last: they say who takes part.
  std::size_t to = 0;
  for (std::size_t v = 0; v < fold.lower.size(); ++v) {
    fold.lower[to] = fold.lower[v];
    fold.upper[to] = fold.upper[v];
    to += static_cast<std::size_t>(fold.lower[v] < fold.upper[v]);
  }
  fold.lower.resize(to);
  fold.upper.resize(to);
  fold.split = split;
  fold.in_one_run = true;
}

void make_feasible(const Problem& problem, const std::vector<bool>& first,
                   std::vector<double>& beta) {
  for (std::size_t v = 0; v < beta.size(); ++v) {
    beta[v] = std::clamp(beta[v], problem.lower[v], problem.upper[v]);
  }
  reach_sums(problem, [&](std::size_t v) { return first[v]; }, beta);
}

std::vector<double> average_start(const Problem& problem, const Solution& solved, double* share) {
  std::vector<double> beta(problem.size());
  for (std::size_t v = 0; v < beta.size(); ++v) {
    beta[v] = std::clamp(solved.beta[v], problem.lower[v], problem.upper[v]);
  }
  const auto first = [&](std::size_t v) { return is_free(problem, v, beta[v]); };
  const double given = reach_sums(problem, first, beta);
  if (share != nullptr) *share = groups_of(problem).size() == 1 ? given : 0.0;
  return beta;
}

bool has_same_solution(const Problem& fold, const Solution& solved, double tol) {
  if (!fold.start.empty() || solved.status != Status::Converged || !solved.free_rows) return false;
  int beyond = 0;
  for (std::size_t v = 0; v < fold.size(); ++v) {
    const double b = solved.beta[v];
    beyond |= static_cast<int>(b < fold.lower[v]) | static_cast<int>(b > fold.upper[v]);
  }
  return beyond == 0 && conditions<float>(fold, solved.beta, solved.gradient).gap() < tol;
}

std::vector<Solution> solve_folds(KernelStore& store, const std::vector<FoldProblem>& problems,
                                  bool same_kernel, const Settings& settings, std::size_t threads,
                                  Interrupt& interrupt, const Solved& taken, bool alone) {
  const std::vector<std::size_t> order = by_problem(problems);
  std::unordered_map<const Solution*, CommonChange> common;
  for (const FoldProblem& fold : problems) {
    if (fold.solved != nullptr && same_kernel) common[fold.solved].count(fold, store, settings.tol);
  }
  const auto prepare = [&](std::size_t k, const Settings& inner, std::size_t scratch,
                           Interrupt& part, SmoMemory& memory) -> Task {
    const FoldProblem& given = problems[order[k]];
    Problem& fold = memory.problem;
    with_bounds(*given.all, given.bounds, fold);
    fold.sign_of = given.sign_of;
    const Solution* solved = given.solved;
    if (alone && solved == nullptr) {
      leave_out_others(fold);
      return {&fold};
    }
    if (alone && same_kernel && is_of_fold(fold, *solved)) {
      fold.start = solved->beta;
      fold.start_gradient = solved->gradient;
      leave_out_others(fold);
      return {&fold};
    }
    if (solved != nullptr && same_kernel && !given.sign_of &&
        has_same_solution(fold, *solved, inner.tol)) {
      return {nullptr,
              solution_at<float>(fold, solved->beta, solved->gradient, 0, Status::Converged)};
    }
    if (solved != nullptr) {
      double share = 0.0;
      fold.start = average_start(fold, *solved, &share);
      fold.start_gradient.clear();
      if (same_kernel && common.find(solved)->second.is_believed()) {
        memory.change.resize(fold.size());
        for (std::size_t v = 0; v < fold.size(); ++v) {
          memory.change[v] = fold.start[v] - solved->beta[v];
        }
        fold.start_gradient = solved->gradient;
        CommonChange& shared = common.find(solved)->second;
        if (!given.sign_of) fold.likely = shared.likely();
        if (fold.likely.empty()) memory.activate(store, fold.rows, fold.split, scratch);
        ActiveSet& rows = fold.likely.empty() ? memory.active : memory.all_rows(store, fold);
        shared.take(share, fold.start, *solved, rows, part, memory.changes, memory.change,
                    fold.start_gradient);
        shift_gradient(rows, memory.change.data(), part, memory.changes,
                       fold.start_gradient.data());
      }
    }
    return {&fold};
  };
  const auto done = [&](std::size_t k, Solution& solution) {
    const FoldProblem& given = problems[order[k]];
    if (solution.beta.size() < given.all->size()) put_back(given, solution);
    if (taken) taken(order[k], solution);
  };
  std::vector<Solution> sorted =
      in_parallel(store, problems.size(), prepare, done, settings, threads, interrupt);
  if (taken) return {};
  std::vector<Solution> solutions(sorted.size());
  for (std::size_t k = 0; k < sorted.size(); ++k) solutions[order[k]] = std::move(sorted[k]);
  return solutions;
}

}  // namespace onefit
