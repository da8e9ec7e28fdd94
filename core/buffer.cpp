#include "buffer.hpp"

#include <cstdlib>
#include <mutex>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(_MSC_VER)
#include <malloc.h>
#endif

namespace onefit {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{1} << 21;
// No more than this is kept while nobody uses it.
constexpr std::size_t kMostKept = std::size_t{128} << 20;

std::mutex mutex;
Memory kept;

void free_memory(Memory memory) noexcept {
#if defined(_MSC_VER)
  _aligned_free(memory.data);
#else
  std::free(memory.data);
#endif
}

}  // namespace

Memory take_memory(std::size_t bytes) {
  {
    const std::lock_guard lock(mutex);
    // Not for something much smaller, which would keep it from the next large array.
    if (kept.bytes >= bytes && kept.bytes / 8 <= bytes) return std::exchange(kept, {});
  }
  const std::size_t align = bytes >= 2 * kHugePage ? kHugePage : kCacheLine;
  bytes = (bytes + align - 1) / align * align;
#if defined(_MSC_VER)
  void* data = _aligned_malloc(bytes, align);
#else
  void* data = std::aligned_alloc(align, bytes);
#endif
  if (data == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  if (align == kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return {data, bytes};
}

void give_memory(Memory memory) noexcept {
  if (memory.data == nullptr) return;
  if (memory.bytes >= 2 * kHugePage && memory.bytes <= kMostKept) {
#if defined(__linux__)
    // The system may take the pages back when it needs them.
    madvise(memory.data, memory.bytes, MADV_FREE);
#endif
    const std::lock_guard lock(mutex);
    std::swap(memory, kept);
  }
  free_memory(memory);
}

}  // namespace onefit
