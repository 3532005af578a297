// What the files of api/ share: errors that do not leave the library, and handles as the objects that they stand
// for.
#pragma once
#include <exception>

#include "dispatch/execute.hpp"
#include "dovetail/runtime.h"

namespace dovetail::api {
// Keeps the exception being handled as this thread's last error. `function`: for messages that name no op.
dvr_status keep_error(const char* function) noexcept;

// Runs `f` and turns what it throws into a status.
template <class F>
dvr_status guarded(const char* function, F f) noexcept {
  try {
    refuse_reentry();
    f();
    return DVR_OK;
  } catch (...) {
    return keep_error(function);
  }
}

[[noreturn]] void throw_null(const char* what);
// The object behind a handle, or memory for a result. Throws Error(value) for NULL.
template <class T>
T& expect(T* p, const char* what) {
  if (!p) throw_null(what);
  return *p;
}
inline Device& to(dvr_device* d) { return expect(reinterpret_cast<Device*>(d), "the device"); }
inline Stream& to(dvr_stream* s) { return expect(reinterpret_cast<Stream*>(s), "the stream"); }
inline Event& to(dvr_event* e) { return expect(reinterpret_cast<Event*>(e), "the event"); }
inline const Op& to(const dvr_op* o) { return expect(reinterpret_cast<const Op*>(o), "the op"); }
inline Storage& to(const dvr_buffer* b) {
  return expect(reinterpret_cast<Storage*>(const_cast<dvr_buffer*>(b)), "the buffer");
}

DType to_dtype(DLDataType);  // throws Error(type)
std::span<const int64_t> to_shape(uint32_t ndim, const int64_t* shape);
// The array as a Tensor that shares its buffer. Throws Error(type) for a number.
Tensor to_tensor(const dvr_tensor*, const char* what);
bool is_number(const dvr_tensor&);  // no buffer, no axes, and memory for a value
// Moves the tensor's share of the buffer into `out`.
void put(Tensor&& t, dvr_tensor& out);
void put_view(const Tensor& t, dvr_tensor& out);  // shape, strides and dtype alone

// Out-structs: writes as much of `value` as the caller's struct has, without struct_size.
template <class T>
void put_info(T value, T* out) {
  const uint32_t size = expect(out, "the result").struct_size;
  if (size < sizeof(uint32_t))
    throw Error(ErrorKind::value, "struct_size is " + std::to_string(size) + ": set it to sizeof");
  value.struct_size = size;
  std::memcpy(out, &value, std::min<size_t>(size, sizeof value));
}
}  // namespace dovetail::api
