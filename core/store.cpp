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
    data_ = other.data_;
  }
  return *this;
}

void HeldRow::release() {
  if (store_ != nullptr) store_->unpin(row_);
  store_ = nullptr;
}

KernelStore::KernelStore(std::unique_ptr<RowSource> source, std::size_t budget_bytes)
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
  rows_ = Buffer<float>(capacity_ * stride_);
  slot_of_ = std::make_unique<std::atomic<std::int32_t>[]>(size_);
  for (std::size_t i = 0; i < size_; ++i) slot_of_[i].store(kAbsent, std::memory_order_relaxed);
  row_in_.assign(capacity_, kNone);
  pins_.assign(capacity_, 0);
  newer_.assign(capacity_, kNone);
  older_.assign(capacity_, kNone);
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
  if (!free_.empty()) {
    const std::int32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  if (fresh_ < capacity_) return static_cast<std::int32_t>(fresh_++);
  for (std::int32_t slot = oldest_; slot != kNone; slot = newer_[static_cast<std::size_t>(slot)]) {
    const auto s = static_cast<std::size_t>(slot);
    if (pins_[s] == 0) {
      slot_of_[static_cast<std::size_t>(row_in_[s])].store(kAbsent, std::memory_order_relaxed);
      unlink(slot);
      return slot;
    }
  }
  return kNone;
}

void KernelStore::unpin(std::int32_t row) {
  const std::lock_guard lock(mutex_);
  const std::int32_t slot = slot_of_[static_cast<std::size_t>(row)].load(std::memory_order_relaxed);
  if (--pins_[static_cast<std::size_t>(slot)] == 0) changed_.notify_one();
}

HeldRow KernelStore::hold(std::int32_t row, std::span<const std::int32_t> also,
                          std::size_t threads) {
  std::atomic<std::int32_t>& mine = slot_of_[static_cast<std::size_t>(row)];
  if (keeps_all_) {
    const std::int32_t slot = mine.load(std::memory_order_acquire);
    if (slot >= 0) return HeldRow(nullptr, row, slot_data(slot));
  }
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::int32_t slot = mine.load(std::memory_order_relaxed);
    if (slot >= 0) {
      if (keeps_all_) return HeldRow(nullptr, row, slot_data(slot));
      ++pins_[static_cast<std::size_t>(slot)];
      unlink(slot);
      push_front(slot);
      return HeldRow(this, row, slot_data(slot));
    }
    if (slot == kBusy) {
      changed_.wait(lock);
      continue;
    }

    std::vector<std::int32_t> batch;
    std::vector<std::int32_t> slots;
    std::vector<float*> out;
    // Rows that only may be needed never take more than a quarter of the slots at a time.
    const std::size_t most = std::max<std::size_t>(1, std::min(kQueries, capacity_ / 4));
    const auto reserve = [&](std::int32_t r) {
      std::atomic<std::int32_t>& state = slot_of_[static_cast<std::size_t>(r)];
      if (batch.size() >= most || state.load(std::memory_order_relaxed) != kAbsent) return;
      const std::int32_t taken = take_slot();
      if (taken == kNone) return;
      state.store(kBusy, std::memory_order_relaxed);
      batch.push_back(r);
      slots.push_back(taken);
      out.push_back(slot_data(taken));
    };
    reserve(row);
    if (batch.empty()) {  // every slot is in use: wait until one is given back
      changed_.wait(lock);
      continue;
    }
    for (const std::int32_t r : also) reserve(r);

    lock.unlock();
    std::exception_ptr failure;
    try {
      source_->evaluate(batch, out.data(), threads);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    for (std::size_t k = 0; k < batch.size(); ++k) {
      std::atomic<std::int32_t>& state = slot_of_[static_cast<std::size_t>(batch[k])];
      if (failure) {
        state.store(kAbsent, std::memory_order_relaxed);
        free_.push_back(slots[k]);
        continue;
      }
      row_in_[static_cast<std::size_t>(slots[k])] = batch[k];
      push_front(slots[k]);
      state.store(slots[k], std::memory_order_release);
    }
    changed_.notify_all();
    if (failure) std::rethrow_exception(failure);
    evaluated_.fetch_add(batch.size(), std::memory_order_relaxed);
  }
}

}  // namespace onefit
