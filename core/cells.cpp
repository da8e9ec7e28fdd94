#include "cells.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>

#include "chain_workers.hpp"
#include "kernel_sums.hpp"

namespace onefit {
namespace {

constexpr double kFurther = 0.1;  // of what decides the values: where problems are solved on to

// The solutions of a pair of classes for each factor, and the rows that they are about.
struct SolvedPair {
  std::shared_ptr<const TrainedPart> part;
  std::vector<Solution> steps;
};
using SolvedPairs = std::vector<SolvedPair>;

// The values of the steps [first, last), as `Said` has them.
void set_values(const Line& line, const SolvedPairs& solved, std::size_t first, std::size_t last,
                double* values) {
  const std::size_t n = line.queries.size();
  std::vector<Combination> combinations;
  for (std::size_t step = first; step < last; ++step) {
    for (const SolvedPair& pair : solved) {
      combinations.push_back({pair.part->rows(), pair.steps[step].beta.data()});
    }
  }
  kernel_sums(*line.store, combinations, line.queries, values);
  const double sign = solved.size() == 1 ? -1.0 : 1.0;
  for (std::size_t step = first; step < last; ++step) {
    for (const SolvedPair& pair : solved) {
      for (std::size_t q = 0; q < n; ++q, ++values) {
        *values = sign * (*values + pair.steps[step].offset[0]);
      }
    }
  }
}

// The size that decides most of these values, if it is below the tolerance and can be reached; or
// 0.
double undecided(std::span<const double> values, double tol, const Decided& decided) {
  const auto rank = static_cast<std::ptrdiff_t>(decided.share * static_cast<double>(values.size()));
  if (std::count_if(values.begin(), values.end(), [&](double v) { return std::abs(v) < tol; }) <=
      rank) {
    return 0.0;
  }
  std::vector<double> sizes(values.begin(), values.end());
  for (double& v : sizes) v = std::abs(v);
  std::nth_element(sizes.begin(), sizes.begin() + rank, sizes.end());
  const double needed = sizes[static_cast<std::size_t>(rank)];
  return needed < decided.tightest ? 0.0 : needed;
}

std::int64_t count_right(const Line& line, const double* values) {
  const std::size_t n = line.queries.size();
  const std::size_t classes = line.starts.size() - 1;
  std::int64_t right = 0;
  if (classes == 2) {
    for (std::size_t q = 0; q < n; ++q) right += (values[q] >= 0.0 ? 1 : 0) == line.codes[q];
    return right;
  }
  std::vector<std::int32_t> votes(classes * n, 0);  // class by class
  for (std::size_t i = 0; i < classes; ++i) {
    for (std::size_t j = i + 1; j < classes; ++j, values += n) {
      std::int32_t* first = votes.data() + i * n;
      std::int32_t* second = votes.data() + j * n;
      for (std::size_t q = 0; q < n; ++q) {
        const std::int32_t vote = values[q] > 0.0 ? 1 : 0;
        first[q] += vote;
        second[q] += 1 - vote;
      }
    }
  }
  for (std::size_t q = 0; q < n; ++q) {
    std::size_t best = 0;
    for (std::size_t k = 1; k < classes; ++k) {
      if (votes[k * n + q] > votes[best * n + q]) best = k;
    }
    right += line.codes[q] == static_cast<std::int32_t>(best);
  }
  return right;
}

// What a line has come to when all of its pairs are solved.
class Speaker {
 public:
  Speaker(const Line& line, SolvedPairs& solved, const Settings& settings, const Decided& decided,
          std::size_t scratch, Interrupt& interrupt)
      : line_(line),
        solved_(solved),
        settings_(settings),
        decided_(decided),
        scratch_(scratch),
        interrupt_(interrupt),
        size_(solved.size() * line.queries.size()) {}

  Said run() {
    const std::size_t steps = line_.factors.size();
    Said said;
    said.values.resize(steps * size_);
    set_values(line_, solved_, 0, steps, said.values.data());
    for (std::size_t step = 0; step < steps; ++step) {
      double* values = said.values.data() + step * size_;
      said.n_iter.push_back(0);
      for (const SolvedPair& pair : solved_) {
        said.n_iter.back() += pair.steps[step].n_iter;
        if (pair.steps[step].status == Status::Converged) continue;
        said.unfinished.resize(steps);
        said.unfinished[step].push_back(pair.steps[step]);
      }
      decide(step, values);
      said.right.push_back(count_right(line_, values));
      said.finite.push_back(
          std::all_of(values, values + size_, [](double v) { return std::isfinite(v); }));
    }
    return said;
  }

 private:
  void decide(std::size_t step, double* values) {
    for (;;) {
      const double needed = undecided({values, size_}, settings_.tol, decided_);
      if (needed == 0.0 || !go_on(step, needed)) return;
      set_values(line_, solved_, step, step + 1, values);
      if (undecided({values, size_}, tolerance(needed), decided_) == 0.0) return;
    }
  }

  double tolerance(double needed) const { return kFurther * std::max(needed, decided_.tightest); }

  // Solves a step to a tolerance below its values; whether that was possible.
  bool go_on(std::size_t step, double needed) {
    for (const SolvedPair& pair : solved_) {
      if (pair.steps[step].status != Status::Converged) return false;
    }
    Settings settings = settings_;
    settings.tol = tolerance(needed);
    std::vector<Solution> further;
    for (const SolvedPair& pair : solved_) {
      further.push_back(solve_on(*line_.store, *pair.part, line_.factors[step], pair.steps[step],
                                 settings, scratch_, interrupt_));
      if (further.back().status != Status::Converged) return false;
    }
    for (std::size_t pair = 0; pair < solved_.size(); ++pair) {
      solved_[pair].steps[step] = std::move(further[pair]);
    }
    return true;
  }

  const Line& line_;
  SolvedPairs& solved_;
  const Settings& settings_;
  const Decided& decided_;
  std::size_t scratch_;
  Interrupt& interrupt_;
  std::size_t size_;  // values of a step
};

// The solutions of a line while its pairs are solved.
struct Open {
  SolvedPairs solved;
  std::atomic<std::size_t> left;
};

}  // namespace

void solve_cells(const std::vector<Line>& lines, bool cold, const Settings& settings,
                 const Decided& decided, std::size_t threads, const FinishedLine& finished,
                 Interrupt& interrupt) {
  std::vector<Chain> chains;
  std::vector<std::pair<std::size_t, std::size_t>> places;  // line and pair of each
  const std::unique_ptr<Open[]> open(new Open[lines.size()]);
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const Line& line = lines[l];
    open[l].solved.resize(line.pairs.size());
    open[l].left = line.pairs.size();
    for (std::size_t p = 0; p < line.pairs.size(); ++p) {
      chains.push_back({line.store, line.pairs[p], line.bounds, line.factors});
      places.emplace_back(l, p);
    }
  }
  over_chains<Said>(
      chains, settings, threads,
      [&](std::size_t c, const ChainPlace& place, const auto& hand) -> ChainTask {
        const auto [l, p] = places[c];
        const Chain& chain = chains[c];
        SolvedPair& mine = open[l].solved[p];
        mine.part = std::make_shared<TrainedPart>(*chain.store, *chain.all, chain.bounds);
        mine.steps.reserve(chain.factors.size());
        auto run = std::make_unique<ChainRun>(chain, mine.part, cold, place.settings, place.scratch,
                                              place.interrupt, place.memory,
                                              [&mine](std::size_t, Solution&& solution) {
                                                mine.steps.push_back(std::move(solution));
                                                return false;
                                              });
        const auto ended = [&, l = l, p = p, scratch = place.scratch, inner = place.settings,
                            stop = &place.interrupt] {
          if (open[l].solved[p].steps.size() < lines[l].factors.size()) return;  // interrupted
          if (--open[l].left > 0) return;
          Said said = Speaker(lines[l], open[l].solved, inner, decided, scratch, *stop).run();
          open[l].solved = {};
          said.line = l;
          hand(std::move(said));
        };
        return {std::move(run), ended};
      },
      [&](Said&& said) { return finished(std::move(said)); }, interrupt);
}

}  // namespace onefit
