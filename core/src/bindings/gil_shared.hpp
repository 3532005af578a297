// Shared objects whose holders are counted under the GIL, as those of Python's objects are: without atomics.
#pragma once
#include <utility>

namespace dovetail::bindings {
// All its copies are made and dropped by threads that hold the GIL.
template <class T>
class GilShared {
 public:
  template <class... Args>
  static GilShared make(Args&&... args) {
    GilShared made;
    made.node_ = new Node{1, T(std::forward<Args>(args)...)};
    return made;
  }
  GilShared() = default;
  GilShared(const GilShared& o) : node_(o.node_) {
    if (node_) ++node_->holders;
  }
  GilShared(GilShared&& o) noexcept : node_(std::exchange(o.node_, nullptr)) {}
  GilShared& operator=(GilShared o) noexcept {
    std::swap(node_, o.node_);
    return *this;
  }
  ~GilShared() {
    if (node_ && --node_->holders == 0) delete node_;
  }

  explicit operator bool() const { return node_; }
  const T& operator*() const { return node_->object; }
  const T* operator->() const { return &node_->object; }
  bool is_only_holder() const { return node_->holders == 1; }

 private:
  struct Node {
    int holders;
    const T object;
  };
  Node* node_ = nullptr;
};
}  // namespace dovetail::bindings
