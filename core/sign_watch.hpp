// When a solve of which only a sign is asked looks whether it is proven.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "certificate.hpp"

namespace onefit {

// At the start, then each time the iterations have doubled, from the first of these numbers to the
// second. Most signs are known by then, if they are before the end.
class SignWatch {
 public:
  static constexpr std::int64_t kFirst = 4;
  static constexpr std::int64_t kLast = 64;

  SignWatch(KernelStore& store, const Problem& problem) : store_(store), problem_(problem) {}

  // Until then no variable may be dropped.
  bool looks(std::int64_t n_iter) const { return problem_.sign_of && n_iter <= kLast; }
  bool is_due(std::int64_t n_iter) const { return looks(n_iter) && n_iter >= next_; }

  template <class G>
  bool proves(std::int64_t n_iter, const std::vector<double>& beta, const G* gradient,
              double offset) {
    next_ = std::max(kFirst, 2 * n_iter);
    const std::size_t query = *problem_.sign_of;
    if (distance_.empty()) distance_ = feature_distances(store_, problem_, query, 1);
    return proven_sign(problem_, query, beta, gradient, offset, distance_) != 0;
  }

 private:
  KernelStore& store_;
  const Problem& problem_;
  std::vector<float> distance_;  // of all variables to the one whose sign is asked
  std::int64_t next_ = 0;
};

}  // namespace onefit
