// Primitives with their arguments, and caches of them.
#pragma once
#include <cstring>
#include <initializer_list>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "onednn/dnnl.hpp"

namespace dovetail::cpu::onednn {
// A primitive of the calling thread, ready to run; empty if oneDNN refuses or has reference code only. oneDNN
// shares the generated code between threads.
class Executable {
 public:
  enum class Code { generated, any };

  Executable() = default;
  // `kinds`: the DNNL_ARG_ of the arguments, in the order of run()'s.
  Executable(const PrimitiveDesc&, std::initializer_list<int> kinds, Code = Code::generated);

  explicit operator bool() const { return bool(primitive_); }
  bool run(std::initializer_list<const void*> data) const;

 private:
  bool add(int kind, const_dnnl_memory_desc_t);

  Primitive primitive_;
  std::vector<Memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  size_t scratch_size_ = 0;
};

// Runs any code once.
Executable reorder(const Desc& from, const Desc& to);

// The layout that a primitive requires for an operand.
struct Layout {
  Desc desc;                      // empty: there is no such primitive
  uint64_t size = 0, number = 0;  // bytes; an identifier of the layout

  Layout() = default;
  // The primitive's property `what`, if its code is generated.
  Layout(const PrimitiveDesc&, dnnl_query_t what);
};
bool is_generated(const PrimitiveDesc&);
bool is_gemm(const PrimitiveDesc&);  // oneDNN's own BLAS code

// Values that are built from a description once. One cache per thread: it needs no lock, and is consistent in
// a forked child. A description holds no pointers and has no padding.
template <class Key, class Value>
class Cache {
  static_assert(std::has_unique_object_representations_v<Key>);

 public:
  template <class Build>
  const Value& get(const Key& key, Build build) {
    constexpr size_t limit = 1024;  // as many as oneDNN caches for all threads together
    const auto found = values_.find(key);
    if (found != values_.end()) [[likely]]
      return found->second;
    if (values_.size() >= limit) values_.clear();
    return values_.emplace(key, build(key)).first->second;
  }

 private:
  struct Hash {
    size_t operator()(const Key& key) const {
      uint64_t words[sizeof key / 8], h = 0;
      std::memcpy(words, &key, sizeof key);
      for (uint64_t w : words) h = (h ^ w) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
      return h;
    }
  };
  struct Equal {
    bool operator()(const Key& a, const Key& b) const { return !std::memcmp(&a, &b, sizeof a); }
  };
  std::unordered_map<Key, Value, Hash, Equal> values_;
};
}  // namespace dovetail::cpu::onednn
