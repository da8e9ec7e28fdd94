#include "active.hpp"

#include <algorithm>
#include <utility>

#include "loops.hpp"

namespace onefit {
namespace {

// Runs shorter than this on average cost more in calls than gathering costs in copies.
constexpr std::size_t kShortestRun = 128;
constexpr std::size_t kLeastSlots = 8;
// Where rows are is kept for so many segments at most.
constexpr std::size_t kMostParts = 4;

const float* floats(const std::byte* row) { return reinterpret_cast<const float*>(row); }
float* floats(std::byte* row) { return reinterpret_cast<float*>(row); }
const Coarse* coarses(const std::byte* row) { return reinterpret_cast<const Coarse*>(row); }
Coarse* coarses(std::byte* row) { return reinterpret_cast<Coarse*>(row); }

}  // namespace

void ActiveSet::find_segments() {
  segments_.clear();
  blocks_ = 0;
  for (std::size_t p = 0; p < columns_.size();) {
    std::size_t end = p + 1;
    while (end < columns_.size() && columns_[end] == columns_[end - 1] + 1 &&
           group(end) == group(p)) {
      ++end;
    }
    const auto column = static_cast<std::size_t>(columns_[p]);
    const Run run = store_->run(column, column + (end - p));
    segments_.push_back({p, p + run.length, run.block, run.offset, group(p)});
    blocks_ |= std::uint64_t{1} << run.block;
    p += run.length;
  }
}

// Where columns are that are to be gathered.
void ActiveSet::find_pieces() {
  pieces_.clear();
  for (const Segment& s : segments_) {
    if (pieces_.empty() || pieces_.back().block != s.block) {
      pieces_.push_back({s.block, {}});
      pieces_.back().columns.reserve(size() - s.first);
    }
    pieces_.back().columns.add(s.offset, s.size());
  }
}

// Of compact rows of `earlier` columns, the part that is still wanted, in their place; false if
// more is wanted than was there.
bool ActiveSet::keep_rows(std::span<const std::int32_t> earlier) {
  if (slots_.size() < size()) return false;
  Selected still;
  still.reserve(size());
  std::vector<std::int32_t> position_of(earlier.size(), -1);  // now
  for (std::size_t q = 0; q < earlier.size() && still.size() < size(); ++q) {
    if (earlier[q] != columns_[still.size()]) continue;
    position_of[q] = static_cast<std::int32_t>(still.size());
    still.add(q, 1);
  }
  if (still.size() < size()) return false;

  slot_of_.assign(size(), -1);
  std::vector<std::byte*> spare;
  std::size_t kept = 0;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    const std::int32_t was = position_in_[s];
    const std::int32_t now = was < 0 ? -1 : position_of[static_cast<std::size_t>(was)];
    if (now < 0) {
      spare.push_back(slots_[s]);
      continue;
    }
    // Columns move to the left, where the row has been read already.
    if (coarse_) {
      loops().gather_coarse(still.columns(), coarses(slots_[s]), coarses(slots_[s]));
    } else {
      loops().gather(still.columns(), floats(slots_[s]), floats(slots_[s]));
    }
    slot_of_[static_cast<std::size_t>(now)] = static_cast<std::int32_t>(kept);
    slots_[kept] = slots_[s];
    position_in_[kept++] = now;
  }
  std::ranges::copy(spare, slots_.begin() + static_cast<std::ptrdiff_t>(kept));
  slots_.resize(size());
  position_in_.resize(size());
  std::fill(position_in_.begin() + static_cast<std::ptrdiff_t>(kept), position_in_.end(), -1);
  next_slot_ = kept % size();
  return true;
}

bool ActiveSet::set(KernelStore& store, std::span<const std::int32_t> columns, std::size_t split,
                    std::size_t cache_bytes, bool may_be_coarse, bool in_one_run) {
  const bool same_rows = store_ == &store && forgotten_ == store.n_forgotten() &&
                         cache_bytes_ == cache_bytes && in_one_run_ == in_one_run;
  if (same_rows && split_ == split && std::ranges::equal(columns_, columns)) return false;
  store_ = &store;
  forgotten_ = store.n_forgotten();
  cache_bytes_ = cache_bytes;
  in_one_run_ = in_one_run;
  const std::vector<std::int32_t> earlier = std::move(columns_);
  columns_.assign(columns.begin(), columns.end());
  split_ = split;
  rows_.clear();
  coarse_rows_.clear();
  find_segments();
  const std::size_t n_groups = (split_ > 0 ? 1U : 0U) + (split_ < size() ? 1U : 0U);
  if (in_one_run ? segments_.size() <= n_groups
                 : segments_.size() <= 2 || segments_.size() * kShortestRun <= columns_.size()) {
    slot_of_.clear();
    return true;
  }

  find_pieces();
  segments_.clear();
  if (split_ > 0) segments_.push_back({0, std::min(split_, size()), 0, 0, 0});
  if (split_ < size()) segments_.push_back({split_, size(), 0, split_, 1});
  stride_ = (size() + kLanes - 1) / kLanes * kLanes + kLanes;  // what `gather` may write
  if (same_rows && compact() && (may_be_coarse || !coarse_) && keep_rows(earlier)) return true;
  coarse_ = may_be_coarse && segments_.size() == 1 && store.is_between_0_and_1();
  const std::size_t bytes = stride_ * (coarse_ ? sizeof(Coarse) : sizeof(float));
  const std::size_t slots = std::min(size(), std::max(cache_bytes / bytes, kLeastSlots));
  arena_.clear(spare_);
  slots_.assign(slots, nullptr);
  slot_of_.assign(size(), -1);
  position_in_.assign(slots, -1);
  next_slot_ = 0;
  return true;
}

void ActiveSet::note_rows() {
  const bool stay = compact() || store_->most_users() == store_->size();
  if (!stay || segments_.size() > kMostParts || rows_stay()) return;
  if (coarse()) {
    coarse_rows_.assign(size(), nullptr);
  } else {
    rows_.assign(size() * segments_.size(), nullptr);
  }
}

bool ActiveSet::has(std::size_t position) const {
  return (compact() && slot_of_[position] >= 0) || store_->has(columns_[position], blocks_);
}

void ActiveSet::row(std::size_t position, std::span<const std::int32_t> also, std::size_t threads,
                    std::span<const ActiveRow> keep, ActiveRow& out) {
  if (!compact()) {
    out.compact_ = nullptr;
    out.coarse_ = nullptr;
    out.held_ = store_->hold(columns_[position], blocks_, also, threads);
    note(position, out);
    return;
  }
  std::int32_t& slot = slot_of_[position];
  if (slot < 0) {
    const auto is_kept = [&](const std::byte* data) {
      return data != nullptr && std::ranges::any_of(keep, [&](const ActiveRow& row) {
               return coarse_ ? row.coarse_ == coarses(data) : row.compact_ == floats(data);
             });
    };
    while (is_kept(slots_[next_slot_])) next_slot_ = (next_slot_ + 1) % position_in_.size();
    const std::size_t taken = next_slot_;
    next_slot_ = (next_slot_ + 1) % position_in_.size();
    if (position_in_[taken] >= 0) {
      const auto gone = static_cast<std::size_t>(position_in_[taken]);
      slot_of_[gone] = -1;
      if (!rows_.empty()) std::fill_n(&rows_[gone * segments_.size()], segments_.size(), nullptr);
      if (!coarse_rows_.empty()) coarse_rows_[gone] = nullptr;
    }
    position_in_[taken] = static_cast<std::int32_t>(position);
    slot = static_cast<std::int32_t>(taken);
    if (slots_[taken] == nullptr) {
      slots_[taken] = arena_.take(stride_ * (coarse_ ? sizeof(Coarse) : sizeof(float)), spare_);
    }
    gather(store_->hold(columns_[position], blocks_, also, threads), slots_[taken]);
  }
  const std::byte* data = slots_[static_cast<std::size_t>(slot)];
  out.compact_ = coarse_ ? nullptr : floats(data);
  out.coarse_ = coarse_ ? coarses(data) : nullptr;
  note(position, out);
}

void ActiveSet::note(std::size_t position, const ActiveRow& row) {
  if (!coarse_rows_.empty()) coarse_rows_[position] = row.coarse_;
  if (rows_.empty()) return;
  for (std::size_t k = 0; k < segments_.size(); ++k) {
    rows_[position * segments_.size() + k] = row.at(segments_[k]);
  }
}

// Copies the active columns of a row.
void ActiveSet::gather(const HeldRow& row, std::byte* to) const {
  std::size_t at = 0;
  for (const auto& [block, columns] : pieces_) {
    if (coarse_) {
      loops().gather_as_coarse(columns.columns(), row.block(block), coarses(to) + at);
    } else {
      loops().gather(columns.columns(), row.block(block), floats(to) + at);
    }
    at += columns.size();
  }
}

float ActiveSet::entry(const ActiveRow& row, std::size_t position) const {
  for (const Segment& s : segments_) {
    if (position < s.last) return row.at(s)[position - s.first];
  }
  return 0.0F;
}

void ActiveSet::entries(const ActiveRow& row, std::span<const std::size_t> positions,
                        double* out) const {
  if (row.coarse_ != nullptr) {
    for (std::size_t k = 0; k < positions.size(); ++k) {
      out[k] = static_cast<double>(kCoarseUnit) * static_cast<double>(row.coarse_[positions[k]]);
    }
    return;
  }
  std::size_t k = 0;
  for (const Segment& s : segments_) {
    const float* values = row.at(s) - s.first;
    for (; k < positions.size() && positions[k] < s.last; ++k) {
      out[k] = static_cast<double>(values[positions[k]]);
    }
  }
}

bool add_rows(ActiveSet& active, std::span<const std::size_t> positions,
              std::span<const double> coef, std::size_t threads, Interrupt& interrupt,
              double* sum) {
  constexpr std::size_t kAsk = 32;  // whether to go on, after so many rows that are there
  const std::size_t n_parts = active.segments().size();
  ActiveRow rows[kHeldRows];
  std::vector<std::int32_t> also;
  for (std::size_t k0 = 0; k0 < positions.size(); k0 += kHeldRows) {
    if (k0 % kAsk == 0 && interrupt.requested()) return false;
    const std::size_t count = std::min(kHeldRows, positions.size() - k0);
    const float* const* noted[kHeldRows] = {};
    for (std::size_t r = 0; r < count; ++r) {
      const std::size_t k = k0 + r;
      const std::size_t position = positions[k];
      if (active.rows_are_in_store()) {
        noted[r] = active.rows() + position * n_parts;
        if (noted[r][0] != nullptr) continue;
      }
      if (!active.has(position)) {
        if (interrupt.requested()) return false;
        also.clear();
        for (std::size_t l = k + 1; l < positions.size() && also.size() < kQueries; ++l) {
          also.push_back(active.column(positions[l]));
        }
      }
      active.row(position, also, threads, {rows, r}, rows[r]);
    }
    if (active.coarse()) {
      const Coarse* at[kHeldRows];
      for (std::size_t r = 0; r < count; ++r) at[r] = rows[r].coarse();
      loops().accumulate_coarse(active.size(), sum, at, coef.data() + k0, count);
      continue;
    }
    for (std::size_t part = 0; part < n_parts; ++part) {
      const Segment& s = active.segments()[part];
      const float* at[kHeldRows];
      for (std::size_t r = 0; r < count; ++r) {
        at[r] = noted[r] != nullptr ? noted[r][part] : rows[r].at(s);
      }
      loops().accumulate(s.size(), sum + s.first, at, coef.data() + k0, count);
    }
  }
  return true;
}

void shift_gradient(ActiveSet& all, const double* change, Interrupt& interrupt, Changes& changes,
                    double* gradient) {
  changes.find(all.size(), [&](std::size_t v) { return -change[v]; });
  add_rows(all, changes.positions(), changes.amounts(), 1, interrupt, gradient);
}

void shift_gradient(KernelStore& store, std::span<const std::int32_t> rows, const double* change,
                    Interrupt& interrupt, double* gradient) {
  ActiveSet all;
  all.set(store, rows, rows.size(), 0);
  Changes changes;
  shift_gradient(all, change, interrupt, changes, gradient);
}

void entries(KernelStore& store, std::span<const std::int32_t> rows,
             std::span<const std::int32_t> columns, float* out) {
  std::uint64_t blocks = 0;
  std::vector<Run> runs;  // one of length 1 for each column
  for (const std::int32_t column : columns) {
    const auto c = static_cast<std::size_t>(column);
    runs.push_back(store.run(c, c + 1));
    blocks |= std::uint64_t{1} << runs.back().block;
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const HeldRow row = store.hold(rows[r], blocks,
                                   rows.subspan(r + 1, std::min(kQueries, rows.size() - r - 1)), 1);
    for (const Run& run : runs) *out++ = row.block(run.block)[run.offset];
  }
}

}  // namespace onefit
