// Ctrl-C and progress for work that has released the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <utility>

#include "interrupt.hpp"

namespace onefit {

namespace nb = nanobind;

// What Python takes an object for: a function that returns nothing returns None.
inline bool is_true(const nb::object& value) {
  const int truth = PyObject_IsTrue(value.ptr());
  if (truth < 0) throw nb::python_error();
  return truth != 0;
}

// Runs Python's signal handlers from time to time and tells a function how far the work is; what
// they raise is thrown when the work has ended. The function may ask to stop.
class PythonInterrupt final : public Interrupt {
 public:
  explicit PythonInterrupt(nb::object progress) : progress_(std::move(progress)) {}

  void reached(double share) override { share_ = share; }
  bool requested() override {
    if (raised_ || stopped_) return true;
    const auto now = some_time();
    if (now - last_ < std::chrono::milliseconds(50)) return false;
    last_ = now;
    const nb::gil_scoped_acquire gil;
    try {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
      if (!progress_.is_none()) stopped_ = is_true(progress_(share_));
    } catch (nb::python_error& error) {
      raised_.emplace(std::move(error));
    }
    return stopped_ || raised_;
  }
  void rethrow() {
    if (raised_) throw nb::python_error(std::move(*raised_));
  }

 private:
  // A clock that counts milliseconds, where there is one, is several times as quickly read.
  static std::chrono::nanoseconds some_time() {
#if defined(__linux__)
    timespec now = {};
    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0) {
      return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
    }
#endif
    return std::chrono::steady_clock::now().time_since_epoch();
  }

  std::chrono::nanoseconds last_ = some_time();
  std::optional<nb::python_error> raised_;
  nb::object progress_;
  double share_ = 0.0;
  bool stopped_ = false;
};

}  // namespace onefit
