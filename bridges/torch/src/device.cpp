// torch's device "dovetail": its list, errors and dtypes, the guard with streams and events, and the hooks.
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <array>
#include <charconv>
#include <map>
#include <mutex>

#include "memory.hpp"
#include "random.hpp"

namespace dovetail_torch {
namespace {
// Never destroyed: tensors, generators and torch's own tables outlive static destructors.
std::vector<DeviceEntry>& entries() {
  static auto& all = *new std::vector<DeviceEntry>;
  return all;
}
thread_local c10::DeviceIndex current = 0;
}  // namespace

const std::vector<DeviceEntry>& devices() { return entries(); }
const DeviceEntry& device_at(c10::DeviceIndex index) {
  const auto& all = entries();
  if (index < 0 || size_t(index) >= all.size()) [[unlikely]] {
    std::string expected;
    for (size_t i = 0; i < all.size(); ++i)
      expected += (i ? ", dovetail:" : "dovetail:") + std::to_string(i) + " (" + all[i].name + ")";
    TORCH_CHECK(false, "there is no device dovetail:", int(index), ": expected one of ", expected);
  }
  return all[size_t(index)];
}
c10::DeviceIndex current_device() { return current; }
void set_current_device(c10::DeviceIndex index) { current = index; }

namespace {
// Names the negative index that Call::positions() has made one far behind the end.
std::string with_negative_index(const std::string& text) {
  constexpr std::string_view before = "index ";
  const size_t at = text.find(before);
  if (at == std::string::npos) return text;
  const char *const from = text.data() + at + before.size(), *const end = text.data() + text.size();
  uint64_t index = 0;
  const char* const to = std::from_chars(from, end, index).ptr;
  if (to == from || index >> 62 != 1) return text;
  std::string named = text.substr(0, at) + "index -" + std::to_string((uint64_t{1} << 63) - index);
  const size_t range = text.find(", expected -"), most = text.find(" to ", range);
  if (most == std::string::npos) return named.append(to, end);
  return named.append(to, text.data() + range) + ", expected 0" + text.substr(most);
}
}  // namespace

void raise(dvr_status status) {
  dvr_error_info info{};
  info.struct_size = sizeof info;
  dvr_last_error(&info);
  std::string text = info.message;
  if (*info.cure && text.find(info.cure) == std::string::npos) text += std::string("; ") + info.cure;
  switch (status) {
    case DVR_TYPE: TORCH_CHECK_TYPE(false, text);
    case DVR_VALUE: TORCH_CHECK_VALUE(false, text);
    case DVR_INDEX: TORCH_CHECK_INDEX(false, with_negative_index(text));
    case DVR_MEMORY: TORCH_CHECK_WITH(OutOfMemoryError, false, text);
    case DVR_NOT_IMPLEMENTED: TORCH_CHECK_NOT_IMPLEMENTED(false, text);
    case DVR_INTERRUPTED: raise_interrupt();
    default: TORCH_CHECK(false, text);
  }
  __builtin_unreachable();
}

namespace {
struct DTypePair {
  at::ScalarType torch;
  DLDataType runtime;
};
constexpr DTypePair kDTypes[] = {
    {at::kFloat, {DVT_FLOAT, 32, 1}},
    {at::kLong, {DVT_INT, 64, 1}},
    {at::kBool, {DVT_BOOL, 8, 1}},
    {at::kBFloat16, {DVT_BFLOAT, 16, 1}},
    {at::kHalf, {DVT_FLOAT, 16, 1}},
    {at::kDouble, {DVT_FLOAT, 64, 1}},
    {at::kInt, {DVT_INT, 32, 1}},
    {at::kShort, {DVT_INT, 16, 1}},
    {at::kChar, {DVT_INT, 8, 1}},
    {at::kByte, {DVT_UINT, 8, 1}},
    {at::kUInt16, {DVT_UINT, 16, 1}},
    {at::kUInt32, {DVT_UINT, 32, 1}},
    {at::kUInt64, {DVT_UINT, 64, 1}},
    {at::kComplexFloat, {DVT_COMPLEX, 64, 1}},
    {at::kComplexDouble, {DVT_COMPLEX, 128, 1}},
    {at::kFloat8_e4m3fn, {DVT_F8_E4M3FN, 8, 1}},
    {at::kFloat8_e5m2, {DVT_F8_E5M2, 8, 1}},
};
}  // namespace

bool to_dl(at::ScalarType from, DLDataType& to) {
  for (const DTypePair& p : kDTypes)
    if (p.torch == from) return to = p.runtime, true;
  return false;
}
at::ScalarType from_dl(DLDataType from) {
  for (const DTypePair& p : kDTypes)
    if (p.runtime.code == from.code && p.runtime.bits == from.bits) return p.torch;
  TORCH_CHECK_TYPE(false, "dovetail: torch has no dtype of code ", int(from.code), " with ", int(from.bits),
                   " bits");
}

// ---- streams: id 0 is the default one, others are their address
dvr_stream* to_runtime(const c10::Stream& s) {
  return s.id() ? reinterpret_cast<dvr_stream*>(s.id()) : dvr_default_stream(device_at(s.device_index()).handle);
}

namespace {
c10::Stream to_torch(dvr_stream* s, c10::DeviceIndex index) {
  const bool is_default = s == dvr_default_stream(device_at(index).handle);
  return c10::Stream(c10::Stream::UNSAFE, torch_device(index), is_default ? 0 : reinterpret_cast<int64_t>(s));
}

// torch never frees a stream, so a device has at most this many, taken in turn.
class StreamPool {
 public:
  dvr_stream* next(c10::DeviceIndex index, int priority) {
    const std::lock_guard lock(mutex_);
    Ring& ring = rings_[std::make_pair(index, std::min(priority, 0))];
    dvr_stream*& s = ring.streams[ring.next++ % ring.streams.size()];
    if (!s) check(dvr_stream_new(device_at(index).handle, priority, &s));
    return s;
  }

 private:
  struct Ring {
    std::array<dvr_stream*, 32> streams{};
    size_t next = 0;
  };
  std::mutex mutex_;
  std::map<std::pair<c10::DeviceIndex, int>, Ring> rings_;
};
StreamPool& stream_pool() {
  static auto& pool = *new StreamPool;
  return pool;
}

dvr_event* event(void* e) { return static_cast<dvr_event*>(e); }

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return c10::DeviceType::PrivateUse1; }
  c10::DeviceIndex deviceCount() const noexcept override { return c10::DeviceIndex(devices().size()); }
  c10::Device getDevice() const override { return torch_device(current); }
  void setDevice(c10::Device d) const override {
    if (d.index() < 0) return;
    device_at(d.index());
    current = d.index();
  }
  c10::Device exchangeDevice(c10::Device d) const override {
    const c10::Device before = getDevice();
    setDevice(d);
    return before;
  }
  void uncheckedSetDevice(c10::Device d) const noexcept override {
    if (d.index() >= 0) current = d.index();
  }
  c10::DeviceCapability getDeviceCapability(c10::Device) const override { return c10::DeviceCapability(); }
  void synchronizeDevice(const c10::DeviceIndex i) const override {
    check(dvr_synchronize(device_at(or_current(i)).handle));
  }

  c10::Stream getStream(c10::Device d) const override {
    const c10::DeviceIndex i = or_current(d.index());
    return to_torch(dvr_current_stream(device_at(i).handle), i);
  }
  c10::Stream getDefaultStream(c10::Device d) const override {
    return c10::Stream(c10::Stream::UNSAFE, torch_device(or_current(d.index())), 0);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device d, bool high) const override {
    return getNewStream(d, high ? -1 : 0);
  }
  c10::Stream getNewStream(c10::Device d, int priority) const override {
    const c10::DeviceIndex i = or_current(d.index());
    return to_torch(stream_pool().next(i, priority), i);
  }
  c10::Stream exchangeStream(c10::Stream s) const override {
    const c10::Stream before = getStream(s.device());
    check(dvr_set_current_stream(device_at(s.device_index()).handle, to_runtime(s)));
    return before;
  }
  void* getStreamNativeHandle(const c10::Stream s) const override { return dvr_stream_native(to_runtime(s)); }
  bool queryStream(const c10::Stream& s) const override {
    uint32_t idle = 1;
    check(dvr_stream_query(to_runtime(s), &idle));
    return idle != 0;
  }
  void synchronizeStream(const c10::Stream& s) const override { check(dvr_stream_synchronize(to_runtime(s))); }
  void recordDataPtrOnStream(const c10::DataPtr& p, const c10::Stream& s) const override {
    if (p.get_context()) check(dvr_use(static_cast<dvr_buffer*>(p.get_context()), to_runtime(s), 0));
  }

  void record(void** e, const c10::Stream& s, const c10::DeviceIndex, const c10::EventFlag flag) const override {
    if (!*e) {
      dvr_event* made = nullptr;
      check(dvr_event_new(device_at(s.device_index()).handle, flag == c10::EventFlag::BACKEND_DEFAULT, &made));
      *e = made;
    }
    check(dvr_event_record(event(*e), to_runtime(s)));
  }
  void destroyEvent(void* e, const c10::DeviceIndex) const noexcept override { dvr_event_free(event(e)); }
  void block(void* e, const c10::Stream& s) const override {
    if (e) check(dvr_event_wait(event(e), to_runtime(s)));
  }
  bool queryEvent(void* e) const override {
    uint32_t done = 1;
    if (e) check(dvr_event_query(event(e), &done));
    return done != 0;
  }
  void synchronizeEvent(void* e) const override {
    if (e) check(dvr_event_synchronize(event(e)));
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex) const override {
    TORCH_CHECK(from && to, "Both events must be recorded before calculating elapsed time.");
    uint64_t ns = 0;
    check(dvr_event_elapsed_ns(event(from), event(to), &ns));
    return double(ns) * 1e-6;
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return !devices().empty(); }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return isAvailable(); }
  void init() const override {}
  c10::DeviceIndex deviceCount() const override { return c10::DeviceIndex(devices().size()); }
  c10::DeviceIndex getCurrentDevice() const override { return current; }
  void setCurrentDevice(c10::DeviceIndex i) const override {
    device_at(i);
    current = i;
  }
  c10::DeviceIndex exchangeDevice(c10::DeviceIndex i) const override {
    const c10::DeviceIndex before = current;
    if (i >= 0) setCurrentDevice(i);
    return before;
  }
  c10::DeviceIndex maybeExchangeDevice(c10::DeviceIndex i) const override { return exchangeDevice(i); }
  at::Device getDeviceFromPtr(void*) const override {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "dovetail: the device of a bare pointer is not known; pass tensors");
  }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex i) const override {
    return default_generator(or_current(i));
  }
  at::Generator getNewGenerator(c10::DeviceIndex i) const override { return new_generator(or_current(i)); }
  bool isPinnedPtr(const void* p) const override { return is_pinned(p); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return pinned_allocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& s, size_t bytes) const override { resize_storage(s, bytes); }
};
}  // namespace
}  // namespace dovetail_torch

// ---- what Python calls through ctypes
using namespace dovetail_torch;

// Makes the named devices dovetail:0, dovetail:1, ... Returns NULL, or what is wrong.
extern "C" DVT_EXPORT const char* dovetail_torch_start(const char* const* names, uint32_t n) {
  static std::string problem;
  for (uint32_t i = 0; i < n; ++i) {
    dvr_device* const d = dvr_find_device(names[i]);
    dvr_device_info info{};
    info.struct_size = sizeof info;
    if (!d || dvr_get_device_info(d, &info) != DVR_OK) {
      problem = std::string("there is no device '") + names[i] + "'";
      return problem.c_str();
    }
    entries().push_back({d, names[i], info.host_mapped != 0, (info.caps & DVT_CAP_FORK_SAFE) != 0});
  }
  c10::SetAllocator(c10::DeviceType::PrivateUse1, allocator());
  if (!at::isPrivateUse1HooksRegistered()) at::RegisterPrivateUse1HooksInterface(new Hooks);
  return nullptr;
}
