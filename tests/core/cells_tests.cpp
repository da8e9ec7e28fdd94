// Cells against what they are by definition: chains, and sums over all rows for every held-out row.
#include <algorithm>

#include "cells.hpp"
#include "check.hpp"

using namespace onefit;
using namespace onefit::testing;

namespace {

constexpr std::size_t kPlenty = std::size_t{1} << 30;
constexpr std::size_t kCols = 3;
const std::vector<double> kFactors = {0.1, 1.0, 20.0};

// Points of classes of different sizes, and the problems of all pairs.
struct Classes {
  std::vector<std::size_t> starts;
  std::vector<double> x;
  std::vector<Problem> problems;
  std::vector<double> bounds;  // every fourth row is held out
  std::vector<std::int32_t> queries;
  std::vector<std::int32_t> codes;

  explicit Classes(std::vector<std::size_t> at) : starts(std::move(at)) {
    const std::size_t n = starts.back();
    x = normal(n * kCols, 3);
    bounds.assign(n, 1.0);
    for (std::size_t k = 0; k + 1 < starts.size(); ++k) {
      for (std::size_t r = starts[k]; r < starts[k + 1]; ++r) {
        x[r * kCols + k % kCols] += 1.0;
        if (r % 4 != 0) continue;
        bounds[r] = 0.0;
        queries.push_back(static_cast<std::int32_t>(r));
        codes.push_back(static_cast<std::int32_t>(k));
      }
    }
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
      for (std::size_t j = i + 1; j + 1 < starts.size(); ++j) {
        Problem p;
        for (const std::size_t k : {i, j}) {
          for (std::size_t r = starts[k]; r < starts[k + 1]; ++r) {
            p.rows.push_back(static_cast<std::int32_t>(r));
            p.linear.push_back(k == i ? 1.0 : -1.0);
            p.lower.push_back(k == i ? 0.0 : -1.0);
            p.upper.push_back(k == i ? 1.0 : 0.0);
          }
        }
        p.split = p.size();
        problems.push_back(std::move(p));
      }
    }
  }

  std::unique_ptr<RowSource> source(double gamma) const {
    return points_source(DenseView<double>{x.data(), starts.back(), kCols},
                         {KernelKind::Rbf, gamma, 0.0, 1});
  }

  Line line(KernelStore& store) const {
    std::vector<const Problem*> pairs;
    for (const Problem& problem : problems) pairs.push_back(&problem);
    return {&store, std::move(pairs), starts, bounds, kFactors, queries, codes};
  }
};

std::vector<Said> run(const std::vector<Line>& lines, const Settings& settings, std::size_t threads,
                      double share = 0.01) {
  std::vector<Said> said(lines.size());
  NeverInterrupt never;
  solve_cells(
      lines, false, settings, {share, 1e-8}, threads,
      [&](Said&& some) {
        said[some.line] = std::move(some);
        return false;
      },
      never);
  return said;
}

// Sums over the variables of each pair, one kernel row at a time.
std::vector<double> values_of(const Line& line, const std::vector<Solution>& of_pairs) {
  const double sign = of_pairs.size() == 1 ? -1.0 : 1.0;
  std::vector<double> values;
  for (std::size_t p = 0; p < of_pairs.size(); ++p) {
    for (const std::int32_t query : line.queries) {
      const HeldRow row = line.store->hold(query, 1, {}, 1);
      double sum = of_pairs[p].offset[0];
      for (std::size_t v = 0; v < line.pairs[p]->size(); ++v) {
        sum += of_pairs[p].beta[v] *
               static_cast<double>(row.block(0)[static_cast<std::size_t>(line.pairs[p]->rows[v])]);
      }
      values.push_back(sign * sum);
    }
  }
  return values;
}

std::int64_t count_right(const Line& line, const double* values) {
  const std::size_t classes = line.starts.size() - 1;
  const std::size_t n = line.queries.size();
  std::int64_t right = 0;
  for (std::size_t q = 0; q < n; ++q) {
    std::vector<int> votes(classes, 0);
    for (std::size_t i = 0, p = 0; i < classes; ++i) {
      for (std::size_t j = i + 1; j < classes; ++j, ++p) {
        const double value = values[p * n + q];
        const bool first = classes == 2 ? value < 0.0 : value > 0.0;
        ++votes[first ? i : j];
      }
    }
    const auto best = std::max_element(votes.begin(), votes.end()) - votes.begin();
    right += best == line.codes[q] ? 1 : 0;
  }
  return right;
}

TEST(cells_say_what_chains_come_to) {
  for (const std::vector<std::size_t>& starts :
       {std::vector<std::size_t>{0, 40, 75}, std::vector<std::size_t>{0, 30, 45, 90, 97}}) {
    const Classes classes(starts);
    KernelStore wide(classes.source(0.2), kPlenty);
    KernelStore narrow(classes.source(2.0), kPlenty);
    const std::vector<Line> lines = {classes.line(wide), classes.line(narrow)};
    Settings settings;
    settings.tol = 1e-5;
    for (const std::size_t threads : {1, 3}) {
      const std::vector<Said> said = run(lines, settings, threads);
      for (std::size_t l = 0; l < lines.size(); ++l) {
        std::vector<Chain> chains;
        for (const Problem* pair : lines[l].pairs) {
          chains.push_back({lines[l].store, pair, lines[l].bounds, kFactors});
        }
        std::vector<std::vector<Solution>> by_step(kFactors.size(),
                                                   std::vector<Solution>(chains.size()));
        NeverInterrupt never;
        solve_chains(
            chains, false, settings, 1,
            [&](std::size_t pair, std::size_t step, Solution&& solution) {
              by_step[step][pair] = std::move(solution);
              return false;
            },
            never);
        const std::size_t size = lines[l].pairs.size() * lines[l].queries.size();
        CHECK(said[l].values.size() == size * kFactors.size());
        CHECK(said[l].unfinished.empty());
        for (std::size_t step = 0; step < kFactors.size(); ++step) {
          const std::vector<double> expected = values_of(lines[l], by_step[step]);
          const double* found = said[l].values.data() + step * size;
          for (std::size_t k = 0; k < size; ++k) CHECK(std::abs(found[k] - expected[k]) < 1e-4);
          CHECK(said[l].right[step] == count_right(lines[l], found));
          CHECK(said[l].finite[step]);
          std::int64_t n_iter = 0;
          for (const Solution& solution : by_step[step]) n_iter += solution.n_iter;
          CHECK(said[l].n_iter[step] == n_iter);
        }
      }
    }
  }
}

TEST(cells_whose_values_are_small_are_solved_on) {
  const Classes classes({0, 40, 75});
  KernelStore store(classes.source(0.2), kPlenty);
  Settings coarse;
  coarse.tol = 0.3;
  Settings tight;
  tight.tol = 1e-7;
  const std::vector<Line> lines = {classes.line(store)};
  const Said exact = run(lines, tight, 1)[0];
  const Said left = run(lines, coarse, 1, 1.0)[0];
  const Said decided = run(lines, coarse, 1)[0];
  const auto off = [&](const Said& said) {
    double most = 0.0;
    for (std::size_t k = 0; k < exact.values.size(); ++k) {
      most = std::max(most, std::abs(said.values[k] - exact.values[k]));
    }
    return most;
  };
  CHECK(off(left) > 1e-2);
  CHECK(off(decided) < 1e-2);
  CHECK(decided.n_iter == left.n_iter);  // of the chain alone
}

TEST(cells_tell_what_did_not_converge) {
  const Classes classes({0, 30, 45, 90});
  KernelStore store(classes.source(0.5), kPlenty);
  Settings settings;
  settings.max_iter = 12;
  const Said said = run({classes.line(store)}, settings, 2)[0];
  CHECK(said.unfinished.size() == kFactors.size());
  std::size_t count = 0;
  for (const std::vector<Solution>& some : said.unfinished) {
    for (const Solution& solution : some) CHECK(solution.status == Status::MaxIter);
    count += some.size();
  }
  CHECK(count > 0);
}

// Another class of rows that are held out, and with it another place in the store.
TEST(what_is_held_out_leaves_no_trace) {
  const std::size_t n = 60;
  const std::vector<double> x = normal(n * kCols, 11);
  const auto said_with = [&](const std::vector<int>& labels) {
    std::vector<std::size_t> order;
    std::vector<std::size_t> starts = {0};
    for (int k = 0; k < 3; ++k) {
      for (std::size_t r = 0; r < n; ++r) {
        if (labels[r] == k) order.push_back(r);
      }
      starts.push_back(order.size());
    }
    Classes classes(starts);
    std::vector<std::int32_t> position(n);
    for (std::size_t p = 0; p < n; ++p) {
      std::copy_n(&x[order[p] * kCols], kCols, &classes.x[p * kCols]);
      classes.bounds[p] = order[p] % 4 == 0 ? 0.0 : 1.0;
      position[order[p]] = static_cast<std::int32_t>(p);
    }
    classes.queries.clear();
    for (std::size_t r = 0; r < n; r += 4) classes.queries.push_back(position[r]);
    classes.codes.assign(classes.queries.size(), 0);
    KernelStore store(classes.source(0.4), kPlenty);
    return run({classes.line(store)}, {}, 1)[0].values;
  };
  std::vector<int> labels(n);
  for (std::size_t r = 0; r < n; ++r) labels[r] = x[r * kCols] > 0.4 ? 2 : x[r * kCols] > -0.4;
  std::vector<int> others = labels;
  for (std::size_t r = 0; r < n; r += 4) others[r] = (labels[r] + 1) % 3;
  CHECK(said_with(labels) == said_with(others));
}

TEST(cells_stop_when_they_are_told_to) {
  const Classes classes({0, 30, 45, 90});
  KernelStore store(classes.source(0.5), kPlenty);
  const std::vector<Line> lines(6, classes.line(store));
  NeverInterrupt never;
  std::size_t calls = 0;
  solve_cells(
      lines, false, {}, {0.01, 1e-8}, 1,
      [&](Said&&) {
        ++calls;
        return true;
      },
      never);
  CHECK(calls == 1);
}

}  // namespace
