// Arrays without initialisation that live as long as one piece of work, in memory that is kept for
// the next: of small problems, the first touch of fresh pages would take longer than what is done
// with them.
#pragma once

#include <cstddef>

#include "buffer.hpp"

namespace onefit {

class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  template <class T>
  T* take(std::size_t count) {
    return reinterpret_cast<T*>(memory_.take(count * sizeof(T), spare_));
  }
  // Ends the work, and keeps the memory for the next.
  void clear() { memory_.clear(spare_); }

 private:
  Arena<char> memory_;
  Arena<char>::Chunks spare_;
};

// An array that grows; its content is lost then.
template <class T>
class Scratch {
 public:
  explicit Scratch(Workspace& workspace) : workspace_(&workspace) {}
  T* at_least(std::size_t count) {
    if (count > size_) {
      data_ = workspace_->take<T>(count);
      size_ = count;
    }
    return data_;
  }
  T* data() const { return data_; }
  T& operator[](std::size_t k) const { return data_[k]; }

 private:
  Workspace* workspace_;
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace onefit
