// Errors on one stream after the calls have returned: faults that kernels find, in device memory where
// they write them (kernels/common/fault.hpp), with the newest copy that the host can read; and SYCL's asynchronous
// errors. The stream copies the fault in order, before each event and each wait.
#pragma once
#include <atomic>
#include <mutex>
#include <string>
#include <sycl/sycl.hpp>

#include "dovetail/backend.hpp"
#include "kernels/common/fault.hpp"

namespace gpu {
class Faults {
 public:
  Faults(const sycl::context&, const sycl::device&);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  // The address at which a kernel of the next launch may write a fault.
  Fault* slot();
  Fault* used() const { return on_device_; }  // nullptr: slot() was never asked for
  // Enqueues the copy for the host, where a kernel may have written since the last one.
  void publish(sycl::queue&);
  // An asynchronous error of SYCL's: the first one.
  void keep(dvt_status, const char* what);
  bool has_error();
  // Reports what went wrong since the last report. To be called after a wait.
  dvt_status report(sycl::queue&);
  void forget_error();
  void restart(sycl::queue&);  // a new one: no kernel of the old one will raise any more

 private:
  const sycl::context context_;
  const sycl::device device_;
  std::mutex mutex_;
  std::atomic<bool> written_ = false;  // may have been
  Fault* on_device_ = nullptr;         // allocated when first needed
  Fault* on_host_ = nullptr;
  // Reported faults leave the device's memory in stream order, and copies of them may still be under way then:
  // those are of an earlier round. The byte pattern of a memset.
  uint8_t round_ = 0;
  dvt_status error_ = DVT_OK;
  std::string what_;
};
}  // namespace gpu
