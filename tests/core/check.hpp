// A test is a function that calls CHECK; main runs them all and counts.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "loops.hpp"

namespace onefit::testing {

struct Test {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Test>& tests() {
  static std::vector<Test> all;
  return all;
}

struct Register {
  Register(const char* name, std::function<void()> body) {
    tests().push_back({name, std::move(body)});
  }
};

inline int& failures() {
  static int count = 0;
  return count;
}

inline void check(bool ok, const char* what, const char* file, int line) {
  if (ok) return;
  ++failures();
  std::printf("%s:%d: failed: %s\n", file, line, what);
}

// Calls body once for each instruction set of this machine; with the sanitizer of threads, which
// makes everything slow and looks at none of their differences, for the widest only.
inline void for_each_isa(const std::function<void()>& body) {
#if defined(__SANITIZE_THREAD__)
  body();
  return;
#endif
  const char* names[8];
  const std::size_t n = available_loops(names, 8);
  for (std::size_t k = n; k-- > 0;) {  // ends on the widest, which is the default
    select_loops(names[k]);
    body();
  }
}

inline std::vector<double> normal(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> draw;
  std::vector<double> values(n);
  for (double& v : values) v = draw(random);
  return values;
}

}  // namespace onefit::testing

#define CHECK(condition) onefit::testing::check((condition), #condition, __FILE__, __LINE__)
#define TEST(name)                                                     \
  static void name();                                                  \
  static const onefit::testing::Register register_##name(#name, name); \
  static void name()
