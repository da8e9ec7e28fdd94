#include "joining.hpp"

#include <cmath>
#include <numeric>

#include "free_set.hpp"
#include "gathered.hpp"

namespace onefit {

namespace {

constexpr std::size_t kInGroup = 16;  // free rows of a mean

double length(const FittedRows& fit, std::size_t k) {
  return std::sqrt(std::max(fit.diagonal[k], 0.0));
}

// The larger of the distances of the rows `others` to the means of two groups of free rows.
std::vector<double> distances(KernelStore& store, const FittedRows& fit,
                              std::span<const std::size_t> free,
                              std::span<const std::size_t> others) {
  const std::size_t size = std::min(kInGroup, free.size() / 2);
  if (size == 0) return std::vector<double>(others.size(), kInfinity);
  std::vector<double> farthest(others.size(), 0.0);
  const Gathered columns(store, fit.rows_of(others));
  std::vector<float> entries(size * others.size());
  std::vector<double> sums(others.size());
  for (std::size_t group = 0; group < 2; ++group) {
    std::vector<std::size_t> members;
    for (std::size_t k = 0; k < size; ++k) {
      members.push_back(free[(2 * k + group) * free.size() / (2 * size)]);
    }
    const std::vector<std::int32_t> rows = fit.rows_of(members);
    std::vector<float> among(size * size);
    Gathered(store, rows).rows(rows, among.data());
    const double within = std::accumulate(among.begin(), among.end(), 0.0);
    columns.rows(rows, entries.data());
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t k = 0; k < size; ++k) {
      const float* of_row = entries.data() + k * sums.size();
      for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += static_cast<double>(of_row[c]);
    }
    const auto count = static_cast<double>(size);
    for (std::size_t c = 0; c < sums.size(); ++c) {
      const double diagonal = fit.diagonal[others[c]];
      const double square = diagonal - 2.0 * sums[c] / count + within / (count * count);
      // Entries are rounded, and no distance is negative.
      const double upper = square + 10.0 * kRounding * std::abs(diagonal);
      farthest[c] = std::max(farthest[c], upper > 0.0 ? std::sqrt(upper) : kInfinity);
    }
  }
  return farthest;
}

}  // namespace

std::vector<JoiningRow> joining_rows(KernelStore& store, const FittedRows& fit,
                                     std::span<const std::size_t> free) {
  std::vector<std::size_t> others;
  for (std::size_t k = 0; k < fit.rows.size(); ++k) {
    if (fit.takes_part(k) && !fit.is_free(k)) others.push_back(k);
  }
  // The shortest free row, or the next if that may be leaving.
  std::vector<double> lengths;
  for (const std::size_t k : free) lengths.push_back(length(fit, k));
  const std::size_t next = lengths.size() > 1 ? 1 : 0;
  std::nth_element(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(next),
                   lengths.end());
  const std::vector<double> to_means = distances(store, fit, free, others);
  std::vector<JoiningRow> found;
  found.reserve(others.size());
  for (std::size_t c = 0; c < others.size(); ++c) {
    const double to_free = length(fit, others[c]) + lengths[next];
    const double distance = std::max(std::min(to_free, to_means[c]), kRounding);
    const Room slack = fit.slack(others[c]);
    found.push_back({others[c], slack, std::min(slack.fall, slack.rise) / distance});
  }
  return found;
}

}  // namespace onefit
