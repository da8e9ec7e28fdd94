// Large arrays without initialisation: pages are touched when they are written, not before.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(_MSC_VER)
#include <malloc.h>
#endif

namespace onefit {

inline constexpr std::size_t kAlign = 64;

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
    T* d = data_;
    data_ = other.data_;
    other.data_ = d;
    const std::size_t s = size_;
    size_ = other.size_;
    other.size_ = s;
  }

  void allocate(std::size_t count) {
    if (count == 0) return;
    constexpr std::size_t huge = std::size_t{1} << 21;
    if (count > (std::numeric_limits<std::size_t>::max() - huge) / sizeof(T)) {
      throw std::bad_alloc();
    }
    std::size_t bytes = count * sizeof(T);
    const std::size_t align = bytes >= 2 * huge ? huge : kAlign;
    bytes = (bytes + align - 1) / align * align;
#if defined(_MSC_VER)
    void* p = _aligned_malloc(bytes, align);
#else
    void* p = std::aligned_alloc(align, bytes);
#endif
    if (p == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    // First touch of fresh memory is the slow part; huge pages make it several times faster.
    if (align == huge) madvise(p, bytes, MADV_HUGEPAGE);
#endif
    data_ = static_cast<T*>(p);
    size_ = count;
  }

  void release() {
#if defined(_MSC_VER)
    _aligned_free(data_);
#else
    std::free(data_);
#endif
    data_ = nullptr;
    size_ = 0;
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace onefit
