#include "folds.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "active.hpp"
#include "smo.hpp"
#include "solve_many.hpp"

namespace onefit {
namespace {

// Sums are right to this share of what is summed up.
constexpr double kRounding = 1e-14;

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

double sum(const std::vector<double>& values, Group group) {
  double total = 0.0;
  for (std::size_t v = group.first; v < group.last; ++v) total += values[v];
  return total;
}

// LIBSVM's start: variables at their bounds, one after another, until they sum to `total`.
void fill(const Problem& problem, Group group, double total, std::vector<double>& start) {
  for (std::size_t v = group.first; v < group.last; ++v) {
    start[v] = std::clamp(total, problem.lower[v], problem.upper[v]);
    total -= start[v];
  }
}

// Equal shares of `amount`, none above its room; all of it, if there is room for it.
double share_of(double amount, std::vector<double> room) {
  std::sort(room.begin(), room.end());
  double smaller = 0.0;
  for (std::size_t k = 0; k < room.size(); ++k) {
    const auto left = static_cast<double>(room.size() - k);
    if (smaller + room[k] * left >= amount) return (amount - smaller) / left;
    smaller += room[k];
  }
  return room.empty() ? 0.0 : room.back();
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
  fold.sign_of.reset();
  const std::size_t n = all.size();
  fold.lower.resize(n);
  fold.upper.resize(n);
  for (std::size_t v = 0; v < n; ++v) {
    const double bound = c[static_cast<std::size_t>(all.rows[v])];
    fold.lower[v] = all.lower[v] < 0.0 ? -bound : 0.0;
    fold.upper[v] = all.upper[v] > 0.0 ? bound : 0.0;
  }
  if (all.start.empty()) return;
  double before = 0.0;
  double now = 0.0;
  for (std::size_t v = 0; v < n; ++v) {
    before += all.upper[v] - all.lower[v];
    now += fold.upper[v] - fold.lower[v];
  }
  fold.start.assign(n, 0.0);
  for (const Group group : groups_of(all)) {
    const double share = before > 0.0 ? now / before : 0.0;
    fill(fold, group, sum(all.start, group) * share, fold.start);
  }
  fold.start_gradient = all.start_gradient;  // given where K b is 0, as it then is here
}

void make_feasible(const Problem& problem, const std::vector<bool>& first,
                   std::vector<double>& beta) {
  for (std::size_t v = 0; v < beta.size(); ++v) {
    beta[v] = std::clamp(beta[v], problem.lower[v], problem.upper[v]);
  }
  std::vector<std::size_t> who;
  std::vector<double> room;
  for (const Group group : groups_of(problem)) {
    const double total = problem.start.empty() ? 0.0 : sum(problem.start, group);
    double size = std::abs(total);
    for (std::size_t v = group.first; v < group.last; ++v) size += std::abs(beta[v]);
    const double rounding = kRounding * size;
    for (int turn = 0; turn < 3; ++turn) {
      const double lack = total - sum(beta, group);
      if (std::abs(lack) <= rounding) break;
      who.clear();
      room.clear();
      for (std::size_t v = group.first; v < group.last; ++v) {
        if ((turn == 0 && !first[v]) || (turn == 1 && beta[v] == 0.0)) continue;
        const double distance =
            lack > 0.0 ? problem.upper[v] - beta[v] : beta[v] - problem.lower[v];
        if (distance <= 0.0) continue;
        who.push_back(v);
        room.push_back(distance);
      }
      const double share = share_of(std::abs(lack), room);
      for (std::size_t k = 0; k < who.size(); ++k) {
        const std::size_t v = who[k];
        if (share < room[k]) {
          beta[v] = std::clamp(beta[v] + (lack > 0.0 ? share : -share), problem.lower[v],
                               problem.upper[v]);
        } else {
          beta[v] = lack > 0.0 ? problem.upper[v] : problem.lower[v];
        }
      }
    }
    // What rounding left of a distance to a bound would make a free variable.
    for (std::size_t v = group.first; v < group.last; ++v) {
      if (std::abs(beta[v] - problem.lower[v]) <= rounding) beta[v] = problem.lower[v];
      if (std::abs(beta[v] - problem.upper[v]) <= rounding) beta[v] = problem.upper[v];
    }
  }
}

std::vector<double> average_start(const Problem& problem, const Solution& solved) {
  std::vector<double> beta(problem.size());
  std::vector<bool> free(problem.size());
  for (std::size_t v = 0; v < beta.size(); ++v) {
    const double b = std::clamp(solved.beta[v], problem.lower[v], problem.upper[v]);
    beta[v] = b;
    free[v] = b > problem.lower[v] && b < problem.upper[v] && (problem.kink == 0.0 || b != 0.0);
  }
  make_feasible(problem, free, beta);
  return beta;
}

std::vector<Solution> solve_folds(KernelStore& store, const std::vector<FoldProblem>& problems,
                                  bool same_kernel, const Settings& settings, std::size_t threads,
                                  Interrupt& interrupt) {
  // Folds of the same problem one after another: they need the same rows of the store.
  std::vector<std::size_t> order(problems.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::less<>{}, [&](std::size_t k) { return problems[k].all; });

  const auto one = [&](std::size_t k, const Settings& inner, std::size_t scratch, Interrupt& part,
                       SmoMemory& memory) {
    const FoldProblem& given = problems[order[k]];
    Problem& fold = memory.problem;
    with_bounds(*given.all, given.bounds, fold);
    fold.sign_of = given.sign_of;
    if (const Solution* solved = given.solved) {
      fold.start = average_start(fold, *solved);
      fold.start_gradient.clear();
      if (same_kernel) {
        std::vector<double> change = fold.start;
        for (std::size_t v = 0; v < change.size(); ++v) change[v] -= solved->beta[v];
        fold.start_gradient = solved->gradient;
        memory.activate(store, fold.rows, fold.split, scratch);
        shift_gradient(memory.active, change.data(), part, memory.changes,
                       fold.start_gradient.data());
      }
    }
    return solve(store, fold, inner, scratch, part, memory);
  };
  std::vector<Solution> sorted =
      in_parallel(store, problems.size(), one, settings, threads, interrupt);
  std::vector<Solution> solutions(sorted.size());
  for (std::size_t k = 0; k < sorted.size(); ++k) solutions[order[k]] = std::move(sorted[k]);
  return solutions;
}

}  // namespace onefit
