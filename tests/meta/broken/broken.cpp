// The backend "meta": the good device with the fault that the environment selects.
#include "broken.hpp"

#include <cstdlib>
#include <string>

// backends/template/src/device.cpp, compiled with its functions renamed.
extern "C" dvt_status good_backend_v1(const dvt_host* host, const dvt_backend** out);
dvt_status good_launch(dvt_device*, const dvt_call*, Work);

Device good;
static Device& device = *new Device;  // never destroyed, like its queues

dvt_status launch(dvt_device* d, const dvt_call* c, Work work) { return device.launch(d, c, work); }

dvt_kernel& Device::row(const char* op, const std::vector<DLDataType>& types) {
  for (dvt_kernel& row : rows) {
    bool fits = !std::strcmp(row.op, op);
    for (size_t i = 0; fits && i < types.size(); ++i) fits = dvt::same(row.operands[i].dtype, types[i]);
    if (fits) return row;
  }
  std::abort();
}

Fault in_row(const char* name, const char* op, const std::vector<DLDataType>& types, dvt::Row::Run run) {
  return {name, [=](Device& d) { d.row(op, types).run = run; }};
}

static Faults all_faults() {
  Faults all = elementwise_faults();
  for (const Faults& more : {other_kernel_faults(), device_faults()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

static dvt_status break_on_purpose(const char* wanted) {
  std::string known;
  for (const Fault& fault : all_faults()) {
    if (!std::strcmp(fault.name, wanted)) return fault.apply(device), DVT_OK;
    known += std::string(" ") + fault.name;
  }
  return DVT_FAIL(DVT_INVALID, "DOVETAIL_BROKEN is %s, expected one of%s", wanted, known.c_str());
}

extern "C" dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out) {
  const dvt_backend* backend;
  if (dvt_status s = good_backend_v1(host, &backend)) return s;
  good.backend = *backend, good.streams = *backend->streams, good.launch = good_launch;
  for (uint64_t i = 0; i < backend->n_kernels; ++i) good.rows.push_back(*backend->kernels[i]);
  good.backend.name = "meta", good.backend.version = "1";
  complete(good);

  device = good;
  if (const char* fault = std::getenv("DOVETAIL_BROKEN"))
    if (dvt_status s = break_on_purpose(fault)) return s;

  static std::vector<const dvt_kernel*>& table = *new std::vector<const dvt_kernel*>;
  for (const dvt_kernel& row : device.rows) table.push_back(&row);
  device.backend.kernels = table.data(), device.backend.n_kernels = table.size();
  device.backend.streams = &device.streams;
  *out = &device.backend;
  return DVT_OK;
}

// For the tests: the list of faults.
extern "C" DVT_EXPORT const char* const* broken_faults() {
  static std::vector<const char*>& names = *new std::vector<const char*>;
  static const Faults& faults = *new Faults(all_faults());
  if (names.empty()) {
    for (const Fault& fault : faults) names.push_back(fault.name);
    names.push_back(nullptr);
  }
  return names.data();
}
