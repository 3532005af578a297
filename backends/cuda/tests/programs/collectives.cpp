// collectives PLUGIN COMMAND...: calls its group dovetail.collectives on device 0, as rank 0 of 2; errors go
// to standard output. COMMAND: init, destroy, abort, async_error, begin, end, send, receive, or a collective
// as "all_reduce bf16 sum" in three arguments.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "dovetail/backend.hpp"

namespace {
dvt_status fail(const dvt_host*, dvt_status code, uint64_t, const char*, int, const char* message) {
  std::printf("%d: %s\n", code, message);
  return code;
}
void log(const dvt_host*, int, const char*) {}

int64_t place(const char* word, std::initializer_list<const char*> words) {
  int64_t i = 0;
  for (const char* each : words) {
    if (!std::strcmp(each, word)) return i;
    ++i;
  }
  std::exit(2);
}
DLDataType type_of(const char* word) {
  static constexpr DLDataType types[] = {dvt::i8,  dvt::i16, dvt::i32,  dvt::i64, dvt::u8,     dvt::u32,
                                         dvt::f16, dvt::f32, dvt::bf16, dvt::f64, dvt::boolean};
  return types[place(word, {"i8", "i16", "i32", "i64", "u8", "u32", "f16", "f32", "bf16", "f64", "bool"})];
}

// A call of 24 elements in and out; with a transposed operand if it is to be refused.
class Call {
 public:
  Call(void* memory, DLDataType type, bool dense) : strides_{dense ? 4 : 1, dense ? 1 : 6} {
    in_ = out_ = {memory, {2, 0}, 2, type, shape_, strides_, 0};
    call_.struct_size = sizeof call_, call_.n_in = call_.n_out = 1, call_.in = &in_address_,
    call_.out = &out_address_;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  const dvt_call* get() const { return &call_; }

 private:
  int64_t shape_[2] = {6, 4}, strides_[2];
  DLTensor in_, out_;
  const DLTensor *in_address_ = &in_, *out_address_ = &out_;
  dvt_call call_ = {};
};
}  // namespace

int main(int argc, char** argv) {
  dvt_host host = {};
  host.struct_size = sizeof host, host.abi_major = DVT_ABI_MAJOR, host.abi_draft = DVT_ABI_DRAFT;
  host.fail = fail, host.log = log;
  void* const plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  const auto enter =
      plugin ? reinterpret_cast<decltype(&dvt_backend_v1)>(dlsym(plugin, "dvt_backend_v1")) : nullptr;
  const dvt_backend* backend = nullptr;
  dvt_device* device = nullptr;
  void* memory = nullptr;
  if (!enter || enter(&host, &backend) || backend->device_open(0, &device) ||
      backend->alloc(device, 4096, DVT_MEM_DEVICE, nullptr, &memory))
    return 1;
  const auto group =
      static_cast<const dvt_collectives*>(backend->extension("dovetail.collectives", DVT_X_COLLECTIVES));
  dvt_comm* comm = nullptr;
  for (int i = 2; i < argc; ++i) {
    const std::string command = argv[i];
    const Call bytes(memory, dvt::f32, true);
    if (command == "init") {
      uint8_t id[128];
      if (!group->unique_id(id)) group->init(device, id, 0, 2, &comm);
    } else if (command == "destroy") group->destroy(comm);
    else if (command == "abort") group->abort(comm);
    else if (command == "async_error") group->async_error(comm);
    else if (command == "begin" || command == "end") group->group(command == "begin");
    else if (command == "send" || command == "receive") group->p2p(comm, command == "send", 1, bytes.get());
    else {
      if (i + 2 >= argc) return 2;
      const auto kind = place(argv[i], {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all"});
      const Call call(memory, type_of(argv[i + 1]), std::strcmp(argv[i + 2], "strided"));
      const auto op = place(argv[i + 2], {"sum", "product", "max", "min", "mean", "other", "strided"});
      group->collective(comm, uint32_t(kind), uint32_t(op), 1, call.get());
      i += 2;
    }
  }
}
