#include "pairs.hpp"

#include <algorithm>

namespace onefit {

std::vector<Problem> c_svc_pairs(std::span<const std::size_t> starts,
                                 std::span<const double> bounds) {
  const std::size_t n_classes = starts.size() - 1;
  std::vector<Problem> pairs;
  pairs.reserve(n_classes * (n_classes - 1) / 2);
  for (std::size_t i = 0; i < n_classes; ++i) {
    for (std::size_t j = i + 1; j < n_classes; ++j) {
      Problem& pair = pairs.emplace_back();
      const std::size_t first = starts[i + 1] - starts[i];
      const std::size_t size = first + starts[j + 1] - starts[j];
      pair.rows.resize(size);
      pair.linear.resize(size);
      pair.lower.resize(size);
      pair.upper.resize(size);
      pair.split = size;
      for (std::size_t v = 0; v < size; ++v) {
        const std::size_t row = v < first ? starts[i] + v : starts[j] + (v - first);
        pair.rows[v] = static_cast<std::int32_t>(row);
        pair.linear[v] = v < first ? 1.0 : -1.0;
        pair.lower[v] = v < first ? 0.0 : -bounds[row];
        pair.upper[v] = v < first ? bounds[row] : 0.0;
      }
    }
  }
  return pairs;
}

bool bounds_of_folds(std::span<const double> bounds, std::span<const std::size_t> starts,
                     std::span<const std::int32_t> rows, std::span<const std::size_t> sizes,
                     bool held_out, double* out) {
  const std::size_t n = bounds.size();
  bool all_present = true;
  for (const std::size_t size : sizes) {
    if (held_out) {
      std::ranges::copy(bounds, out);
    } else {
      std::fill_n(out, n, 0.0);
    }
    for (const std::int32_t row : rows.first(size)) {
      out[row] = held_out ? 0.0 : bounds[static_cast<std::size_t>(row)];
    }
    for (std::size_t k = 0; k + 1 < starts.size(); ++k) {
      all_present &=
          std::any_of(out + starts[k], out + starts[k + 1], [](double c) { return c > 0.0; });
    }
    rows = rows.subspan(size);
    out += n;
  }
  return all_present;
}

}  // namespace onefit
