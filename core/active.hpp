// The variables a solver is working on, and the kernel rows restricted to them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "interrupt.hpp"
#include "loops.hpp"
#include "store.hpp"

namespace onefit {

// Positions [first, last) stand for columns of one block of the store, from `offset` in it on.
struct Segment {
  std::size_t first;
  std::size_t last;
  std::size_t block;
  std::size_t offset;
  std::size_t group;
  std::size_t size() const { return last - first; }
};

// A kernel row restricted to the active variables.
class ActiveRow {
 public:
  // The values at the positions of a segment.
  const float* at(const Segment& s) const {
    return (compact_ != nullptr ? compact_ : held_.block(s.block)) + s.offset;
  }
  // All of them, where rows are coarse: then there is no `at`.
  const Coarse* coarse() const { return coarse_; }

 private:
  friend class ActiveSet;
  const float* compact_ = nullptr;
  const Coarse* coarse_ = nullptr;
  HeldRow held_;
};

// Columns of a row that are wanted.
class Selected {
 public:
  void reserve(std::size_t count) { offsets_.reserve(count); }
  void add(std::size_t first, std::size_t count) {
    rise_ = rise_ && (offsets_.empty() || first > offsets_.back());
    masks_.resize(std::max(masks_.size(), (first + count - 1) / kLanes + 1));
    for (std::size_t c = first; c < first + count; ++c) {
      offsets_.push_back(static_cast<std::uint32_t>(c));
      masks_[c / kLanes] |= static_cast<std::uint16_t>(1U << (c % kLanes));
    }
  }
  std::size_t size() const { return offsets_.size(); }
  Columns columns() const {
    return {offsets_.size(), offsets_.data(), rise_ ? masks_.size() : 0, masks_.data()};
  }

 private:
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint16_t> masks_;
  bool rise_ = true;
};

// Which store columns the active variables are, in one of two ways. When they come in long runs the
// passes read the store's rows in place. Otherwise (scattered rows, or a problem that has shrunk)
// rows are gathered once into a small cache of compact rows, which the passes read instead; as the
// problem shrinks further, from the compact rows that are there. Compact rows that are in no cache
// may be coarse: half as many bytes, where values are between 0 and 1 and someone mends what
// rounding leaves.
class ActiveSet {
 public:
  // `split`: positions from here on are the second group. `in_one_run`: rows are gathered unless
  // each group is one run, so that passes never see where else in the store columns are. False when
  // these columns were set already: what is known of their rows stays known.
  bool set(KernelStore& store, std::span<const std::int32_t> columns, std::size_t split,
           std::size_t cache_bytes, bool may_be_coarse = false, bool in_one_run = false);

  std::size_t size() const { return columns_.size(); }
  std::span<const Segment> segments() const { return segments_; }
  std::int32_t column(std::size_t position) const { return columns_[position]; }
  std::uint64_t blocks() const { return blocks_; }
  std::size_t group(std::size_t position) const { return position < split_ ? 0 : 1; }
  std::size_t first_of_second_group() const { return std::min(split_, size()); }

  // Whether row(position) can be had without evaluating kernel entries.
  bool has(std::size_t position) const;

  // Reads the row of a position; `also` are store rows worth evaluating along with it. `keep` are
  // rows, at most kHeldRows - 1, whose data must stay valid.
  void row(std::size_t position, std::span<const std::int32_t> also, std::size_t threads,
           std::span<const ActiveRow> keep, ActiveRow& out);

  // From now on notes where rows are, if they stay there until `row` puts others in their place.
  // Then rows()[p * segments().size() + k] says where segment k of the row of position p is:
  // nullptr as long as `row` has not given it.
  void note_rows();
  bool rows_stay() const { return !rows_.empty() || !coarse_rows_.empty(); }
  // Whether nothing takes the place of a row that was given.
  bool rows_are_in_store() const { return rows_stay() && !compact(); }
  const float* const* rows() const { return rows_.data(); }
  // Whether rows are coarse, and where they are.
  bool coarse() const { return compact() && coarse_; }
  const Coarse* const* coarse_rows() const { return coarse() ? coarse_rows_.data() : nullptr; }

  // Entry of a position in a row that `row` has given.
  float entry(const ActiveRow& row, std::size_t position) const;
  // Entries of positions, which rise.
  void entries(const ActiveRow& row, std::span<const std::size_t> positions, double* out) const;

 private:
  bool compact() const { return !slot_of_.empty(); }
  void find_segments();
  void find_pieces();
  bool keep_rows(std::span<const std::int32_t> earlier);
  void gather(const HeldRow& row, std::byte* to) const;
  void note(std::size_t position, const ActiveRow& row);

  KernelStore* store_ = nullptr;
  std::uint64_t forgotten_ = 0;  // by the store, when the columns were set
  std::size_t cache_bytes_ = 0;
  bool in_one_run_ = false;
  std::vector<std::int32_t> columns_;
  std::size_t split_ = 0;
  std::vector<Segment> segments_;
  std::vector<const float*> rows_;
  std::vector<const Coarse*> coarse_rows_;
  std::uint64_t blocks_ = 0;  // the blocks of the store that the columns are in

  // Compact rows: a ring of slots, filled in turn, whose memory is taken when a row is gathered.
  Arena<std::byte> arena_;
  Arena<std::byte>::Chunks spare_;
  std::vector<std::byte*> slots_;  // rows of float32, or coarse ones
  bool coarse_ = false;
  std::vector<std::int32_t> slot_of_;      // per position, -1 where absent; empty when not compact
  std::vector<std::int32_t> position_in_;  // per slot
  // Where the columns are: some in each of these blocks.
  struct Piece {
    std::size_t block;
    Selected columns;
  };
  std::vector<Piece> pieces_;
  std::size_t stride_ = 0;
  std::size_t next_slot_ = 0;
};

// Positions and by how much they change.
class Changes {
 public:
  // What `amount` says of each of n positions, where it is not 0. Which it is cannot be guessed:
  // nothing here is a branch.
  template <class Amount>
  void find(std::size_t n, const Amount& amount) {
    if (positions_.size() < n) {
      positions_.resize(n);
      amounts_.resize(n);
    }
    size_ = 0;
    for (std::size_t p = 0; p < n; ++p) {
      const double change = amount(p);
      positions_[size_] = p;
      amounts_[size_] = change;
      size_ += change != 0.0 ? 1 : 0;
    }
  }
  std::span<const std::size_t> positions() const { return {positions_.data(), size_}; }
  std::span<const double> amounts() const { return {amounts_.data(), size_}; }

 private:
  std::vector<std::size_t> positions_;
  std::vector<double> amounts_;
  std::size_t size_ = 0;
};

// sum += coef[k] * the row of positions[k], at all positions and in double precision; false when
// interrupted.
bool add_rows(ActiveSet& active, std::span<const std::size_t> positions,
              std::span<const double> coef, std::size_t threads, Interrupt& interrupt, double* sum);

// gradient -= K change, over all positions, or variables that are `rows` of a store; incomplete
// when interrupted. `changes` is work space.
void shift_gradient(ActiveSet& all, const double* change, Interrupt& interrupt, Changes& changes,
                    double* gradient);
void shift_gradient(KernelStore& store, std::span<const std::int32_t> rows, const double* change,
                    Interrupt& interrupt, double* gradient);

// out = entries of `rows` in `columns`, row by row.
void entries(KernelStore& store, std::span<const std::int32_t> rows,
             std::span<const std::int32_t> columns, float* out);

}  // namespace onefit
