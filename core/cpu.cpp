// Which of the compiled instruction sets this machine has.
#include <atomic>
#include <cstring>

#include "loops.hpp"

#if defined(ONEFIT_X86) && defined(_MSC_VER)
#include <intrin.h>
#endif

namespace onefit {

extern const Loops loops_plain;
#if defined(ONEFIT_X86)
extern const Loops loops_avx2;
extern const Loops loops_avx512;
#endif

namespace {

#if defined(ONEFIT_X86)
#if defined(_MSC_VER)
bool has_bit(int leaf, int reg, int bit) {
  int r[4];
  __cpuidex(r, leaf, 0);
  return ((r[reg] >> bit) & 1) != 0;
}
bool os_saves(unsigned long long mask) { return has_bit(1, 2, 27) && (_xgetbv(0) & mask) == mask; }
bool has_avx2() {
  return os_saves(0x6) && has_bit(1, 2, 12) && has_bit(7, 1, 5) && has_bit(7, 1, 8);
}
bool has_avx512() {
  return has_avx2() && os_saves(0xe6) && has_bit(7, 1, 16) && has_bit(7, 1, 17) &&
         has_bit(7, 1, 28) && has_bit(7, 1, 30) && has_bit(7, 1, 31);
}
#else
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi2");
}
bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif
#endif

// Widest first; the list ends with the set that every machine has.
std::size_t supported(const Loops** list) {
  std::size_t n = 0;
#if defined(ONEFIT_X86)
  if (has_avx512()) list[n++] = &loops_avx512;
  if (has_avx2()) list[n++] = &loops_avx2;
#endif
  list[n++] = &loops_plain;
  return n;
}

const Loops* widest() {
  const Loops* list[3];
  supported(list);
  return list[0];
}

std::atomic<const Loops*>& chosen() {
  static std::atomic<const Loops*> table{widest()};
  return table;
}

}  // namespace

const Loops& loops() { return *chosen().load(std::memory_order_relaxed); }

std::size_t available_loops(const char** names, std::size_t max) {
  const Loops* list[3];
  const std::size_t n = supported(list);
  std::size_t written = 0;
  while (written < n && written < max) {
    names[written] = list[written]->name;
    ++written;
  }
  return written;
}

bool select_loops(const char* name) {
  const Loops* list[3];
  const std::size_t n = supported(list);
  for (std::size_t i = 0; i < n; ++i) {
    if (std::strcmp(list[i]->name, name) == 0) {
      chosen().store(list[i], std::memory_order_relaxed);
      return true;
    }
  }
  return false;
}

}  // namespace onefit
