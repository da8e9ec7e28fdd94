#include "store.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "loops.hpp"

namespace onefit {
namespace {

// A store has at least this many slots, however small its budget: room for the rows that solvers
// hold (kHeldRows each) and a batch.
constexpr std::size_t kLeastSlots = 64;

}  // namespace

HeldRow& HeldRow::operator=(HeldRow&& other) noexcept {
  if (this != &other) {
    release();
    store_ = std::exchange(other.store_, nullptr);
    row_ = other.row_;
    blocks_ = other.blocks_;
  }
  return *this;
}

void HeldRow::release() {
  if (store_ != nullptr) store_->unpin(row_);
  store_ = nullptr;
}

KernelStore::KernelStore(std::unique_ptr<RowSource> source, std::size_t budget_bytes,
                         std::vector<std::size_t> starts)
    : source_(std::move(source)),
      size_(source_->size()),
      stride_((size_ + kPanel - 1) / kPanel * kPanel),
      diagonal_(size_) {
  const std::size_t row_bytes = stride_ * sizeof(float);
  capacity_ = std::min(size_, std::max(budget_bytes / row_bytes, kLeastSlots));
  keeps_all_ = capacity_ == size_;
  // Solvers copy the rows of a shrunk problem; a store that cannot hold all rows leaves an eighth.
  if (!keeps_all_) capacity_ = std::max(capacity_ - capacity_ / 8, std::min(size_, kLeastSlots));
  const std::size_t used = capacity_ * row_bytes;
  spare_bytes_ = budget_bytes > used ? budget_bytes - used : 0;
  for (std::size_t i = 0; i < size_; ++i) {
    diagonal_[i] = static_cast<float>(source_->diagonal(i));
    if (!std::isfinite(diagonal_[i])) throw std::overflow_error("kernel values overflow");
  }
  const std::size_t merged = (starts.size() + kMostBlocks - 1) / kMostBlocks;
  for (std::size_t k = 0; k < starts.size(); k += merged) starts_.push_back(starts[k]);
  starts_.push_back(size_);

  memory_.set_most(capacity_ * stride_);
  ready_ = std::make_unique<std::atomic<std::uint64_t>[]>(size_);
  pointers_.assign(size_ * n_blocks(), nullptr);
  busy_.assign(size_, false);
  if (keeps_all_) return;
  slot_of_.assign(size_, kNone);
  slots_.reserve(capacity_);
  row_in_.assign(capacity_, kNone);
  pins_.assign(capacity_, 0);
  newer_.assign(capacity_, kNone);
  older_.assign(capacity_, kNone);
}

std::uint64_t KernelStore::blocks(std::size_t first, std::size_t last) const {
  std::uint64_t bits = 0;
  for (std::size_t k = 0; k + 1 < starts_.size(); ++k) {
    if (first < starts_[k + 1] && starts_[k] < last) bits |= std::uint64_t{1} << k;
  }
  return bits;
}

Run KernelStore::run(std::size_t first, std::size_t last) const {
  std::size_t k = 0;
  while (starts_[k + 1] <= first) ++k;
  return {k, first - starts_[k], std::min(last, starts_[k + 1]) - first};
}

void KernelStore::unlink(std::int32_t slot) {
  const auto s = static_cast<std::size_t>(slot);
  if (newer_[s] != kNone) older_[static_cast<std::size_t>(newer_[s])] = older_[s];
  if (older_[s] != kNone) newer_[static_cast<std::size_t>(older_[s])] = newer_[s];
  if (newest_ == slot) newest_ = older_[s];
  if (oldest_ == slot) oldest_ = newer_[s];
  newer_[s] = older_[s] = kNone;
}

void KernelStore::push_front(std::int32_t slot) {
  const auto s = static_cast<std::size_t>(slot);
  older_[s] = newest_;
  newer_[s] = kNone;
  if (newest_ != kNone) newer_[static_cast<std::size_t>(newest_)] = slot;
  newest_ = slot;
  if (oldest_ == kNone) oldest_ = slot;
}

// A slot to write a row into, or kNone when every slot is held or being written.
std::int32_t KernelStore::take_slot() {
  if (slots_.size() < capacity_) {
    slots_.push_back(memory_.take(stride_));
    return static_cast<std::int32_t>(slots_.size() - 1);
  }
  for (std::int32_t slot = oldest_; slot != kNone; slot = newer_[static_cast<std::size_t>(slot)]) {
    const auto s = static_cast<std::size_t>(slot);
    const auto row = static_cast<std::size_t>(row_in_[s]);
    if (pins_[s] == 0 && !busy_[row]) {
      ready_[row].store(0, std::memory_order_relaxed);
      slot_of_[row] = kNone;
      unlink(slot);
      return slot;
    }
  }
  return kNone;
}

void KernelStore::unpin(std::int32_t row) {
  const std::lock_guard lock(mutex_);
  const std::int32_t slot = slot_of_[static_cast<std::size_t>(row)];
  if (--pins_[static_cast<std::size_t>(slot)] == 0) changed_.notify_one();
}

// Gives blocks of a row a place to be written to and marks the row as busy; false when no slot is
// free.
bool KernelStore::reserve(std::int32_t row, std::uint64_t blocks) {
  const auto r = static_cast<std::size_t>(row);
  float** at = blocks_of(r);
  if (keeps_all_) {
    for (std::size_t k = 0; k < n_blocks(); ++k) {
      const bool wanted = (blocks >> k & 1) != 0;
      if (wanted && at[k] == nullptr) at[k] = memory_.take(starts_[k + 1] - starts_[k]);
    }
  } else if (slot_of_[r] == kNone) {
    const std::int32_t slot = take_slot();
    if (slot == kNone) return false;
    slot_of_[r] = slot;
    row_in_[static_cast<std::size_t>(slot)] = row;
    push_front(slot);
    for (std::size_t k = 0; k < n_blocks(); ++k) {
      at[k] = slots_[static_cast<std::size_t>(slot)] + starts_[k];
    }
  }
  busy_[r] = true;
  return true;
}

void KernelStore::evaluate(const std::vector<std::int32_t>& rows, std::uint64_t blocks,
                           std::size_t threads) {
  std::vector<float*> out(rows.size());
  for (std::size_t k = 0; k < n_blocks(); ++k) {
    if ((blocks >> k & 1) == 0) continue;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      out[r] = blocks_of(static_cast<std::size_t>(rows[r]))[k];
    }
    source_->evaluate(rows, out.data(), starts_[k], starts_[k + 1], threads);
    evaluated_.fetch_add(rows.size() * (starts_[k + 1] - starts_[k]), std::memory_order_relaxed);
  }
}

HeldRow KernelStore::hold(std::int32_t row, std::uint64_t blocks,
                          std::span<const std::int32_t> also, std::size_t threads) {
  const auto mine = static_cast<std::size_t>(row);
  const auto missing = [&](std::size_t r, std::memory_order order) {
    return blocks & ~ready_[r].load(order);
  };
  if (keeps_all_ && missing(mine, std::memory_order_acquire) == 0) {
    return HeldRow(nullptr, row, blocks_of(mine));
  }
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::uint64_t lacking = missing(mine, std::memory_order_relaxed);
    if (lacking == 0) {
      if (keeps_all_) return HeldRow(nullptr, row, blocks_of(mine));
      const std::int32_t slot = slot_of_[mine];
      ++pins_[static_cast<std::size_t>(slot)];
      unlink(slot);
      push_front(slot);
      return HeldRow(this, row, blocks_of(mine));
    }
    // Wait while another thread evaluates the row, or while no slot is free for it.
    if (busy_[mine] || !reserve(row, lacking)) {
      changed_.wait(lock);
      continue;
    }
    // Rows that only may be needed never take more than a quarter of the slots at a time.
    std::vector<std::int32_t> batch = {row};
    const std::size_t most = std::max<std::size_t>(1, std::min(kQueries, capacity_ / 4));
    for (const std::int32_t other : also) {
      const auto r = static_cast<std::size_t>(other);
      if (batch.size() >= most) break;
      if (busy_[r] || missing(r, std::memory_order_relaxed) != lacking) continue;
      if (!reserve(other, lacking)) break;
      batch.push_back(other);
    }

    lock.unlock();
    std::exception_ptr failure;
    try {
      evaluate(batch, lacking, threads);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    for (const std::int32_t done : batch) {
      const auto r = static_cast<std::size_t>(done);
      busy_[r] = false;
      if (!failure) ready_[r].fetch_or(lacking, std::memory_order_release);
    }
    changed_.notify_all();
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace onefit
