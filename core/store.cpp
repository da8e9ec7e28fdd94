#include "store.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "loops.hpp"

namespace onefit {
namespace {

// A store has at least this many slots, however small its budget: room for the rows that solvers
// hold (kHeldRows each) and a batch.
constexpr std::size_t kLeastSlots = 64;

// Memory that a store takes before it asks whether more is worth its price; not asked where all
// rows need no more than that of the second.
constexpr std::size_t kFirstBytes = std::size_t{512} << 20;
constexpr std::size_t kAllBytes = std::size_t{1} << 30;

// Entries that are there at the same time when the blocks of a matrix are needed pair by pair.
double entries_at_once(const std::vector<std::size_t>& starts) {
  double own = 0.0;
  double largest = 0.0;
  for (std::size_t k = 0; k + 1 < starts.size(); ++k) {
    const double width = static_cast<double>(starts[k + 1] - starts[k]);
    own += width * width;
    largest = std::max(largest, width);
  }
  return own + (starts.size() > 2 ? 2 * largest * largest : 0.0);
}

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

KernelStore::KernelStore(std::shared_ptr<const RowSource> source, std::size_t budget_bytes,
                         std::vector<std::size_t> starts, std::size_t packed_bytes)
    : source_(std::move(source)),
      size_(source_->size()),
      stride_((size_ + kPanel - 1) / kPanel * kPanel),
      diagonal_(size_) {
  if (size_ == 0) throw std::invalid_argument("a store needs at least one row");
  const std::size_t merged = (starts.size() + kMostBlocks - 1) / kMostBlocks;
  for (std::size_t k = 0; k < starts.size(); k += merged) starts_.push_back(starts[k]);
  starts_.push_back(size_);

  const std::size_t row_bytes = stride_ * sizeof(float);
  const double needed = entries_at_once(starts_) * sizeof(float);
  keeps_all_ = needed <= static_cast<double>(budget_bytes) &&
               (n_blocks() > 1 || size_ * row_bytes <= kAllBytes);
  keeps_all_ = keeps_all_ || size_ <= kLeastSlots;
  // Solvers copy the rows of a shrunk problem; a store that cannot hold all rows leaves a quarter.
  const std::size_t rows = budget_bytes / row_bytes;
  capacity_ = keeps_all_ ? size_ : std::min(size_, std::max(rows - rows / 4, kLeastSlots));
  allowed_ = std::min(capacity_, std::max(kFirstBytes / row_bytes, kLeastSlots));
  const double used =
      keeps_all_ ? needed : static_cast<double>(capacity_) * static_cast<double>(row_bytes);
  spare_bytes_ = static_cast<std::size_t>(std::max(0.0, static_cast<double>(budget_bytes) - used));
  packed_ = keeps_all_ && size_ * row_bytes <= packed_bytes;
  for (std::size_t i = 0; i < size_; ++i) {
    diagonal_[i] = static_cast<float>(source_->diagonal(i));
  }
  check_entries(diagonal_.data(), size_);
  memory_.resize(n_blocks() * n_blocks());
  ready_ = std::make_unique<std::atomic<std::uint64_t>[]>(size_);
  pointers_.assign(size_ * n_blocks(), nullptr);
  busy_.assign(size_, false);
  if (keeps_all_) return;
  slot_of_.assign(size_, kNone);
  seen_.assign(size_, false);
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

std::size_t KernelStore::pair_bytes() const {
  std::size_t widest = 0;
  for (std::size_t k = 0; k < n_blocks(); ++k) {
    widest = std::max(widest, starts_[k + 1] - starts_[k]);
  }
  return 2 * widest * widest * sizeof(float);
}

Run KernelStore::run(std::size_t first, std::size_t last) const {
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), first);
  const auto k = static_cast<std::size_t>(after - starts_.begin()) - 1;
  return {k, first - starts_[k], std::min(last, starts_[k + 1]) - first};
}

void KernelStore::forget(std::size_t block, std::size_t other) {
  const std::lock_guard lock(mutex_);
  if (!keeps_all_ || packed_) return;
  n_forgotten_.fetch_add(1, std::memory_order_relaxed);
  const auto drop = [&](std::size_t rows, std::size_t columns) {
    for (std::size_t r = starts_[rows]; r < starts_[rows + 1]; ++r) {
      ready_[r].fetch_and(~(std::uint64_t{1} << columns), std::memory_order_relaxed);
      blocks_of(r)[columns] = nullptr;
    }
  };
  drop(block, other);
  drop(other, block);
  memory_of(block, other).clear(spare_);
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
  const auto fresh = [&] {
    slots_.push_back(memory_[0].take(stride_, spare_));
    return static_cast<std::int32_t>(slots_.size() - 1);
  };
  if (slots_.size() < allowed_) return fresh();
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
  return slots_.size() < capacity_ ? fresh() : kNone;
}

// Weighs memory against evaluating rows again: once the seconds spent on rows that were there
// before exceed what a row costs more in fresh memory, one more slot is allowed. At worst twice the
// time of the better choice is spent.
void KernelStore::learn(std::size_t rows, double seconds, bool fresh, bool again) {
  const double each = seconds / static_cast<double>(rows);
  double& average = fresh ? fresh_seconds_ : again_seconds_;
  average = average == 0.0 ? each : 0.9 * average + 0.1 * each;
  if (!again || allowed_ == capacity_) return;
  regret_ += each;
  const double price = fresh_seconds_ - again_seconds_;
  if (regret_ > price) {
    ++allowed_;
    regret_ -= std::max(price, 0.0);
  }
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
    const std::size_t own = run(r, r + 1).block;
    for (std::size_t k = 0; k < n_blocks(); ++k) {
      if ((blocks >> k & 1) == 0 || at[k] != nullptr) continue;
      at[k] = memory_of(own, k).take(starts_[k + 1] - starts_[k], spare_);
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
    const std::size_t slots_before = slots_.size();
    const bool evicted = !keeps_all_ && seen_[mine] && slot_of_[mine] == kNone;
    std::vector<std::int32_t> batch;
    batch.reserve(kQueries);
    if (busy_[mine] || !reserve(row, lacking)) {
      changed_.wait(lock);
      continue;
    }
    batch.push_back(row);
    std::exception_ptr failure;
    try {
      // Rows that only may be needed never take more than a quarter of the slots at a time.
      const std::size_t most = std::max<std::size_t>(1, std::min(kQueries, capacity_ / 4));
      for (const std::int32_t other : also) {
        const auto r = static_cast<std::size_t>(other);
        if (batch.size() >= most) break;
        if (busy_[r] || missing(r, std::memory_order_relaxed) != lacking) continue;
        if (!reserve(other, lacking)) break;
        batch.push_back(other);
      }
    } catch (...) {
      failure = std::current_exception();
    }
    const bool fresh = slots_.size() > slots_before;

    lock.unlock();
    const auto start = std::chrono::steady_clock::now();
    try {
      if (!failure) evaluate(batch, lacking, threads);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    lock.lock();
    if (!keeps_all_ && !failure) learn(batch.size(), seconds.count(), fresh, evicted);
    for (const std::int32_t done : batch) {
      const auto r = static_cast<std::size_t>(done);
      busy_[r] = false;
      if (!keeps_all_ && !failure) seen_[r] = true;
      if (!failure) ready_[r].fetch_or(lacking, std::memory_order_release);
    }
    changed_.notify_all();
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace onefit
