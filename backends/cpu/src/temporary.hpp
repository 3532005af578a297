// Memory for the duration of a call that may be as large as an operand: unlike scratch memory it is not kept.
#pragma once
#include <cstddef>
#include <new>

namespace dovetail::cpu {
// Its functions are inlined at every optimisation: those of one instruction set level must not serve another.
class Temporary {
 public:
  [[gnu::always_inline]] Temporary() : data_(nullptr) {}
  // Aligned to 64; get() is nullptr if memory is out. The content is undefined.
  [[gnu::always_inline]] explicit Temporary(size_t bytes) : data_(::operator new(bytes, kAlign, std::nothrow)) {}
  [[gnu::always_inline]] ~Temporary() { ::operator delete(data_, kAlign); }
  Temporary(const Temporary&) = delete;
  [[gnu::always_inline]] explicit operator bool() const { return data_ != nullptr; }
  [[gnu::always_inline]] char* get() const { return static_cast<char*>(data_); }

 private:
  static constexpr std::align_val_t kAlign{64};
  void* const data_;
};
}  // namespace dovetail::cpu
