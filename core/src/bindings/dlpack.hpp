// DLPack's structs that pass ownership of memory; the struct of a tensor is in abi.h. https://dmlc.github.io/dlpack
#pragma once
#include "dovetail/abi.h"

namespace dovetail::dlpack {
constexpr uint32_t kMajor = 1, kMinor = 1;
enum : uint64_t { kReadOnly = 1, kIsCopied = 2 };

struct Version {
  uint32_t major, minor;
};
struct Managed {  // before 1.0: capsule "dltensor"
  DLTensor tensor;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {  // capsule "dltensor_versioned"
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  DLTensor tensor;
};
static_assert(sizeof(Managed) == 64 && sizeof(ManagedVersioned) == 80);
}  // namespace dovetail::dlpack
