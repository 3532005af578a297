// dovetail/backend.hpp - C++17 sugar over abi.h for authors of backends: kernel rows, operands, attributes, errors,
// parallel loops, a copy of a call for queues. Header-only. Nothing of it crosses the border between host and
// plugin: abi.h alone is the contract, and a plugin may use as little of this as it likes.
//
//   static dvt_status add(dvt_device*, const dvt_call* c) {
//     const float *a = dvt::data<float>(c->in[0]), *b = dvt::data<float>(c->in[1]);
//     float* out = dvt::data<float>(c->out[0]);
//     dvt::parallel_for(dvt::size(c->out[0]), 32768, [=](uint64_t begin, uint64_t end, uint32_t) {
//       for (uint64_t i = begin; i < end; ++i) out[i] = a[i] + b[i];
//     });
//     return DVT_OK;
//   }
//   dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out) {
//     if (dvt_status s = dvt::accept(host)) return s;
//     static dvt::KernelTable table;
//     table.add(dvt::Row("dvt.add", add).in(dvt::f32).in(dvt::f32).out(dvt::f32).deterministic());
//     ...
//   }
//
// A source that is compiled several times for several instruction sets defines DVT_CODE_NAMESPACE differently each
// time: no function of this header is then shared by objects of different instruction sets.
#ifndef DOVETAIL_BACKEND_HPP
#define DOVETAIL_BACKEND_HPP

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "dovetail/abi.h"
#include "dovetail/dtypes.hpp"
#include "dovetail/float16.hpp"

#ifndef DVT_CODE_NAMESPACE
#define DVT_CODE_NAMESPACE common
#endif
#if defined(_WIN32)
#define DVT_HIDDEN
#elif defined(__GNUC__)
#define DVT_HIDDEN __attribute__((visibility("hidden")))
#else
#define DVT_HIDDEN
#endif
#if defined(__GNUC__)
#define DVT_PRINTF __attribute__((format(printf, 5, 6)))
#else
#define DVT_PRINTF
#endif

namespace dvt {
// The services of the host, set by accept(). Hidden: every plugin has its own.
DVT_HIDDEN inline const dvt_host* host = nullptr;

inline namespace DVT_CODE_NAMESPACE {
// ---- errors -----------------------------------------------------------------------------------------------------

// Messages read "[op] what is wrong: expected ..., got ...; cure". Both return the status, so that a kernel writes
//   return DVT_FAIL(DVT_INDEX, "[take] index %lld is out of range: the axis has %lld elements", i, n);
// The second form is for a fault of an earlier call, found by a worker: id is that call's correlation_id.
#define DVT_FAIL(code, ...) ::dvt::fail_at(__FILE__, __LINE__, (code), 0, __VA_ARGS__)
#define DVT_FAIL_LATE(code, id, ...) ::dvt::fail_at(__FILE__, __LINE__, (code), (id), __VA_ARGS__)

DVT_PRINTF
inline dvt_status fail_at(const char* file, int line, dvt_status code, uint64_t id, const char* format, ...) {
  char message[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return host->fail(host, code, id, file, line, message);
}

// The first line of dvt_backend_v1: checks that host and plugin speak the same protocol, and remembers the host.
inline dvt_status accept(const dvt_host* h) {
  host = h;
  if (h->abi_major != DVT_ABI_MAJOR || h->abi_draft != DVT_ABI_DRAFT)
    return DVT_FAIL(
        DVT_INVALID,
        "this plugin was built for version %u draft %u of dovetail/abi.h, the runtime speaks version %u "
        "draft %u: rebuild the plugin with the headers of the installed dovetail, or install the release of "
        "the plugin that matches it",
        DVT_ABI_MAJOR, DVT_ABI_DRAFT, h->abi_major, h->abi_draft);
  return DVT_OK;
}

// ---- data types -------------------------------------------------------------------------------------------------

// i8, u8, f16, bf16, f32, c64 and so on.
#define DVT_CONSTANT(id, name, brief, code, bits, kind) inline constexpr DLDataType id{code, bits, 1};
DVT_FOR_EACH_DTYPE(DVT_CONSTANT)
#undef DVT_CONSTANT
inline constexpr DLDataType boolean = b8;
// In a row: any type of this width; 0 = any type at all.
constexpr DLDataType any(unsigned bits) { return {DVT_ANY, uint8_t(bits), 1}; }
constexpr bool same(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
// The data type that holds a C++ arithmetic type.
template <class T>
constexpr DLDataType dtype_of() {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) return boolean;
  else if constexpr (std::is_floating_point_v<U>) return {DVT_FLOAT, uint8_t(8 * sizeof(U)), 1};
  else return {uint8_t(std::is_signed_v<U> ? DVT_INT : DVT_UINT), uint8_t(8 * sizeof(U)), 1};
}

// ---- kernel rows ------------------------------------------------------------------------------------------------

// A row of the kernel table under construction. Operands come in the op's order, inputs before outputs; `flags` are
// DVT_O_*. A flag that is not set stays at abi.h's default.
class Row {
 public:
  static constexpr uint32_t max_operands = 16;
  using Run = dvt_status (*)(dvt_device*, const dvt_call*);

  constexpr Row(const char* op, Run run) : kernel_{} {
    kernel_.struct_size = sizeof kernel_, kernel_.op_version = 1, kernel_.op = op, kernel_.run = run;
  }
  constexpr Row& in(DLDataType type, unsigned flags = 0, unsigned align_log2 = 0) {
    operands_[kernel_.n_in++] = {type, uint8_t(flags), uint8_t(align_log2), 0};
    return *this;
  }
  constexpr Row& out(DLDataType type, unsigned flags = 0, unsigned align_log2 = 0) {
    operands_[kernel_.n_in + kernel_.n_out++] = {type, uint8_t(flags), uint8_t(align_log2), 0};
    return *this;
  }
  constexpr Row& version(uint32_t v) { return kernel_.op_version = v, *this; }
  constexpr Row& engine(const char* name) { return kernel_.engine = name, *this; }
  constexpr Row& flags(uint32_t dvt_k) { return kernel_.flags |= dvt_k, *this; }
  constexpr Row& deterministic() { return flags(DVT_K_BITWISE_DETERMINISTIC); }
  constexpr Row& ulp(float max) { return kernel_.max_ulp = max, *this; }
  constexpr Row& query(decltype(dvt_kernel::query) f) { return kernel_.query = f, *this; }
  constexpr Row& pack(decltype(dvt_kernel::pack_size) size, decltype(dvt_kernel::pack) f) {
    return kernel_.pack_size = size, kernel_.pack = f, *this;
  }

  // The finished row; it points into this object, which must live as long as it.
  constexpr const dvt_kernel& kernel() { return kernel_.operands = operands_, kernel_; }
  const char* op() const { return kernel_.op; }

 private:
  dvt_operand operands_[max_operands]{};
  dvt_kernel kernel_;
};

// The kernel table in the form in which dvt_backend wants it. Make it a static of dvt_backend_v1.
class KernelTable {
 public:
  explicit KernelTable(uint32_t flags_of_all = 0) : flags_(flags_of_all) {}
  void add(const Row& row) {
    rows_.push_back(std::make_unique<Row>(row));
    rows_.back()->flags(flags_);
    pointers_.push_back(&rows_.back()->kernel());
  }
  const dvt_kernel* const* data() const { return pointers_.data(); }
  uint64_t size() const { return pointers_.size(); }

 private:
  const uint32_t flags_;
  std::vector<std::unique_ptr<Row>> rows_;
  std::vector<const dvt_kernel*> pointers_;
};

// ---- operands ---------------------------------------------------------------------------------------------------

template <class T>
T* data(const DLTensor* t) {
  return reinterpret_cast<T*>(static_cast<char*>(t->data) + t->byte_offset);
}
inline int64_t size(const DLTensor* t) {
  int64_t n = 1;
  for (int32_t i = 0; i < t->ndim; ++i) n *= t->shape[i];
  return n;
}
inline uint64_t bytes(const DLTensor* t) { return (uint64_t(size(t)) * t->dtype.bits * t->dtype.lanes + 7) / 8; }
// Row-major without gaps.
inline bool is_dense(const DLTensor* t) {
  int64_t step = 1;
  for (int32_t i = t->ndim; i-- > 0; step *= t->shape[i])
    if (t->shape[i] != 1 && t->strides[i] != step) return size(t) == 0;
  return true;
}
// Is an optional operand given?
inline bool has_in(const dvt_call* c, uint32_t i) { return i < c->n_in && c->in[i]; }

// An operand with its type: x(i, j) addresses by the strides.
template <class T>
struct View {
  T* data;
  int32_t ndim;
  const int64_t *shape, *strides;

  explicit View(const DLTensor* t) : data(dvt::data<T>(t)), ndim(t->ndim), shape(t->shape), strides(t->strides) {}
  template <class... I>
  T& operator()(I... index) const {
    int64_t at = 0;
    int axis = 0;
    ((at += int64_t(index) * strides[axis++]), ...);
    return data[at];
  }
};

// ---- attributes -------------------------------------------------------------------------------------------------

struct Ints {
  const int64_t* data;
  uint32_t count;
  const int64_t* begin() const { return data; }
  const int64_t* end() const { return data + count; }
  int64_t operator[](uint32_t i) const { return data[i]; }
};

// The attributes of a call by position. One that is missing (a caller older than the attribute) or None gives the
// default that is passed.
class Attrs {
 public:
  explicit Attrs(const dvt_call* c) : call_(c) {}
  bool given(uint32_t i) const { return i < call_->n_attr && call_->attr[i].kind != DVT_A_NONE; }
  int64_t i64(uint32_t i, int64_t fallback = 0) const { return given(i) ? scalar<int64_t>(i) : fallback; }
  double f64(uint32_t i, double fallback = 0) const { return given(i) ? scalar<double>(i) : fallback; }
  bool boolean(uint32_t i, bool fallback = false) const { return given(i) ? call_->attr[i].v.i != 0 : fallback; }
  Ints i64s(uint32_t i) const {
    return given(i) ? Ints{call_->attr[i].v.is, call_->attr[i].count} : Ints{nullptr, 0};
  }
  DLDataType dtype(uint32_t i, DLDataType fallback) const { return given(i) ? call_->attr[i].v.dt : fallback; }
  bool is(uint32_t i, const char* text) const {  // a string attribute equals `text`
    return given(i) && call_->attr[i].count == std::strlen(text) &&
           !std::memcmp(call_->attr[i].v.s, text, call_->attr[i].count);
  }
  // A number of any kind as T; of a complex number the real part (imag for its other half).
  template <class T>
  T scalar(uint32_t i) const {
    const dvt_attr& a = call_->attr[i];
    switch (a.kind) {
      case DVT_A_F64: return T(a.v.f);
      case DVT_A_F64S: return T(a.v.fs[0]);
      case DVT_A_U64: return T(a.v.raw);
      default: return T(a.v.i);
    }
  }
  double imag(uint32_t i) const { return call_->attr[i].kind == DVT_A_F64S ? call_->attr[i].v.fs[1] : 0; }

 private:
  const dvt_call* call_;
};

// ---- parallel loops ---------------------------------------------------------------------------------------------

// body(begin, end, worker) over [0, n) on the host's pool, in chunks of at least `grain`; inline where that is one
// chunk. Only inside run and pack.
template <class F>
void parallel_for(uint64_t n, uint64_t grain, F&& body) {
  if (n <= grain) {
    if (n) body(uint64_t{0}, n, uint32_t{0});
    return;
  }
  using Body = std::remove_reference_t<F>;
  host->parallel_for(
      host, n, grain,
      [](void* ctx, uint64_t begin, uint64_t end, uint32_t worker) {
        (*static_cast<Body*>(ctx))(begin, end, worker);
      },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

// ---- queues -----------------------------------------------------------------------------------------------------

// A copy of a call that outlives it: tensors, shapes, strides, attributes and the values of host scalars, in one
// allocation. Device memory is only named, as the protocol promises it to stay. A DVT_A_PROGRAM attribute is not
// copied and reads as None.
class CallCopy {
 public:
  // host_scalars: bit i: input i may be a scalar in host memory. Only a device whose own memory is kDLCPU needs to
  // say.
  explicit CallCopy(const dvt_call* c, uint64_t host_scalars = ~uint64_t{0}) {
    lay_out(c, host_scalars, nullptr, bytes_);
    storage_.reset(new char[bytes_]);
    bytes_ = 0;
    lay_out(c, host_scalars, storage_.get(), bytes_);
  }
  const dvt_call* get() const { return &call_; }
  const dvt_call* operator->() const { return &call_; }

  // For a device whose kernels find its memory elsewhere than the host names it: every address of an operand in
  // device memory, and of the workspace, becomes map(address). Once.
  template <class Map>
  void map_addresses(Map map) {
    const auto each = [&](const DLTensor* const* tensors, uint32_t n) {
      for (uint32_t i = 0; i < n; ++i)
        if (DLTensor* t = const_cast<DLTensor*>(tensors[i]);
            t && t->data && t->device.device_type != 1 /* kDLCPU */)
          t->data = map(t->data);
    };
    each(call_.in, call_.n_in), each(call_.out, call_.n_out);
    if (call_.workspace) call_.workspace = map(call_.workspace);
    for (uint32_t i = 0; call_.packed && i < call_.n_in; ++i)
      if (void*& data = const_cast<dvt_packed&>(call_.packed[i]).data) data = map(data);
  }

  // Overwrites it all: a kernel that still reads the call finds no valid address or size.
  void poison() {
    std::memset(storage_.get(), 0xDB, bytes_);
    std::memset(static_cast<void*>(&call_), 0xDB, sizeof call_);
  }

 private:
  // Copies the parts of the call to base; with base NULL it only counts their bytes.
  void lay_out(const dvt_call* c, uint64_t host_scalars, char* base, size_t& used) {
    call_ = *c;
    call_.struct_size = sizeof call_;
    call_.in = tensors(c->in, c->n_in, host_scalars, base, used);
    call_.out = tensors(c->out, c->n_out, 0, base, used);
    dvt_attr* attr = keep(c->attr, c->n_attr, base, used);
    for (uint32_t i = 0; i < c->n_attr; ++i) {
      dvt_attr a = c->attr[i];
      if (a.kind == DVT_A_STR) a.v.s = keep(a.v.s, a.count, base, used);
      else if (a.kind == DVT_A_I64S) a.v.is = keep(a.v.is, a.count, base, used);
      else if (a.kind == DVT_A_F64S) a.v.fs = keep(a.v.fs, a.count, base, used);
      else if (a.kind == DVT_A_PROGRAM) a = {};
      if (base) attr[i] = a;
    }
    call_.attr = attr;
    call_.packed = c->packed ? keep(c->packed, c->n_in, base, used) : nullptr;
  }
  const DLTensor* const* tensors(const DLTensor* const* from, uint32_t n, uint64_t host_scalars, char* base,
                                 size_t& used) {
    const DLTensor** list = keep(from, n, base, used);
    for (uint32_t i = 0; i < n; ++i) {
      if (!from[i]) continue;
      DLTensor* t = keep(from[i], 1, base, used);
      int64_t* shape = keep(from[i]->shape, size_t(from[i]->ndim), base, used);
      int64_t* strides = keep(from[i]->strides, size_t(from[i]->ndim), base, used);
      char* value = nullptr;
      const bool scalar = from[i]->ndim == 0 && from[i]->device.device_type == 1 /* kDLCPU */ && i < 64 &&
                          (host_scalars >> i & 1) && from[i]->data;
      if (scalar) value = keep(data<const char>(from[i]), bytes(from[i]), base, used);
      if (!base) continue;
      t->shape = shape, t->strides = strides;
      if (scalar) t->data = value, t->byte_offset = 0;
      list[i] = t;
    }
    return list;
  }
  template <class T>
  static std::remove_cv_t<T>* keep(T* from, size_t n, char* base, size_t& used) {
    char* at = base ? base + used : nullptr;
    used += (n * sizeof(T) + 15) / 16 * 16;
    if (at && n) std::memcpy(static_cast<void*>(at), static_cast<const void*>(from), n * sizeof(T));
    return reinterpret_cast<std::remove_cv_t<T>*>(at);
  }
  std::unique_ptr<char[]> storage_;
  size_t bytes_ = 0;
  dvt_call call_{};
};

// Runs body(const dvt_call*) through submit(job), which puts a copyable job() on the call's stream; at once where
// the stream is NULL. body returns a status, which submit's owner keeps as the stream's fault if it is not DVT_OK.
template <class Submit, class Body>
dvt_status enqueue(const dvt_call* c, Submit&& submit, Body body, uint64_t host_scalars = ~uint64_t{0}) {
  if (!c->stream) return body(c);
  auto copy = std::make_shared<CallCopy>(c, host_scalars);
  submit([copy = std::move(copy), body = std::move(body)]() mutable -> dvt_status { return body(copy->get()); });
  return DVT_OK;
}
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_BACKEND_HPP
