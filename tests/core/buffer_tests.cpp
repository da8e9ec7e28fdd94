// Memory that is kept for the next fit, across forks.
#include <atomic>
#include <thread>

#include "buffer.hpp"
#include "check.hpp"

#if !defined(_WIN32) && !defined(__SANITIZE_THREAD__)
#include <sys/wait.h>
#include <unistd.h>

using namespace onefit;
using namespace onefit::testing;

TEST(a_forked_child_can_take_memory) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) give_memory(take_memory(kChunkBytes));
  });
  int failed = 0;
  for (int k = 0; k < 200; ++k) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // ends a child that waits for a thread which it does not have
      give_memory(take_memory(kChunkBytes));
      _exit(0);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    if (status != 0) {
      ++failed;
      break;
    }
  }
  stop = true;
  other.join();
  CHECK(failed == 0);
}
#endif
