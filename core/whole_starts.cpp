#include "whole_starts.hpp"

#include <algorithm>
#include <cmath>

namespace onefit {
namespace {

// Smaller problems are solved from nothing in the time that such a start takes. CPU time of 8 x 8 x
// 5 cells with these starts, of that without: covtype 0.90 (5,000 rows), ida_waveform 0.87,
// ida_splice 0.87, splice 0.90 (1,000 rows), german.numer and covtype 1.0 (1,000 rows), diabetes
// and segment 1.03 (768 and 660).
constexpr std::size_t kRowsFrom = 800;
// So many folds share the fit on all rows, of which each has at least this part.
constexpr std::size_t kFolds = 3;
constexpr double kShare = 0.6;
// Steps go on while no more than this part of the support vectors is free: these move in every
// fold.
constexpr double kMostFree = 0.1;

double free_share(const Chain& chain, double factor, const Solution& solution) {
  std::size_t support = 0;
  std::size_t free = 0;
  for (std::size_t v = 0; v < solution.beta.size(); ++v) {
    const double size = std::abs(solution.beta[v]);
    if (size == 0.0) continue;
    ++support;
    free += size < factor * chain.bounds[static_cast<std::size_t>(chain.all->rows[v])] ? 1 : 0;
  }
  return support > 0 ? static_cast<double>(free) / static_cast<double>(support) : 0.0;
}

}  // namespace

std::vector<std::unique_ptr<WholeStart>> whole_starts(const std::vector<Line>& lines,
                                                      std::size_t threads) {
  // Lines with the same kernel, problems and factors are the folds of a search.
  std::map<std::pair<const KernelStore*, const Problem*>, std::vector<std::size_t>> groups;
  for (std::size_t l = 0; l < lines.size(); ++l) {
    groups[{lines[l].store, lines[l].pairs[0]}].push_back(l);
  }
  std::vector<std::unique_ptr<WholeStart>> found;
  for (const auto& [key, folds] : groups) {
    const Line& first = lines[folds[0]];
    if (folds.size() < kFolds) continue;
    std::vector<double> bounds(first.bounds.begin(), first.bounds.end());
    bool alike = true;
    for (const std::size_t l : folds) {
      alike = alike && lines[l].factors == first.factors && lines[l].pairs == first.pairs;
      for (std::size_t r = 0; r < bounds.size(); ++r) {
        bounds[r] = std::max(bounds[r], lines[l].bounds[r]);
      }
    }
    for (std::size_t p = 0; alike && p < first.pairs.size(); ++p) {
      const Problem& all = *first.pairs[p];
      if (all.size() < kRowsFrom) continue;
      const auto rows_of = [&](const auto& of) {
        return static_cast<double>(std::count_if(all.rows.begin(), all.rows.end(), [&](auto row) {
          return of[static_cast<std::size_t>(row)] > 0.0;
        }));
      };
      const double everyone = rows_of(bounds);
      const bool near = std::all_of(folds.begin(), folds.end(), [&](std::size_t l) {
        return rows_of(lines[l].bounds) >= kShare * everyone;
      });
      if (!near) continue;
      auto whole = std::make_unique<WholeStart>();
      whole->bounds = bounds;
      whole->chain = {first.store, &all, whole->bounds, first.factors};
      whole->lines = folds;
      whole->pair = p;
      found.push_back(std::move(whole));
    }
  }
  // A thread that waits for one of them costs more than it saves.
  if (found.size() < threads) found.clear();
  return found;
}

void solve_whole(WholeStart& whole, const Settings& settings, std::size_t scratch,
                 Interrupt& interrupt) {
  const Chain& chain = whole.chain;
  solve_chain(chain, false, settings, scratch, interrupt, [&](std::size_t k, Solution&& solution) {
    whole.solved.push_back(std::move(solution));
    return free_share(chain, chain.factors[k], whole.solved.back()) > kMostFree;
  });
}

}  // namespace onefit
