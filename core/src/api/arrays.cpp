// Arrays: made, copied, indexed, shared with other libraries.
#include <atomic>

#include "api/api.hpp"
#include "device/pinned.hpp"
#include "dispatch/dlpack.hpp"
#include "dispatch/host_memory.hpp"
#include "dispatch/indexing.hpp"
#include "dispatch/numbers.hpp"
#include "rules/rules.hpp"
#include "text.hpp"

namespace dovetail::api {
DType to_dtype(DLDataType dl) {
  if (const auto t = dtype_of(dl)) return *t;
  throw Error(ErrorKind::type, "a dtype of code " + std::to_string(dl.code) + ", " + std::to_string(dl.bits) +
                                   " bits, " + std::to_string(dl.lanes) +
                                   " lanes: expected one of dovetail's dtypes");
}

std::span<const int64_t> to_shape(uint32_t ndim, const int64_t* shape) {
  if (ndim) expect(shape, "the shape");
  return {shape, ndim};
}

bool is_number(const dvr_tensor& t) { return !t.buffer && t.view.ndim == 0 && t.view.data; }

Tensor to_tensor(const dvr_tensor* given, const char* what) {
  const dvr_tensor& from = expect(given, what);
  if (!from.buffer) throw Error(ErrorKind::type, std::string(what) + " has no buffer: expected an array");
  const DLTensor& v = from.view;
  if (v.ndim < 0) throw Error(ErrorKind::value, std::string(what) + " has a negative number of axes");
  Storage& storage = to(from.buffer);
  Tensor t;
  t.set_type(to_dtype(v.dtype), storage.device);
  t.set_shape(to_shape(uint32_t(v.ndim), v.shape));
  if (v.strides) {
    for (int i = 0; i < v.ndim; ++i) {
      if (v.strides[i] < 0)
        throw Error(ErrorKind::value, std::string(what) + " has a stride of " + std::to_string(v.strides[i]) +
                                          ": expected at least 0");
      t.stride(i) = v.strides[i];
    }
    t.update_dense();
  }
  if (t.numel && !v.data) throw Error(ErrorKind::value, std::string(what) + " has elements, but view.data is NULL");
  retain(&storage);
  t.storage = &storage;
  t.view.data = v.data;
  return t;
}

void put_view(const Tensor& t, dvr_tensor& out) {
  out.view = t.view;
  std::memcpy(out.dims, t.dims, sizeof(int64_t) * t.rank());
  std::memcpy(out.dims + DVT_MAX_NDIM, t.dims + DVT_MAX_NDIM, sizeof(int64_t) * t.rank());
  out.view.shape = out.dims, out.view.strides = out.dims + DVT_MAX_NDIM;
}

void put(Tensor&& t, dvr_tensor& out) {
  put_view(t, out);
  out.buffer = reinterpret_cast<dvr_buffer*>(std::exchange(t.storage, nullptr));
}

namespace {
void put_number(dvr_tensor* out, DLDataType dtype, const void* bits, size_t size) {
  if (!out) return;
  *out = {};
  out->view.device = dl_device(kHostMemory, 0);
  out->view.dtype = dtype;
  out->view.shape = out->dims, out->view.strides = out->dims + DVT_MAX_NDIM;
  out->view.data = out->view.strides;
  std::memcpy(out->view.data, bits, size);
}

DLTensor on_host(const Tensor& t, void* data) {
  DLTensor host = t.view;
  host.data = data;
  host.device = dl_device(kHostMemory, 0);
  return host;
}

Stream& stream_for(const Tensor& t, dvr_stream* s) {
  if (!s) return current_stream(*t.device);
  Stream& stream = to(s);
  if (&stream.device != t.device)
    throw Error(ErrorKind::value, "a stream of " + stream.device.name + " for an array on " + t.device->name +
                                      ": expected one of the array's device");
  return stream;
}

void expect_dense(const Tensor& t) {
  if (!t.dense)
    throw Error(ErrorKind::value, "an array with strides " + to_string(t.strides()) + " for shape " +
                                      to_string(t.shape()) + ": expected a row-major one; dvr_copy makes one");
}

// Another library's tensor while it is imported: the caller owns it until that has succeeded. The array that shares
// it may be gone before that, or live on.
class Lent {
 public:
  explicit Lent(dlpack::ManagedVersioned& original) : tensor(original), original_(original) {
    tensor.context = this;
    tensor.deleter = [](dlpack::ManagedVersioned* m) {
      auto* self = static_cast<Lent*>(m->context);
      if (State open = State::open; !self->state_.compare_exchange_strong(open, State::unused)) self->end();
    };
  }
  // `taken`: the deleter was or will be called.
  void settle(bool taken, bool owned) {
    owned_ = owned;
    State open = State::open;
    if (!taken || !state_.compare_exchange_strong(open, State::settled)) end();
  }
  dlpack::ManagedVersioned tensor;

 private:
  enum class State : uint8_t { open, unused, settled };
  void end() {
    if (owned_ && original_.deleter) original_.deleter(&original_);
    delete this;
  }
  dlpack::ManagedVersioned& original_;
  std::atomic<State> state_{State::open};
  bool owned_ = false;
};

// Copies `from` into the elements that `to` names.
void copy(Tensor target, Tensor from) {
  if (!from.device) from = from.dtype == target.dtype ? from : cast_scalar(from, target.dtype);
  if (from.device && from.device != target.device) from = to_device(from, *target.device);
  if (from.dtype != target.dtype) from = cast(from, target.dtype, *target.device);
  if (!from.device) from = materialise(from, *target.device);
  if (!broadcasts_to(from.shape(), target.shape()))
    throw Error(ErrorKind::value,
                "shape " + to_string(from.shape()) + " does not broadcast to " + to_string(target.shape()));
  if (overlap(from, target)) from = compact(from);
  copy_into(target, broadcast_view(from, target.shape()));
}
}  // namespace
}  // namespace dovetail::api

using namespace dovetail;
using namespace dovetail::api;

dvr_status dvr_empty(dvr_device* device, DLDataType dtype, uint32_t ndim, const int64_t* shape, dvr_tensor* out) {
  return guarded("empty", [&] {
    dvr_tensor& result = expect(out, "the result");
    put(empty_tensor(to_dtype(dtype), to_shape(ndim, shape), to(device)), result);
  });
}

dvr_status dvr_from_host(dvr_device* device, DLDataType dtype, uint32_t ndim, const int64_t* shape,
                         const void* data, dvr_tensor* out) {
  return guarded("from_host", [&] {
    dvr_tensor& result = expect(out, "the result");
    Tensor t = empty_tensor(to_dtype(dtype), to_shape(ndim, shape), to(device));
    if (t.numel) expect(static_cast<const char*>(data), "the data");
    write_elements(t, data);
    put(std::move(t), result);
  });
}

void dvr_tensor_release(dvr_tensor* t) {
  if (t) dvr_release(std::exchange(t->buffer, nullptr));
}

void dvr_number_bool(dvr_tensor* out, uint32_t value) {
  const uint8_t byte = value != 0;
  put_number(out, {DVT_BOOL, 8, 1}, &byte, 1);
}
void dvr_number_i64(dvr_tensor* out, int64_t value) { put_number(out, {DVT_INT, 64, 1}, &value, 8); }
void dvr_number_u64(dvr_tensor* out, uint64_t value) { put_number(out, {DVT_UINT, 64, 1}, &value, 8); }
void dvr_number_f64(dvr_tensor* out, double value) { put_number(out, {DVT_FLOAT, 64, 1}, &value, 8); }
void dvr_number_c128(dvr_tensor* out, double real, double imaginary) {
  const double parts[2] = {real, imaginary};
  put_number(out, {DVT_COMPLEX, 128, 1}, parts, 16);
}

dvr_status dvr_read(const dvr_tensor* from, void* memory) {
  return guarded("read", [&] {
    const Tensor t = to_tensor(from, "the array");
    if (t.numel) expect(static_cast<char*>(memory), "the memory");
    download(t, memory);
  });
}

dvr_status dvr_write(const dvr_tensor* array, const void* memory) {
  return guarded("write", [&] {
    Tensor t = to_tensor(array, "the array");
    if (t.numel) expect(static_cast<const char*>(memory), "the memory");
    write_elements(t, memory);
  });
}

dvr_status dvr_read_async(const dvr_tensor* from, void* memory, dvr_stream* stream) {
  return guarded("read_async", [&] {
    const Tensor t = to_tensor(from, "the array");
    expect_dense(t);
    if (!t.numel) return;
    expect(static_cast<char*>(memory), "the memory");
    Stream& s = stream_for(t, stream);
    use(*t.storage, s, false);
    const DLTensor host = on_host(t, memory);
    if (!is_packed(t.dtype) && is_pinned(*t.device, memory, t.bytes())) copy_pinned(*t.device, s, host, t.view);
    else copy_bytes(*t.device, s, host, t.view);
  });
}

dvr_status dvr_write_async(const dvr_tensor* array, const void* memory, dvr_stream* stream) {
  return guarded("write_async", [&] {
    const Tensor t = to_tensor(array, "the array");
    expect_dense(t);
    if (!t.numel) return;
    expect(static_cast<const char*>(memory), "the memory");
    Stream& s = stream_for(t, stream);
    value_changes(*t.storage);
    use(*t.storage, s, true);
    const DLTensor host = on_host(t, const_cast<void*>(memory));
    if (!is_packed(t.dtype) && is_pinned(*t.device, memory, t.bytes())) copy_pinned(*t.device, s, t.view, host);
    else copy_bytes(*t.device, s, t.view, host);
  });
}

dvr_status dvr_copy(const dvr_tensor* target, const dvr_tensor* from) {
  return guarded("copy", [&] {
    const dvr_tensor& source = expect(from, "the source");
    const bool number = is_number(source);
    copy(to_tensor(target, "the target"),
         number ? host_scalar(to_dtype(source.view.dtype), source.view.data) : to_tensor(from, "the source"));
  });
}

dvr_status dvr_view(const dvr_tensor* x, const dvr_index* items, uint32_t n_items, dvr_tensor* out) {
  return guarded("view", [&] {
    dvr_tensor& result = expect(out, "the result");
    const Tensor t = to_tensor(x, "the array");
    if (n_items) expect(items, "the list of items");
    std::vector<IndexItem> read(n_items);
    for (uint32_t i = 0; i < n_items; ++i) {
      if (items[i].kind > DVR_ELLIPSIS)
        throw Error(ErrorKind::value, "an item of kind " + std::to_string(items[i].kind) +
                                          ": expected DVR_INDEX_AT, DVR_SLICE, DVR_NEW_AXIS or DVR_ELLIPSIS");
      read[i] = {IndexItem::Kind(items[i].kind), items[i].start, items[i].stop, items[i].step};
    }
    Region r = select(t, read);
    put(std::move(r.view), result);
  });
}

dvr_status dvr_to_dlpack(const dvr_tensor* x, DLManagedTensorVersioned** out) {
  return guarded("to_dlpack", [&] {
    DLManagedTensorVersioned*& result = expect(out, "the result");
    auto e = dlpack::export_array(to_tensor(x, "the array"), {.copy = false});
    result = reinterpret_cast<DLManagedTensorVersioned*>(&e.release()->versioned);
  });
}

dvr_status dvr_from_dlpack(DLManagedTensorVersioned* from, dvr_device* device, uint32_t copy, dvr_tensor* out) {
  static_assert(sizeof(DLManagedTensorVersioned) == sizeof(dlpack::ManagedVersioned));
  return guarded("from_dlpack", [&] {
    dvr_tensor& result = expect(out, "the result");
    Device& d = to(device);
    if (copy > DVR_COPY_NEVER)
      throw Error(ErrorKind::value, "copy " + std::to_string(copy) + ": expected one of DVR_COPY_*");
    auto& original = *reinterpret_cast<dlpack::ManagedVersioned*>(&expect(from, "the tensor"));
    auto* const lent = new Lent(original);
    std::optional<bool> wish;
    if (copy != DVR_COPY_IF_NEEDED) wish = copy == DVR_COPY_ALWAYS;
    bool taken = false;
    Tensor t;
    try {
      dlpack::Foreign in(&lent->tensor);
      try {
        t = dlpack::import_array(in, dlpack::home_of(in.tensor->device, d), d, wish);
        taken = in.taken;
        if (t.device != &d) t = to_device(t, d);
      } catch (...) {
        taken = in.taken;
        throw;
      }
    } catch (...) {
      lent->settle(taken, false);
      throw;
    }
    lent->settle(taken, true);
    put(std::move(t), result);
  });
}
