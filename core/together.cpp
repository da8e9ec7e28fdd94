#include "together.hpp"

#include <utility>

#include "folds.hpp"

namespace onefit {

FoldSolutions solve_together(KernelStore& store, const std::vector<const Problem*>& problems,
                             std::span<const double> bounds,
                             const std::vector<const Solution*>& solved, const Settings& settings,
                             std::size_t threads, Interrupt& interrupt) {
  const std::size_t n = store.size();
  std::vector<FoldProblem> folds;
  folds.reserve(bounds.size() / n * problems.size());
  for (std::size_t first = 0; first < bounds.size(); first += n) {
    for (std::size_t p = 0; p < problems.size(); ++p) {
      folds.push_back({problems[p], bounds.subspan(first, n), solved[p]});
    }
  }
  FoldSolutions all;
  all.n_problems = problems.size();
  all.solutions = solve_folds(store, folds, true, settings, threads, interrupt);

  std::vector<std::size_t> again;
  std::vector<FoldProblem> cold;
  for (std::size_t k = 0; k < folds.size(); ++k) {
    all.spent.push_back(all.solutions[k].n_iter);
    if (folds[k].solved == nullptr || all.solutions[k].free_rows) continue;
    again.push_back(k);
    cold.push_back({folds[k].all, folds[k].bounds, nullptr});
  }
  if (again.empty()) return all;
  std::vector<Solution> others = solve_folds(store, cold, true, settings, threads, interrupt);
  for (std::size_t k = 0; k < again.size(); ++k) {
    all.spent[again[k]] += others[k].n_iter;
    all.solutions[again[k]] = std::move(others[k]);
  }
  return all;
}

FoldSolutions joined(std::vector<FoldSolutions> parts) {
  FoldSolutions all;
  for (const FoldSolutions& part : parts) all.n_problems += part.n_problems;
  const std::size_t n_folds = parts.empty() ? 0 : parts[0].n_folds();
  for (std::size_t f = 0; f < n_folds; ++f) {
    for (FoldSolutions& part : parts) {
      for (std::size_t k = f * part.n_problems; k < (f + 1) * part.n_problems; ++k) {
        all.solutions.push_back(std::move(part.solutions[k]));
        all.spent.push_back(part.spent[k]);
      }
    }
  }
  return all;
}

}  // namespace onefit
