// Kernel rows, evaluated when first asked for and shared by every fit on the same data.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "buffer.hpp"
#include "source.hpp"

namespace onefit {

class KernelStore;

// No user of a store holds more rows than this at a time: those of a sum that are read together
// (kRowsAtOnce). All users together must leave a slot free.
inline constexpr std::size_t kHeldRows = 8;
// Rows that a store without room for all evaluates at a time at most: with 16 instead of 8 fits of
// a9a and w8a took 1.2 and 1.1 times as long.
inline constexpr std::size_t kRowsWithoutRoom = 8;

// A matrix of this size is kept in one piece: forgetting parts of it is not worth the chunks.
inline constexpr std::size_t kPackedBytes = std::size_t{64} << 20;

// A kernel row that will not be evicted while this object lives.
class HeldRow {
 public:
  HeldRow() = default;
  HeldRow(KernelStore* store, std::int32_t row, const float* const* blocks)
      : store_(store), row_(row), blocks_(blocks) {}
  HeldRow(const HeldRow&) = delete;
  HeldRow& operator=(const HeldRow&) = delete;
  HeldRow(HeldRow&& other) noexcept
      : store_(std::exchange(other.store_, nullptr)), row_(other.row_), blocks_(other.blocks_) {}
  HeldRow& operator=(HeldRow&& other) noexcept;
  ~HeldRow() { release(); }

  // The values in the columns of a block.
  const float* block(std::size_t k) const { return blocks_[k]; }

 private:
  void release();
  KernelStore* store_ = nullptr;  // nullptr when there is nothing to give back
  std::int32_t row_ = 0;
  const float* const* blocks_ = nullptr;
};

// Columns that lie in one block: `length` of them, from `offset` in it.
struct Run {
  std::size_t block;
  std::size_t offset;
  std::size_t length;
};

// Rows of the kernel matrix keyed by row number. A small matrix (or one whose blocks are forgotten
// in time) is kept for good, and finding a row takes one atomic load. Otherwise the least recently
// used row makes room: at first beyond kFirstBytes, later beyond what evaluating evicted rows again
// has shown to be worth taking, and never beyond the budget. First touch of memory can cost more
// than evaluating a row, depending on the machine: both are measured. The columns are divided into
// blocks (the classes of a multiclass problem, whose pairs need two of them each), and a row is
// evaluated block by block as they are asked for. Memory is taken as blocks are evaluated, so that
// a store costs what it holds, not what its budget allows. Safe to use from several threads: a row
// that one thread is evaluating is waited for by the others.
class KernelStore {
 public:
  // Throws std::overflow_error when kernel values do not fit into a float32.
  // `starts`: the first column of each block; the first of them is 0. Blocks may be merged. Several
  // blocks are for solvers that work on pairs of them and forget them in time: the budget counts on
  // it. A matrix of up to `packed_bytes` is kept in one piece, and no part of it is ever forgotten.
  KernelStore(std::shared_ptr<const RowSource> source, std::size_t budget_bytes,
              std::vector<std::size_t> starts = {0}, std::size_t packed_bytes = kPackedBytes);

  std::size_t size() const { return size_; }
  // What evaluates the rows: another store may have the same.
  const std::shared_ptr<const RowSource>& source() const { return source_; }
  const float* diagonal() const { return diagonal_.data(); }
  double largest_diagonal(std::span<const std::int32_t> rows) const {
    float largest = 0.0F;
    for (const std::int32_t row : rows) {
      largest = std::max(largest, diagonal_[static_cast<std::size_t>(row)]);
    }
    return static_cast<double>(largest);
  }
  bool is_between_0_and_1() const { return source_->is_between_0_and_1(); }  // every entry
  std::size_t capacity() const { return capacity_; }
  // How many solvers may work on the store at once without running out of slots.
  std::size_t most_users() const { return keeps_all_ ? size_ : capacity_ / (2 * kHeldRows); }
  // Whether no part of it is ever forgotten, nor makes room for another.
  bool is_in_one_piece() const { return packed_; }
  // What the budget leaves beside the rows, for solvers' own copies.
  std::size_t spare_bytes() const { return spare_bytes_; }
  // How many missing rows are best evaluated together: fewer where those that turn out not to be
  // needed take the place of others.
  std::size_t preferred_rows() const {
    return keeps_all_ ? source_->preferred_rows()
                      : std::min(source_->preferred_rows(), kRowsWithoutRoom);
  }
  std::size_t entries_evaluated() const { return evaluated_.load(std::memory_order_relaxed); }

  // The blocks that hold the columns [first, last), as a set of bits, and the first part of these
  // columns that lies in one of them.
  std::uint64_t blocks(std::size_t first, std::size_t last) const;
  Run run(std::size_t first, std::size_t last) const;

  // Whether these blocks of a row can be had without evaluating them. Only a hint when others use
  // the store.
  bool has(std::int32_t row, std::uint64_t blocks) const {
    return (ready_[static_cast<std::size_t>(row)].load(std::memory_order_relaxed) & blocks) ==
           blocks;
  }

  // Gives up what is stored of rows in one block and columns in the other, both ways, for others to
  // use the memory. Nobody may hold such rows. It is evaluated again when asked for again.
  void forget(std::size_t block, std::size_t other);
  // How often something was given up: what was known of where rows are holds until then.
  std::uint64_t n_forgotten() const { return n_forgotten_.load(std::memory_order_relaxed); }
  std::size_t n_blocks() const { return starts_.size() - 1; }
  // Memory for two blocks' rows and columns: what one more pair needs at the same time.
  std::size_t pair_bytes() const;

  // The row with at least these blocks, evaluated first if they are not there; rows of `also` that
  // lack the same blocks are then evaluated with it in the same batch.
  HeldRow hold(std::int32_t row, std::uint64_t blocks, std::span<const std::int32_t> also,
               std::size_t threads);

  // Some columns of rows, evaluated each time they are asked for; nullptr where they have to come
  // with whole rows. What it evaluates is told to `count`.
  std::unique_ptr<ColumnSource> only(std::span<const std::int32_t> columns) const {
    return source_->only(columns);
  }
  void count(std::size_t entries) { evaluated_.fetch_add(entries, std::memory_order_relaxed); }

  // Entries of a row and of the diagonal in double precision, evaluated each time they are asked
  // for.
  void evaluate_exact(std::int32_t row, std::span<const std::int32_t> columns, double* out) const {
    source_->evaluate_exact(row, columns, out);
  }
  double exact_diagonal(std::int32_t row) const {
    return source_->diagonal(static_cast<std::size_t>(row));
  }

 private:
  friend class HeldRow;
  static constexpr std::int32_t kNone = -1;
  static constexpr std::size_t kMostBlocks = 64;

  Arena<float>& memory_of(std::size_t block, std::size_t other) {
    if (packed_) return memory_[0];
    return memory_[std::min(block, other) * n_blocks() + std::max(block, other)];
  }
  float** blocks_of(std::size_t row) { return pointers_.data() + row * n_blocks(); }
  void unpin(std::int32_t row);
  bool reserve(std::int32_t row, std::uint64_t blocks);
  std::int32_t take_slot();
  void evaluate(const std::vector<std::int32_t>& rows, std::uint64_t blocks, std::size_t threads);
  void learn(std::size_t rows, double seconds, bool fresh, bool again);
  void unlink(std::int32_t slot);
  void push_front(std::int32_t slot);

  std::shared_ptr<const RowSource> source_;
  std::size_t size_;
  std::size_t stride_;
  std::size_t capacity_;
  std::size_t spare_bytes_;
  bool keeps_all_;
  bool packed_ = false;
  std::vector<float> diagonal_;
  // Memory of each pair of blocks (or, when rows are evicted, of all slots in the first).
  std::vector<Arena<float>> memory_;
  Arena<float>::Chunks spare_;
  std::atomic<std::size_t> evaluated_{0};
  std::atomic<std::uint64_t> n_forgotten_{0};

  std::vector<std::size_t> starts_;  // of the blocks, and the number of columns

  // Per row: the blocks that are there, where they are, and the slot of the row if it can be
  // evicted. Written under the mutex; a pointer is read only after its block is known to be there.
  std::unique_ptr<std::atomic<std::uint64_t>[]> ready_;
  std::vector<float*> pointers_;
  std::vector<std::int32_t> slot_of_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> busy_;            // per row: some thread is evaluating blocks of it
  std::vector<float*> slots_;         // those that were used so far
  std::size_t allowed_ = 0;           // how many slots may be used at the moment
  std::vector<bool> seen_;            // per row: evaluated before
  double fresh_seconds_ = 0.0;        // a row, written to memory never touched before
  double again_seconds_ = 0.0;        // a row, written over another
  double regret_ = 0.0;               // seconds spent on rows that had been evicted
  std::vector<std::int32_t> row_in_;  // per slot
  std::vector<std::int32_t> pins_;    // per slot
  std::vector<std::int32_t> newer_;   // per slot: doubly linked list, newest first
  std::vector<std::int32_t> older_;
  std::int32_t newest_ = kNone;
  std::int32_t oldest_ = kNone;
};

}  // namespace onefit
