#include "together.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "folds.hpp"

namespace onefit {
namespace {

// As much memory as this is taken in a chunk, which is kept for the next folds: the first touch of
// fresh pages would cost more than what is written there. Of solutions in many parts each has less.
constexpr std::size_t kLarge = std::size_t{1} << 14;
constexpr std::size_t kLargePart = std::size_t{1} << 20;

std::size_t room_for(std::size_t count, bool is_part) {
  constexpr std::size_t kChunk = kChunkBytes / sizeof(double);
  const std::size_t least = is_part ? kLargePart : kLarge;
  return count * sizeof(double) < least ? count : std::max(count, kChunk);
}

}  // namespace

FoldSolutions::FoldSolutions(std::size_t n_folds, const std::vector<const Problem*>& problems,
                             bool is_part)
    : n_problems_(problems.size()), kept_(n_folds * problems.size()) {
  std::size_t total = 0;
  for (const Problem* problem : problems) {
    sizes_.push_back(problem->size());
    total += problem->size();
  }
  memory_.emplace_back(room_for(2 * n_folds * total, is_part));
  double* place = memory_[0].data();
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    places_.push_back(place);
    place += 2 * sizes_[k % n_problems_];
  }
}

void FoldSolutions::keep(std::size_t k, Solution& solution) {
  KeptSolution& kept = kept_[k];
  const std::size_t size = sizes_[k % n_problems_];
  const std::vector<double> beta = std::exchange(solution.beta, {});
  const std::vector<double> gradient = std::exchange(solution.gradient, {});
  kept.ends = solution;
  kept.spent += solution.n_iter;
  if (beta.size() != size || gradient.size() != size) return;  // never begun
  std::ranges::copy(beta, places_[k]);
  std::ranges::copy(gradient, places_[k] + size);
  kept.beta = {places_[k], size};
  kept.gradient = {places_[k] + size, size};
}

Solution FoldSolutions::whole(std::size_t k) const {
  Solution solution = kept_[k].ends;
  solution.beta.assign(kept_[k].beta.begin(), kept_[k].beta.end());
  solution.gradient.assign(kept_[k].gradient.begin(), kept_[k].gradient.end());
  return solution;
}

FoldSolutions solve_together(KernelStore& store, const std::vector<const Problem*>& problems,
                             std::span<const double> bounds,
                             const std::vector<const Solution*>& solved,
                             const std::vector<FoldPaths*>& paths, const Settings& settings,
                             std::size_t threads, Interrupt& interrupt) {
  const std::size_t n = store.size();
  const std::size_t n_problems = problems.size();
  FoldSolutions all(bounds.size() / n, problems, store.n_blocks() > 1);
  std::vector<std::span<const double>> of_folds;
  for (std::size_t first = 0; first < bounds.size(); first += n) {
    of_folds.push_back(bounds.subspan(first, n));
  }
  std::vector<FoldProblem> folds;
  for (std::size_t k = 0; k < all.size(); ++k) {
    folds.push_back({problems[k % n_problems], of_folds[k / n_problems], solved[k % n_problems]});
  }

  std::vector<std::size_t> numbers;  // of what is left to solve
  std::vector<FoldProblem> left;
  std::vector<std::vector<std::optional<Solution>>> ends(n_problems);
  for (std::size_t p = 0; p < n_problems; ++p) {
    ends[p].resize(of_folds.size());
    if (paths[p] != nullptr && !interrupt.requested()) {
      ends[p] = paths[p]->ends(of_folds, settings.tol, threads, interrupt);
    }
    for (std::size_t f = 0; f < of_folds.size(); ++f) {
      const std::size_t k = f * n_problems + p;
      std::optional<Solution>& end = ends[p][f];
      if (end && end->status == Status::Converged) {
        all.keep(k, *end);
        continue;
      }
      numbers.push_back(k);
      left.push_back(folds[k]);
      if (end) left.back().solved = &*end;
    }
  }
  solve_folds(store, left, true, settings, threads, interrupt,
              [&](std::size_t k, Solution& solution) { all.keep(numbers[k], solution); });

  std::vector<std::size_t> again;
  std::vector<FoldProblem> cold;
  for (std::size_t k = 0; k < folds.size(); ++k) {
    if (folds[k].solved == nullptr || all[k].ends.free_rows) continue;
    again.push_back(k);
    cold.push_back({folds[k].all, folds[k].bounds, nullptr});
  }
  if (again.empty()) return all;
  solve_folds(store, cold, true, settings, threads, interrupt,
              [&](std::size_t k, Solution& solution) { all.keep(again[k], solution); });
  return all;
}

FoldSolutions joined(std::vector<FoldSolutions> parts) {
  FoldSolutions all;
  const std::size_t n_folds = parts.empty() ? 0 : parts[0].n_folds();
  for (std::size_t f = 0; f < n_folds; ++f) {
    for (const FoldSolutions& part : parts) {
      for (std::size_t k = f * part.n_problems_; k < (f + 1) * part.n_problems_; ++k) {
        all.kept_.push_back(part.kept_[k]);
        all.places_.push_back(part.places_[k]);
      }
    }
  }
  for (FoldSolutions& part : parts) {
    all.n_problems_ += part.n_problems_;
    std::ranges::copy(part.sizes_, std::back_inserter(all.sizes_));
    std::ranges::move(part.memory_, std::back_inserter(all.memory_));
  }
  return all;
}

}  // namespace onefit
