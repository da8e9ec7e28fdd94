// Which kernel rows a solver will ask for next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "active.hpp"
#include "passes.hpp"
#include "store.hpp"

namespace onefit {

// Rows to evaluate along with one that is missing: the worst violators that the store does not
// have. Finding them takes a pass over all variables, so that several batches are found at a time.
class LikelyRows {
 public:
  LikelyRows() { found_.reserve(2 * kQueries); }

  // For another problem.
  void clear() {
    found_.clear();
    next_ = 0;
    search_from_ = 0;
  }

  template <class G>
  void choose(const KernelStore& store, const ActiveSet& active, std::size_t missing, const G* g,
              const float* up, const float* low, const GroupState<G>* groups, std::int64_t n_iter,
              std::vector<std::int32_t>& also) {
    also.clear();
    const std::size_t count = store.preferred_rows() - 1;
    for (bool searched = false; also.size() < count;) {
      if (next_ == found_.size()) {
        if (searched || n_iter < search_from_) return;
        searched = true;
        search(store, active, g, up, low, groups);
        if (found_.size() < most_found(store)) search_from_ = n_iter + kPause;
        continue;
      }
      const std::int32_t row = found_[next_++].row;
      if (row != active.column(missing) && !store.has(row, active.blocks())) also.push_back(row);
    }
  }

 private:
  // Rows that one search finds: a few batches.
  static constexpr std::size_t kFound = 16;
  static std::size_t most_found(const KernelStore& store) {
    return std::max(kFound, 2 * store.preferred_rows());
  }
  // Iterations without a search after one that found fewer: the rows needed are nearly all there.
  static constexpr std::int64_t kPause = 64;

  struct Likely {
    double violation;
    std::int32_t row;
  };

  template <class G>
  void search(const KernelStore& store, const ActiveSet& active, const G* g, const float* up,
              const float* low, const GroupState<G>* groups) {
    found_.clear();
    next_ = 0;
    G threshold = 0;
    const std::size_t most = most_found(store);
    for (std::size_t p = 0; p < active.size(); ++p) {
      const GroupState<G>& s = groups[active.group(p)];
      const G rise = g[p] + static_cast<G>(up[p]) - s.min_low;
      const G fall = s.max_up - g[p] - static_cast<G>(low[p]);
      const G violation = rise > fall ? rise : fall;
      if (!(violation > threshold) || store.has(active.column(p), active.blocks())) continue;
      if (found_.size() == most) found_.pop_back();
      const Likely entry{static_cast<double>(violation), active.column(p)};
      found_.insert(std::upper_bound(
                        found_.begin(), found_.end(), entry,
                        [](const Likely& a, const Likely& b) { return a.violation > b.violation; }),
                    entry);
      if (found_.size() == most) threshold = static_cast<G>(found_.back().violation);
    }
  }

  std::vector<Likely> found_;
  std::size_t next_ = 0;
  std::int64_t search_from_ = 0;
};

}  // namespace onefit
