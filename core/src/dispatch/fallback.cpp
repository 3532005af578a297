// The last choice: an op that a device has neither as kernel nor as decomposition runs on a cpu device of the host.
#include <cstdio>
#include <map>
#include <mutex>

#include "dispatch/execute.hpp"

namespace dovetail {
namespace {
std::atomic<Fallback> mode{Fallback::warn};
std::mutex mutex;
struct Count {
  uint64_t calls = 0;
  bool warned = false;
};
std::map<std::pair<std::string, std::string>, Count> counts;  // (op, device)
}  // namespace

void (*on_warning)(const std::string&) = [](const std::string& text) {
  std::fprintf(stderr, "dovetail: %s\n", text.c_str());
};

void set_fallback(Fallback m) {
  mode.store(m);
  forget_plans();
}
Fallback fallback() { return mode.load(); }

std::vector<FallbackCount> fallback_report(bool reset) {
  std::lock_guard lock(mutex);
  std::vector<FallbackCount> report;
  for (auto& [key, count] : counts) report.push_back({key.first, key.second, count.calls});
  if (reset) counts.clear();
  return report;
}

Device* host_device(const Device& other) {
  for (Device* d : devices())
    if (d->props.kind == DVT_KIND_CPU && d != &other && other.props.kind != DVT_KIND_CPU) return d;
  return nullptr;
}

void run_on_host(Invocation& inv) {
  Device* host = host_device(*inv.device);
  if (!host)
    inv.fail(ErrorKind::not_implemented, "not supported on " + inv.device->name + ", and no cpu device is at hand");
  bool warn = fallback() == Fallback::warn;
  {
    std::lock_guard lock(mutex);
    Count& count = counts[{inv.op.spec.name, inv.device->name}];
    ++count.calls;
    warn = warn && !count.warned;
    count.warned |= warn;
  }
  if (warn)
    on_warning("[" + inv.op.spec.name + "] runs on " + host->name + ": " + inv.device->name +
               " has no kernel for it. dovetail.fallback('error') forbids this, 'allow' silences it");
  std::vector<Tensor> moved;
  moved.reserve(inv.n_in);
  std::vector<const Tensor*> in;
  for (int i = 0; i < inv.n_in; ++i) {
    const Tensor* t = inv.in[i];
    if (t && t->device) t = &moved.emplace_back(to_device(*t, *host));
    in.push_back(t);
  }
  Tensor results[kMaxOutputs];
  Attrs attrs = inv.attrs;  // rules write to them, and nodes of programs share theirs
  call(inv.op, host, in.data(), inv.n_in, attrs, results);
  for (uint32_t i = 0; i < inv.op.spec.n_out; ++i) *inv.out[i] = to_device(results[i], *inv.device);
}
}  // namespace dovetail
