// What Dovetail does not serve runs by torch's kernel for the CPU: on a device in host memory without a copy,
// elsewhere with one per operand. Counted, warned about once per op, and an error where DOVETAIL_TORCH_FALLBACK
// says so.
#include <ATen/Functions.h>

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <map>
#include <mutex>

#include "call.hpp"
#include "random.hpp"

namespace dovetail_torch {
namespace {
enum class Policy { allow, warn, error };
std::atomic<Policy> policy{Policy::warn};
std::atomic<bool> counting{false};
std::atomic<int64_t> calls{0};

std::mutex report_mutex;
using Report =
    std::map<std::string, std::pair<int64_t, bool>>;  // by op: how often since the last reset; warned about
Report& report() {
  static auto& r = *new Report;
  return r;
}

void count_fallback(const std::string& name) {
  const Policy now = policy.load();
  TORCH_CHECK_NOT_IMPLEMENTED(now != Policy::error, "[", name, "] Dovetail does not serve this call: ",
                              "DOVETAIL_TORCH_FALLBACK=error forbids torch's kernel for the CPU; allow it with ",
                              "dovetail_torch.fallback('allow'), or bring the operands to the CPU");
  bool first;
  {
    const std::lock_guard lock(report_mutex);
    auto& [n, warned] = report()[name];
    ++n;
    first = !std::exchange(warned, true);
  }
  if (first && now == Policy::warn)
    TORCH_WARN("[", name, "] runs by torch's kernel for the CPU, as Dovetail does not serve it; ",
               "dovetail_torch.fallback_report() lists all such ops (this warning comes once per op)");
}

// ---- tensors between the device and the host
// The same memory as a tensor of the CPU.
Tensor alias_on_host(const Tensor& t, bool write) {
  check(dvr_host_access(buffer_of(t), write));
  c10::Storage storage(c10::Storage::use_byte_size_t(), t.storage().nbytes(),
                       c10::DataPtr(const_cast<void*>(t.storage().data()), at::kCPU), c10::GetCPUAllocator(), true);
  Tensor host = at::detail::make_tensor<c10::TensorImpl>(std::move(storage),
                                                         c10::DispatchKeySet(c10::DispatchKey::CPU), t.dtype());
  host.unsafeGetTensorImpl()->set_sizes_and_strides(t.sizes(), t.strides(), t.storage_offset());
  if (t.is_conj()) host._set_conj(true);
  if (t.is_neg()) host._set_neg(true);
  return host;
}

// Kernels that write in place see the operand's strides.
Tensor copy_with_strides(const Tensor& t) {
  Tensor host = to_host(t);
  if (host.strides() == t.strides() || !t.is_non_overlapping_and_dense()) return host;
  return at::empty_strided(t.sizes(), t.strides(), host.options()).copy_(host);
}

// The host's memory becomes the device's.
Tensor adopt(const Tensor& host, c10::DeviceIndex index) {
  auto owner = std::make_unique<c10::Storage>(host.storage());
  dvr_buffer* buffer = nullptr;
  void* const data = const_cast<void*>(owner->data());
  check(dvr_adopt(
      device_at(index).handle, data, [](void* p) { delete static_cast<c10::Storage*>(p); }, owner.get(), &buffer));
  (void)owner.release();
  c10::Storage storage(c10::Storage::use_byte_size_t(), host.storage().nbytes(), data_ptr(buffer, data, index),
                       allocator(), true);
  Tensor t = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), host.dtype());
  t.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(), host.storage_offset());
  return t;
}

Tensor to_device(const Tensor& host, c10::DeviceIndex index) {
  if (!host.defined() || !host.is_cpu() || host.layout() != c10::kStrided) return host;
  const auto options = host.options().device(torch_device(index));
  if (host._is_zerotensor()) return at::zeros(host.sizes(), options);
  const Tensor plain = host.resolve_conj().resolve_neg();
  if (device_at(index).host_mapped && plain.numel()) return adopt(plain, index);
  return at::empty_strided(plain.sizes(), plain.strides(), options).copy_(plain);
}

// One call on the host: arguments there and back.
class HostCall {
 public:
  HostCall(const c10::OperatorHandle& op, torch::jit::Stack* stack)
      : op_(op),
        stack_(stack),
        args_(op.schema().arguments()),
        base_(stack->size() - args_.size()),
        original_(stack->begin() + ptrdiff_t(base_), stack->end()) {}

  void run() {
    for (size_t k = 0; k < args_.size(); ++k) {
      const auto* alias = args_[k].alias_info();
      bring((*stack_)[base_ + k], alias && alias->isWrite());
    }
    for (const Tensor& t : written_on_host_) expect_same_device(torch_device(index_), t);
    index_ = or_current(index_);
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_);
    for (Moved& m : moved_)
      if (m.write) write_back(m);
    const auto& returns = op_.schema().returns();
    const size_t first = stack_->size() - returns.size();
    for (size_t k = 0; k < returns.size(); ++k) give_back((*stack_)[first + k], returns[k].alias_info());
  }

 private:
  struct Moved {
    Tensor device, host;
    bool write;
    const void* data;
  };

  Tensor bring(const Tensor& t, bool write) {
    if (!t.defined()) return t;
    if (!t.is_privateuseone()) {
      if (write && t.is_cpu()) written_on_host_.push_back(t);
      return t;
    }
    if (index_ >= 0) expect_same_device(torch_device(index_), t);
    index_ = t.device().index();
    if (t.layout() != c10::kStrided) return t.cpu();
    const bool shared = device_at(index_).host_mapped && !t._is_zerotensor() && buffer_of(t);
    const Tensor host = shared ? alias_on_host(t, write) : write ? copy_with_strides(t) : to_host(t);
    moved_.push_back({t, host, write, shared && host.numel() ? host.const_data_ptr() : nullptr});
    return host;
  }
  void bring(c10::IValue& v, bool write) {
    if (v.isTensor()) {
      v = bring(v.toTensor(), write);
    } else if (v.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& t : v.toTensorVector()) list.push_back(bring(t, write));
      v = std::move(list);
    } else if (v.isOptionalTensorList()) {
      c10::List<OptionalTensor> list;
      for (const OptionalTensor& t : v.toOptionalTensorVector())
        list.push_back(t ? OptionalTensor(bring(*t, write)) : t);
      v = std::move(list);
    } else if (v.isDevice() && v.toDevice().is_privateuseone()) {
      if (index_ < 0) index_ = v.toDevice().index();
      v = c10::Device(at::kCPU);
    } else if (v.isGenerator() && v.toGenerator().device().is_privateuseone()) {
      v = host_generator(v.toGenerator());
    }
  }

  void write_back(const Moved& m) {
    m.device._set_conj(m.host.is_conj());  // kernels may leave a result conjugated
    m.device._set_neg(m.host.is_neg());
    if (m.host.sizes() != m.device.sizes()) resize_tensor(m.device, m.host.sizes());
    else if (m.data && m.host.const_data_ptr() == m.data) return;  // was written in place
    const_cast<Tensor&>(m.device).copy_(m.host);
  }

  Tensor give_back(const Tensor& host) {
    if (!host.defined() || host.layout() != c10::kStrided) return host;
    for (const Moved& m : moved_) {
      if (m.host.layout() != c10::kStrided || !host.is_alias_of(m.host)) continue;
      return host.is_same(m.host) ? m.device : to_device(host.clone(), index_);
    }
    return to_device(host, index_);
  }
  void give_back(c10::IValue& v, const c10::AliasInfo* alias) {
    if (alias && alias->isWrite()) {
      for (size_t k = 0; k < args_.size(); ++k)
        if (args_[k].alias_info() && *args_[k].alias_info() == *alias) {
          v = original_[k];
          return;
        }
    } else if (v.isTensor()) {
      v = give_back(v.toTensor());
    } else if (v.isTensorList()) {
      c10::List<Tensor> list;
      for (const Tensor& t : v.toTensorVector()) list.push_back(give_back(t));
      v = std::move(list);
    }
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack* stack_;
  const std::vector<c10::Argument>& args_;
  size_t base_;
  std::vector<c10::IValue> original_;
  std::vector<Moved> moved_;
  std::vector<Tensor> written_on_host_;
  c10::DeviceIndex index_ = -1;
};
}  // namespace

bool counts_calls() { return counting.load(std::memory_order_relaxed); }
void count_call() { calls.fetch_add(1, std::memory_order_relaxed); }

void fall_back_boxed(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  count_fallback(toString(op.operator_name()));
  HostCall(op, stack).run();
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back_boxed>()); }
TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back_boxed>());
}
TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, m) { m.fallback(torch::CppFunction::makeFallthrough()); }
}  // namespace dovetail_torch

// ---- what Python calls through ctypes
using namespace dovetail_torch;

extern "C" DVT_EXPORT void dovetail_torch_set_fallback(int mode) {
  policy = Policy(mode);
}  // 0 allow, 1 warn, 2 error
extern "C" DVT_EXPORT void dovetail_torch_count_calls(int on) { counting = on != 0; }
// Calls that Dovetail served while counting was on; then starts at 0.
extern "C" DVT_EXPORT int64_t dovetail_torch_served() { return calls.exchange(0); }
// "op count" lines of the ops that fell back since the last reset.
extern "C" DVT_EXPORT const char* dovetail_torch_fallbacks(int reset) {
  static thread_local std::string text;
  text.clear();
  const std::lock_guard lock(report_mutex);
  for (auto& [name, entry] : report()) {
    if (entry.first) text += name + " " + std::to_string(entry.first) + "\n";
    if (reset) entry.first = 0;
  }
  return text.c_str();
}
