#include "cells.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <utility>

#include "blas.hpp"
#include "chain_workers.hpp"
#include "folds.hpp"
#include "gathered.hpp"
#include "loops.hpp"
#include "smo.hpp"
#include "whole_starts.hpp"

namespace onefit {
namespace {

constexpr std::size_t kBatch = 32;                // that are read together: they stay in the cache
constexpr std::chrono::microseconds kPause{200};  // between looks whether a start is known
constexpr double kFurther = 0.1;  // of what decides the values: where problems are solved on to

using Steps = std::vector<std::vector<Solution>>;  // of each pair

// Sums over support vectors for some steps of all pairs: what `add` adds to the values of a step
// and pair.
class PairSums {
 public:
  PairSums(const Line& line, const Steps& solved, std::size_t first, std::size_t last)
      : line_(line), solved_(solved), first_(first), last_(last) {}

  void add(double* values) {
    if (blas<double>().gemm != nullptr && are_there(line_.queries)) {
      add_products(values);
    } else {
      add_rows_of_support(values);
    }
  }

 private:
  // Whether the store has all of these rows: of a fold it has those that others have asked for.
  bool are_there(std::span<const std::int32_t> rows) const {
    const std::uint64_t blocks = line_.store->blocks(0, line_.store->size());
    return std::all_of(rows.begin(), rows.end(),
                       [&](std::int32_t row) { return line_.store->has(row, blocks); });
  }

  // From the rows of the queries: for each class one product of its coefficients, for all steps and
  // other classes, with kernel values.
  void add_products(double* values) {
    const std::size_t classes = line_.starts.size() - 1;
    const std::size_t n = line_.queries.size();
    const std::size_t combinations = (classes - 1) * (last_ - first_);
    std::vector<std::int32_t> support;  // of all classes
    std::vector<std::size_t> ends = {0};
    std::vector<double> coef;  // combinations x support vectors, by columns
    for (std::size_t k = 0; k < classes; ++k) {
      for (const std::int32_t row : support_of(k)) {
        support.push_back(row);
        for_pairs_of(k, [&](std::size_t pair, std::size_t i) {
          for (std::size_t step = first_; step < last_; ++step) {
            coef.push_back(
                coefficients(k, pair, i, step)[static_cast<std::size_t>(row) - line_.starts[k]]);
          }
        });
      }
      ends.push_back(support.size());
    }
    std::vector<Run> runs;  // one for each support vector
    std::uint64_t blocks = 0;
    for (const std::int32_t row : support) {
      const auto column = static_cast<std::size_t>(row);
      runs.push_back(line_.store->run(column, column + 1));
      blocks |= std::uint64_t{1} << runs.back().block;
    }
    if (support.empty()) return;
    std::vector<double> kernel(support.size() * kBatch);
    std::vector<double> products(combinations * kBatch);
    for (std::size_t q = 0; q < n; q += kBatch) {
      const std::size_t count = std::min(kBatch, n - q);
      for (std::size_t c = 0; c < count; ++c) {
        const HeldRow row = line_.store->hold(line_.queries[q + c], blocks, {}, 1);
        double* to = kernel.data() + c * support.size();
        for (std::size_t s = 0; s < runs.size(); ++s) {
          to[s] = static_cast<double>(row.block(runs[s].block)[runs[s].offset]);
        }
      }
      for (std::size_t k = 0; k < classes; ++k) {
        blas<double>().multiply(
            combinations, count, ends[k + 1] - ends[k], coef.data() + ends[k] * combinations,
            combinations, kernel.data() + ends[k], support.size(), products.data(), combinations);
        std::size_t at = 0;
        for_pairs_of(k, [&](std::size_t pair, std::size_t) {
          for (std::size_t step = first_; step < last_; ++step, ++at) {
            double* sums = values + ((step - first_) * solved_.size() + pair) * n + q;
            for (std::size_t c = 0; c < count; ++c) sums[c] += products[c * combinations + at];
          }
        });
      }
    }
  }

  // From the rows of the support vectors.
  void add_rows_of_support(double* values) {
    const std::size_t n = line_.queries.size();
    const Gathered queries(*line_.store, line_.queries);
    std::vector<float> batch(kBatch * n);
    for (std::size_t k = 0; k + 1 < line_.starts.size(); ++k) {
      const std::vector<std::int32_t> support = support_of(k);
      for (std::size_t s = 0; s < support.size(); s += kBatch) {
        const auto some = std::span(support).subspan(s);
        const std::size_t count = std::min(kBatch, some.size());
        queries.rows(some.first(count), batch.data());
        add_batch(k, some.first(count), batch.data(), values);
      }
    }
  }

  // The coefficients of the rows of class k in a step of a pair that it is in, as the first (i) or
  // second.
  const double* coefficients(std::size_t k, std::size_t pair, std::size_t i, std::size_t step) {
    const double* beta = solved_[pair][step].beta.data();
    return k == i ? beta : beta + (line_.starts[i + 1] - line_.starts[i]);
  }

  template <class Body>
  void for_pairs_of(std::size_t k, const Body& body) {
    const std::size_t classes = line_.starts.size() - 1;
    for (std::size_t i = 0, pair = 0; i < classes; ++i) {
      for (std::size_t j = i + 1; j < classes; ++j, ++pair) {
        if (i == k || j == k) body(pair, i);
      }
    }
  }

  std::vector<std::int32_t> support_of(std::size_t k) {
    const std::size_t start = line_.starts[k];
    std::vector<char> used(line_.starts[k + 1] - start, 0);
    for_pairs_of(k, [&](std::size_t pair, std::size_t i) {
      for (std::size_t step = first_; step < last_; ++step) {
        const double* coef = coefficients(k, pair, i, step);
        for (std::size_t r = 0; r < used.size(); ++r) used[r] |= coef[r] != 0.0 ? 1 : 0;
      }
    });
    std::vector<std::int32_t> rows;
    for (std::size_t r = 0; r < used.size(); ++r) {
      if (used[r] != 0) rows.push_back(static_cast<std::int32_t>(start + r));
    }
    return rows;
  }

  void add_batch(std::size_t k, std::span<const std::int32_t> rows, const float* batch,
                 double* values) {
    const std::size_t n = line_.queries.size();
    for_pairs_of(k, [&](std::size_t pair, std::size_t i) {
      for (std::size_t step = first_; step < last_; ++step) {
        const double* coef = coefficients(k, pair, i, step);
        double* sums = values + ((step - first_) * solved_.size() + pair) * n;
        // Which coefficients are 0 cannot be guessed: this has no branch.
        const float* at[kBatch];
        double factor[kBatch];
        std::size_t used = 0;
        for (std::size_t r = 0; r < rows.size(); ++r) {
          at[used] = batch + r * n;
          factor[used] = coef[static_cast<std::size_t>(rows[r]) - line_.starts[k]];
          used += factor[used] != 0.0 ? 1 : 0;
        }
        loops().accumulate(n, sums, at, factor, used);
      }
    });
  }

  const Line& line_;
  const Steps& solved_;
  std::size_t first_;
  std::size_t last_;
};

// The values of the steps [first, last), as `Said` has them.
void set_values(const Line& line, const Steps& solved, std::size_t first, std::size_t last,
                double* values) {
  const std::size_t n = line.queries.size();
  if (solved.size() == 1) {
    for (std::size_t step = first; step < last; ++step) {
      const Solution& solution = solved[0][step];
      const std::vector<double>& linear = line.pairs[0]->linear;
      for (const std::int32_t query : line.queries) {
        const auto q = static_cast<std::size_t>(query);
        *values++ = solution.gradient[q] - linear[q] - solution.offset[0];
      }
    }
    return;
  }
  double* to = values;
  for (std::size_t step = first; step < last; ++step) {
    for (std::size_t pair = 0; pair < solved.size(); ++pair, to += n) {
      std::fill_n(to, n, solved[pair][step].offset[0]);
    }
  }
  PairSums(line, solved, first, last).add(values);
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
  Speaker(const Line& line, Steps& solved, const Settings& settings, const Decided& decided,
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
      for (const std::vector<Solution>& pair : solved_) {
        said.n_iter.back() += pair[step].n_iter;
        if (pair[step].status == Status::Converged) continue;
        said.unfinished.resize(steps);
        said.unfinished[step].push_back(pair[step]);
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
      if (needed == 0.0 || !solve_on(step, needed)) return;
      set_values(line_, solved_, step, step + 1, values);
      if (undecided({values, size_}, tolerance(needed), decided_) == 0.0) return;
    }
  }

  double tolerance(double needed) const { return kFurther * std::max(needed, decided_.tightest); }

  // Solves a step to a tolerance below its values; whether that was possible.
  bool solve_on(std::size_t step, double needed) {
    for (const std::vector<Solution>& pair : solved_) {
      if (pair[step].status != Status::Converged) return false;
    }
    std::vector<double> bounds(line_.bounds.begin(), line_.bounds.end());
    for (double& bound : bounds) bound *= line_.factors[step];
    Settings settings = settings_;
    settings.tol = tolerance(needed);
    std::vector<Solution> further;
    for (std::size_t pair = 0; pair < solved_.size(); ++pair) {
      Problem problem = with_bounds(*line_.pairs[pair], bounds);
      problem.start = solved_[pair][step].beta;
      problem.start_gradient = solved_[pair][step].gradient;
      further.push_back(solve(*line_.store, problem, settings, scratch_, interrupt_));
      if (further.back().status != Status::Converged) return false;
    }
    for (std::size_t pair = 0; pair < solved_.size(); ++pair) {
      solved_[pair][step] = std::move(further[pair]);
    }
    return true;
  }

  const Line& line_;
  Steps& solved_;
  const Settings& settings_;
  const Decided& decided_;
  std::size_t scratch_;
  Interrupt& interrupt_;
  std::size_t size_;  // values of a step
};

// The solutions of a line while its pairs are solved.
struct Open {
  Steps solved;
  std::vector<WholeStart*> whole;  // where each pair starts, if not from nothing
  std::atomic<std::size_t> left;
};

// Says at its end, whatever that is, that nothing more will be known of a start.
class Announced {
 public:
  explicit Announced(WholeStart& whole) : whole_(whole) {}
  Announced(const Announced&) = delete;
  Announced& operator=(const Announced&) = delete;
  ~Announced() { whole_.is_done = true; }

 private:
  WholeStart& whole_;
};

}  // namespace

void solve_cells(const std::vector<Line>& lines, bool cold, const Settings& settings,
                 const Decided& decided, std::size_t threads, const FinishedLine& finished,
                 Interrupt& interrupt) {
  std::vector<std::unique_ptr<WholeStart>> wholes;
  if (!cold) wholes = whole_starts(lines, threads);
  std::vector<Chain> chains;  // those of all rows first: others wait for them
  for (const std::unique_ptr<WholeStart>& whole : wholes) chains.push_back(whole->chain);
  std::vector<std::pair<std::size_t, std::size_t>> places;  // line and pair of the others
  const std::unique_ptr<Open[]> open(new Open[lines.size()]);
  for (std::size_t l = 0; l < lines.size(); ++l) {
    const Line& line = lines[l];
    open[l].solved.resize(line.pairs.size());
    open[l].whole.resize(line.pairs.size(), nullptr);
    open[l].left = line.pairs.size();
    for (std::size_t p = 0; p < line.pairs.size(); ++p) {
      chains.push_back({line.store, line.pairs[p], line.bounds, line.factors});
      places.emplace_back(l, p);
    }
  }
  for (const std::unique_ptr<WholeStart>& whole : wholes) {
    for (const std::size_t l : whole->lines) open[l].whole[whole->pair] = whole.get();
  }
  over_chains<Said>(
      chains, settings, threads,
      [&](std::size_t c, const ChainPlace& place, const auto& hand) -> ChainTask {
        if (c < wholes.size()) {  // at once: others may wait for it
          const Announced end(*wholes[c]);
          solve_whole(*wholes[c], place.settings, place.scratch, place.interrupt);
          return {};
        }
        const auto [l, p] = places[c - wholes.size()];
        Chain chain = chains[c];
        if (WholeStart* whole = open[l].whole[p]) {
          // Whoever has taken it may have been told to stop before it began.
          while (!whole->is_done) {
            if (place.interrupt.requested()) return {};
            std::this_thread::sleep_for(kPause);
          }
          chain.nearby = whole->solved;
        }
        std::vector<Solution>& mine = open[l].solved[p];
        mine.reserve(lines[l].factors.size());
        auto run = std::make_unique<ChainRun>(std::move(chain), cold, place.settings, place.scratch,
                                              place.interrupt, place.memory,
                                              [&mine](std::size_t, Solution&& solution) {
                                                mine.push_back(std::move(solution));
                                                return false;
                                              });
        const auto ended = [&, l = l, p = p, scratch = place.scratch, inner = place.settings,
                            stop = &place.interrupt] {
          if (open[l].solved[p].size() < lines[l].factors.size()) return;  // interrupted
          if (--open[l].left > 0) return;
          Said said = Speaker(lines[l], open[l].solved, inner, decided, scratch, *stop).run();
          open[l].solved = {};
          said.line = l;
          for (const WholeStart* whole : open[l].whole) {
            if (whole == nullptr || whole->lines[0] != l) continue;
            for (std::size_t k = 0; k < whole->solved.size(); ++k) {
              said.n_iter[k] += whole->solved[k].n_iter;
            }
          }
          hand(std::move(said));
        };
        return {std::move(run), ended};
      },
      [&](Said&& said) { return finished(std::move(said)); }, interrupt);
}

}  // namespace onefit
