// Some columns of kernel rows, one after another.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "store.hpp"

namespace onefit {

class Gathered {
 public:
  Gathered(KernelStore& store, std::span<const std::int32_t> columns) : store_(&store) {
    offsets_.reserve(columns.size());
    for (const std::int32_t column : columns) {
      const auto c = static_cast<std::size_t>(column);
      const Run run = store.run(c, c + 1);
      blocks_ |= std::uint64_t{1} << run.block;
      if (parts_.empty() || parts_.back().block != run.block) parts_.push_back({run.block, 0});
      offsets_.push_back(static_cast<std::uint32_t>(run.offset));
      parts_.back().end = offsets_.size();
    }
  }

  // The entries of some rows in the columns, in their order; those that are missing are evaluated.
  template <class T>
  void rows(std::span<const std::int32_t> numbers, T* out) const {
    for (std::size_t r = 0; r < numbers.size(); ++r, out += offsets_.size()) {
      const std::size_t more = std::min(store_->preferred_rows(), numbers.size() - r - 1);
      const HeldRow held = store_->hold(numbers[r], blocks_, numbers.subspan(r + 1, more), 1);
      std::size_t c = 0;
      for (const Part& part : parts_) {
        const float* entries = held.block(part.block);
        for (; c < part.end; ++c) out[c] = static_cast<T>(entries[offsets_[c]]);
      }
    }
  }

 private:
  // Columns up to `end` that lie in one block of the store.
  struct Part {
    std::size_t block;
    std::size_t end;
  };
  KernelStore* store_;
  std::uint64_t blocks_ = 0;
  std::vector<Part> parts_;
  std::vector<std::uint32_t> offsets_;
};

}  // namespace onefit
