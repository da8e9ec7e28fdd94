// Large arrays without initialisation: pages are touched when they are written, not before.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace onefit {

// Memory for an array, aligned to a cache line, or to a huge page when it is large.
struct Memory {
  void* data = nullptr;
  std::size_t bytes = 0;
};

// First touch of fresh memory is slow (the system clears every page, some machines at 1 GB/s), so
// that pieces of kChunkBytes that are given back are kept for the next fit, up to a limit.
inline constexpr std::size_t kChunkBytes = std::size_t{8} << 20;
Memory take_memory(std::size_t bytes);
void give_memory(Memory memory) noexcept;

// Whether no memory is kept or shared, so that sanitizers see where each array ends.
#if defined(ONEFIT_EXACT_BUFFERS)
inline constexpr bool kExactBuffers = true;
#else
inline constexpr bool kExactBuffers = false;
#endif

template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t count) { allocate(count); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() { release(); }

  T* data() { return data_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }

  // Grows to at least `count` entries; the content is lost.
  void at_least(std::size_t count) {
    if (count > size_) {
      release();
      allocate(count);
    }
  }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  void allocate(std::size_t count) {
    if (count == 0) return;
    if (count > std::numeric_limits<std::size_t>::max() / 2 / sizeof(T)) throw std::bad_alloc();
    memory_ = take_memory(count * sizeof(T));
    data_ = static_cast<T*>(memory_.data);
    size_ = count;
  }

  void release() {
    give_memory(memory_);
    memory_ = {};
    data_ = nullptr;
    size_ = 0;
  }

  Memory memory_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// Hands out arrays that live as long as it does, from chunks taken as they are needed: from `spare`
// first. Chunks go to `spare` when the arena is cleared.
template <class T>
class Arena {
 public:
  using Chunks = std::vector<Buffer<T>>;

  T* take(std::size_t count, Chunks& spare) {
    if constexpr (kExactBuffers) {
      chunks_.emplace_back(std::max<std::size_t>(count, 1));
      return chunks_.back().data();
    }
    count = (count + kAlignment - 1) / kAlignment * kAlignment;
    if (chunks_.empty() || used_ + count > chunks_.back().size()) {
      if (count <= kChunk && !spare.empty()) {
        chunks_.push_back(std::move(spare.back()));
        spare.pop_back();
      } else {
        chunks_.emplace_back(std::max(count, kChunk));
      }
      used_ = 0;
    }
    T* data = chunks_.back().data() + used_;
    used_ += count;
    return data;
  }

  void clear(Chunks& spare) {
    for (Buffer<T>& chunk : chunks_) {
      if (!kExactBuffers && chunk.size() == kChunk) spare.push_back(std::move(chunk));
    }
    chunks_.clear();
  }

 private:
  static constexpr std::size_t kAlignment = 64 / sizeof(T);
  static constexpr std::size_t kChunk = kChunkBytes / sizeof(T);
  Chunks chunks_;
  std::size_t used_ = 0;
};

}  // namespace onefit
