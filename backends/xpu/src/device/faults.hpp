// Faults that kernels of one stream find, in device memory where they write them (kernels/common/fault.hpp), and
// the newest copy of it that the host can read. The stream copies it in order, before each event and each wait.
#pragma once
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <sycl/sycl.hpp>

#include "dovetail/backend.hpp"
#include "kernels/common/fault.hpp"

namespace xpu {
class Faults {
 public:
  Faults(const sycl::context&, const sycl::device&);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  // Where a kernel of the next launch may write a fault.
  Fault* slot();
  // Enqueues the copy for the host, where a kernel may have written since the last one.
  void publish(sycl::queue&);
  // An asynchronous error of SYCL's.
  void keep(const std::string& error);
  // The fault that was published, if it was not told yet: once, through host->fail. To be called after a wait.
  dvt_status tell(sycl::queue&);

 private:
  const sycl::context context_;
  const sycl::device device_;
  std::mutex mutex_;
  std::atomic<bool> written_ = false;  // may have been
  Fault* on_device_ = nullptr;         // allocated when first needed
  Fault* on_host_ = nullptr;
  uint64_t told_ = 0;  // the call whose fault was told last
  std::string error_;
};
}  // namespace xpu
