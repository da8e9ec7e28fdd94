#include "active.hpp"

#include <algorithm>

#include "loops.hpp"

namespace onefit {
namespace {

// Runs shorter than this on average cost more in calls than gathering costs in copies.
constexpr std::size_t kShortestRun = 128;
constexpr std::size_t kLeastSlots = 8;

}  // namespace

void ActiveSet::find_segments() {
  segments_.clear();
  for (std::size_t p = 0; p < columns_.size(); ++p) {
    const auto column = static_cast<std::size_t>(columns_[p]);
    if (!segments_.empty()) {
      Segment& s = segments_.back();
      if (s.group == group(p) && s.column + (p - s.first) == column) {
        s.last = p + 1;
        continue;
      }
    }
    segments_.push_back({p, p + 1, column, group(p)});
  }
}

void ActiveSet::set(KernelStore& store, std::span<const std::int32_t> columns, std::size_t split,
                    std::size_t cache_bytes) {
  store_ = &store;
  columns_.assign(columns.begin(), columns.end());
  split_ = split;
  slot_of_.clear();
  find_segments();
  blocks_ = 0;
  for (const Segment& s : segments_) {
    blocks_ |= store.blocks(s.column, s.column + s.last - s.first);
  }
  if (segments_.size() <= 2 || segments_.size() * kShortestRun <= columns_.size()) return;

  segments_.clear();
  if (split_ > 0) segments_.push_back({0, std::min(split_, size()), 0, 0});
  if (split_ < size()) segments_.push_back({split_, size(), split_, 1});
  stride_ = (size() + kLanes - 1) / kLanes * kLanes;
  const std::size_t slots =
      std::min(size(), std::max(cache_bytes / (stride_ * sizeof(float)), kLeastSlots));
  cache_.at_least(slots * stride_);
  slot_of_.assign(size(), -1);
  position_in_.assign(slots, -1);
  next_slot_ = 0;
}

bool ActiveSet::has(std::size_t position) const {
  return (compact() && slot_of_[position] >= 0) || store_->has(columns_[position], blocks_);
}

void ActiveSet::row(std::size_t position, std::span<const std::int32_t> also, std::size_t threads,
                    const ActiveRow* keep, ActiveRow& out) {
  if (!compact()) {
    out.held_ = store_->hold(columns_[position], blocks_, also, threads);
    out.data = out.held_.data();
    return;
  }
  std::int32_t& slot = slot_of_[position];
  if (slot < 0) {
    if (keep != nullptr && cache_.data() + next_slot_ * stride_ == keep->data) {
      next_slot_ = (next_slot_ + 1) % position_in_.size();
    }
    const std::size_t taken = next_slot_;
    next_slot_ = (next_slot_ + 1) % position_in_.size();
    if (position_in_[taken] >= 0) slot_of_[static_cast<std::size_t>(position_in_[taken])] = -1;
    position_in_[taken] = static_cast<std::int32_t>(position);
    slot = static_cast<std::int32_t>(taken);
    float* to = cache_.data() + taken * stride_;
    const HeldRow held = store_->hold(columns_[position], blocks_, also, threads);
    const float* from = held.data();
    for (std::size_t p = 0; p < size(); ++p) to[p] = from[columns_[p]];
  }
  out.data = cache_.data() + static_cast<std::size_t>(slot) * stride_;
}

float ActiveSet::entry(const ActiveRow& row, std::size_t position) const {
  return row.data[compact() ? position : static_cast<std::size_t>(columns_[position])];
}

}  // namespace onefit
