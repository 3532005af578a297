// An array whose length is known when it is made, without an allocation where it is short.
#pragma once
#include <cstddef>
#include <memory>
#include <type_traits>

namespace dovetail {
template <class T, size_t kFew>
class Few {
  static_assert(std::is_trivially_default_constructible_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit Few(size_t n) : size_(n) {  // the elements are not set
    if (n > kFew) many_.reset(new T[n]), data_ = many_.get();
  }
  Few(const Few&) = delete;

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  const size_t size_;
  T few_[kFew];
  std::unique_ptr<T[]> many_;
  T* data_ = few_;
};
}  // namespace dovetail
