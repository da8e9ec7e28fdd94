#include "buffer.hpp"

#include <cstdlib>
#include <mutex>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(_WIN32)
#include <malloc.h>
#else
#include <pthread.h>
#endif

namespace onefit {
namespace {

constexpr std::size_t kCacheLine = 64;
constexpr std::size_t kHugePage = std::size_t{1} << 21;
// Chunks that are kept while nobody uses them: 1.25 GB, which a store takes without asking and the
// rows that a solver has of it. The system is told that it may take all but a few back when it
// needs them; those few are used first. Where it cannot be told, less is kept.
#if defined(__linux__)
constexpr std::size_t kMostKept = 160;
#else
constexpr std::size_t kMostKept = 32;
#endif
constexpr std::size_t kOurs = 4;

struct Stack {
  void* chunks[kMostKept];
  std::size_t size = 0;
};

std::mutex mutex;
Stack ours;
Stack others;

#if !defined(_WIN32)
// A child of a fork has but the thread that forked: a mutex that another one held would be held for
// good. So nobody else holds it while a process is forked.
[[maybe_unused]] const int at_fork =
    pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
#endif

}  // namespace

Memory take_memory(std::size_t bytes) {
  if (!kExactBuffers && bytes == kChunkBytes) {
    const std::lock_guard lock(mutex);
    for (Stack* stack : {&ours, &others}) {
      if (stack->size > 0) return {stack->chunks[--stack->size], bytes};
    }
  }
  const bool huge = !kExactBuffers && bytes >= 2 * kHugePage;
  const std::size_t align = huge ? kHugePage : kCacheLine;
  if (!kExactBuffers) bytes = (bytes + align - 1) / align * align;
#if defined(_WIN32)
  void* data = _aligned_malloc(bytes, align);
#else
  void* data = nullptr;
  if (posix_memalign(&data, align, bytes) != 0) data = nullptr;
#endif
  if (data == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  if (huge) madvise(data, bytes, MADV_HUGEPAGE);
#endif
  return {data, bytes};
}

void give_memory(Memory memory) noexcept {
  if (!kExactBuffers && memory.bytes == kChunkBytes) {
    const std::lock_guard lock(mutex);
    if (ours.size < kOurs) {
      ours.chunks[ours.size++] = memory.data;
      return;
    }
    if (others.size < kMostKept - kOurs) {
#if defined(__linux__)
      madvise(memory.data, memory.bytes, MADV_FREE);
#endif
      others.chunks[others.size++] = memory.data;
      return;
    }
  }
#if defined(_WIN32)
  _aligned_free(memory.data);
#else
  std::free(memory.data);
#endif
}

}  // namespace onefit
