// Many problems on one store in one call.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "interrupt.hpp"
#include "problem.hpp"
#include "smo_memory.hpp"
#include "solution.hpp"
#include "store.hpp"

namespace onefit {

// Solves every problem, on `threads` threads: as many problems at a time as there are threads, and
// what is left of the threads evaluates kernel rows. `interrupt` is asked, and told how
// far the work is, on the calling thread only. With `forget`, kernel entries are given up as soon
// as no problem of this call needs them: for many classes that is most of the memory. After an
// interrupt the solutions hold what each solve had reached; those never begun are where they were
// to start.
std::vector<Solution> solve_many(KernelStore& store, const std::vector<const Problem*>& problems,
                                 const Settings& settings, std::size_t threads, bool forget,
                                 Interrupt& interrupt);

// A problem to be solved next, or a solution that is known already.
struct Task {
  const Problem* problem = nullptr;
  std::optional<Solution> known = std::nullopt;
};

// The same for `count` problems that `prepare` makes, which is given a number, the settings, memory
// for copies of rows in bytes, whom to ask, and what the solver will work in, where the problem may
// be. `done` is given each solution, on its thread, and what it leaves of it is returned. Those
// never begun are empty after an interrupt.
using Prepare =
    std::function<Task(std::size_t, const Settings&, std::size_t, Interrupt&, SmoMemory&)>;
std::vector<Solution> in_parallel(KernelStore& store, std::size_t count, const Prepare& prepare,
                                  const std::function<void(std::size_t, Solution&)>& done,
                                  const Settings& settings, std::size_t threads,
                                  Interrupt& interrupt);

}  // namespace onefit
