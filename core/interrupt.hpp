// How a caller stops work that is under way, and learns how far it is.
#pragma once

#include <atomic>

namespace onefit {

class Interrupt {
 public:
  virtual ~Interrupt() = default;
  // Asked often, from the thread that works; cheap unless it is time to look.
  virtual bool requested() = 0;
  // Told now and then which share of the work is done.
  virtual void reached(double /*share*/) {}
};

class NeverInterrupt final : public Interrupt {
 public:
  bool requested() override { return false; }
};

// A flag that another thread raises.
class StopFlag final : public Interrupt {
 public:
  void raise() { flag_.store(true, std::memory_order_relaxed); }
  bool requested() override { return flag_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> flag_{false};
};

}  // namespace onefit
