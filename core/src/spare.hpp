// Objects that a thread keeps for reuse, for what every call needs.
#pragma once

namespace dovetail {
// A T of this thread that nothing else uses at the time, in the state in which its last user left it.
template <class T>
class Spare {
 public:
  Spare() : node_(kept_) {
    if (node_) [[likely]]
      kept_ = node_->next;
    else node_ = make();
  }
  ~Spare() {
    if (kept_ && kept_->n == kMost) [[unlikely]] {
      delete node_;
      return;
    }
    node_->next = kept_, node_->n = kept_ ? kept_->n + 1 : 1;
    kept_ = node_;
  }
  Spare(const Spare&) = delete;

  T& operator*() { return node_->object; }
  T* operator->() { return &node_->object; }
  const T* operator->() const { return &node_->object; }

 private:
  static constexpr int kMost = 4;  // calls within calls need several
  struct Node {
    T object;
    Node* next = nullptr;
    int n = 0;  // kept ones from here on
  };
  struct Owner {
    ~Owner() {
      while (Node* const node = kept_) kept_ = node->next, delete node;
    }
  };
  [[gnu::noinline]] static Node* make() {
    static thread_local const Owner owner;  // frees what is kept when the thread ends
    return new Node;
  }

  static inline thread_local constinit Node* kept_ __attribute__((tls_model("initial-exec"))) = nullptr;
  Node* node_;
};
}  // namespace dovetail
