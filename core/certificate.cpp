#include "certificate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "active.hpp"

namespace onefit {

std::vector<float> feature_distances(KernelStore& store, const Problem& problem, std::size_t query,
                                     std::size_t threads) {
  ActiveSet all;
  all.set(store, problem.rows, problem.split, 0);
  ActiveRow row;
  all.row(query, {}, threads, {}, row);
  const float* diagonal = store.diagonal();
  const float own = diagonal[problem.rows[query]];
  std::vector<float> distance(problem.size());
  for (const Segment& s : all.segments()) {
    const float* k = row.at(s);
    for (std::size_t p = s.first; p < s.last; ++p) {
      const float other = diagonal[problem.rows[p]];
      // Two units in the last place of what is subtracted, so that it is never too small.
      const float slack = 4.0F * std::numeric_limits<float>::epsilon() * (own + other);
      distance[p] = std::sqrt(std::max(0.0F, own + other - 2.0F * k[p - s.first]) + slack);
    }
  }
  return distance;
}

template <class G>
int proven_sign(const Problem& problem, std::size_t query, const std::vector<double>& beta,
                const G* gradient, double offset, const std::vector<float>& distance) {
  const std::size_t n = problem.size();
  double gap = 0.0;
  double size = 0.0;
  for (std::size_t v = 0; v < n; ++v) {
    const double excess = static_cast<double>(gradient[v]) - offset;
    gap += ((excess > 0.0 ? problem.upper[v] : problem.lower[v]) - beta[v]) * excess;
    size += std::abs(beta[v]);
  }
  if (!(gap < std::numeric_limits<double>::infinity())) return 0;
  // What entries of float32 leave open of a product with beta.
  const double farthest = static_cast<double>(*std::ranges::max_element(distance));
  const double rounding =
      size * farthest * farthest * static_cast<double>(std::numeric_limits<float>::epsilon());
  const double radius = std::sqrt(2.0 * std::max(0.0, gap)) * (1.0 + 1e-6);
  const double own = problem.linear[query] - static_cast<double>(gradient[query]);
  const bool positive = own + offset > 0.0;
  // Free rows turn at about this value: where they may all cross 0, a second pass is in vain.
  const double nearest = static_cast<double>(*std::ranges::min_element(distance));
  if (radius * nearest > std::abs(own + offset)) return 0;
  // The slope at 0 that is least favourable to that sign.
  double slope = 0.0;
  double total = 0.0;
  for (std::size_t v = 0; v < n; ++v) {
    const double c = problem.upper[v] - problem.lower[v];
    total += c;
    const double move = radius * static_cast<double>(distance[v]) + rounding;
    // Below f = turn the row is within its margin if it is of the positive class, above it if not.
    const double turn = static_cast<double>(gradient[v]) + own + (positive ? -move : move);
    if (problem.linear[v] > 0.0) {
      if (positive ? turn > 0.0 : turn >= 0.0) slope -= c;
    } else {
      if (positive ? turn <= 0.0 : turn < 0.0) slope += c;
    }
  }
  // Classes of the same weight may cancel, and the offset is not unique then; sums are rounded.
  const double least = 1e-10 * total;
  if (positive) return slope < -least ? 1 : 0;
  return slope > least ? -1 : 0;
}

template int proven_sign(const Problem&, std::size_t, const std::vector<double>&, const float*,
                         double, const std::vector<float>&);
template int proven_sign(const Problem&, std::size_t, const std::vector<double>&, const double*,
                         double, const std::vector<float>&);

}  // namespace onefit
