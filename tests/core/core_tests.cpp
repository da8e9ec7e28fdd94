#include "check.hpp"

int main() {
  using namespace onefit::testing;
  int failed = 0;
  for (const Test& test : tests()) {
    const int before = failures();
    test.body();
    if (failures() > before) {
      ++failed;
      std::printf("FAILED %s\n", test.name);
    }
  }
  std::printf("%zu passed, %d failed\n", tests().size() - static_cast<std::size_t>(failed), failed);
  return failed == 0 ? 0 : 1;
}
