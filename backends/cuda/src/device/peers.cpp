#include "device/peers.hpp"

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "dovetail/backend.hpp"

namespace gpu {
namespace {
CUmemoryPool pool_of(const Context& context) {
  CUmemoryPool pool;
  GPU_CALL(cuDeviceGetMemPool(&pool, context.device()));
  return pool;
}

// Gives one device access to the other's memory pool, which cuCtxEnablePeerAccess does not. The destructor revokes
// it unless keep() was called.
class Access {
 public:
  Access(const Context& from, const Context& to) : device_(from.device()), pool_(pool_of(to)) {
    check(set(CU_MEM_ACCESS_FLAGS_PROT_READWRITE), "cuMemPoolSetAccess");
  }
  ~Access() {
    if (!kept_) set(CU_MEM_ACCESS_FLAGS_PROT_NONE);
  }
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
  void keep() { kept_ = true; }

 private:
  CUresult set(CUmemAccess_flags flags) const {
    const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device_}, flags};
    return driver().cuMemPoolSetAccess(pool_, &access, 1);
  }

  const CUdevice device_;
  const CUmemoryPool pool_;
  bool kept_ = false;
};

// Memory for a trial. Nothing uses it any more when it goes.
class Block {
 public:
  Block(const Context& of, size_t bytes, CUstream stream) : stream_(stream) {
    GPU_CALL(cuMemAllocFromPoolAsync(&address_, bytes, pool_of(of), stream));
  }
  ~Block() {
    driver().cuMemFreeAsync(address_, stream_);
    driver().cuStreamSynchronize(stream_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  CUdeviceptr address() const { return address_; }

 private:
  const CUstream stream_;
  CUdeviceptr address_ = 0;
};

// Copies data to the other GPU and back, and compares: behind an active IOMMU copies may be lost without an error.
bool arrives(const Context& own, const Context& other, CUstream stream) {
  std::vector<uint32_t> sent(16 << 10), got(sent.size());
  std::iota(sent.begin(), sent.end(), uint32_t(own.device() + 1) << 16);  // not what another trial has left there
  const size_t bytes = sent.size() * sizeof sent[0];
  const Block here(own, bytes, stream), there(other, bytes, stream);
  GPU_CALL(cuMemcpyAsync(here.address(), address_of(sent.data()), bytes, stream));
  GPU_CALL(cuMemcpyPeerAsync(there.address(), other.handle(), here.address(), own.handle(), bytes, stream));
  GPU_CALL(cuMemcpyAsync(here.address(), address_of(got.data()), bytes, stream));  // zeros
  GPU_CALL(cuMemcpyPeerAsync(here.address(), own.handle(), there.address(), other.handle(), bytes, stream));
  GPU_CALL(cuMemcpyAsync(address_of(got.data()), here.address(), bytes, stream));
  GPU_CALL(cuStreamSynchronize(stream));
  return got == sent;
}

// Why copies pass through the host: empty where they need not.
std::string reach(const Context& own, const Context& other, CUstream stream) try {
  int can = 0;
  GPU_CALL(cuDeviceCanAccessPeer(&can, own.device(), other.device()));
  if (!can) return "the driver reports that it cannot reach the other's memory";
  Access access(own, other);
  if (arrives(own, other, stream)) {
    access.keep();
    return "";
  }
  return "what it writes into the other's memory does not arrive there";
} catch (const Error& error) {
  return error.what();
}
}  // namespace

CUcontext Peers::context_of(CUdevice other, CUstream stream) {
  const std::lock_guard guard(mutex_);
  const auto [it, is_new] = contexts_.try_emplace(other, other);
  if (is_new)
    if (const std::string why = reach(own_, it->second, stream); !why.empty())
      dvt::host->log(dvt::host, 1,
                     ("copies by GPU " + std::to_string(own_.device()) + " from and to GPU " +
                      std::to_string(other) + " pass through the host: " + why)
                         .c_str());
  return it->second.handle();
}
}  // namespace gpu
