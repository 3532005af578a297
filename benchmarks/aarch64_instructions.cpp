// Calls of the CPU device's rows on one thread, each between two calls of marker() and with nothing else there:
//
//     aarch64_instructions LIBRARY OP,plain|packed,TYPE:ROWSxCOLUMNS,... ...
//
// The operands are full of ones, the last is the output; packed: input 1 is packed. Each call was made once
// before, so that libraries are open and primitives exist. At the end it prints the memory map. The Python
// file of the same name builds it, and runs it in an emulator.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "dovetail/backend.hpp"

// Not static, so that the emulator's log names it.
extern "C" [[gnu::noinline]] void marker() { __asm__ volatile(""); }

namespace {
struct alignas(64) Line {
  char bytes[64];
};
using Memory = std::vector<Line>;
Memory memory(uint64_t bytes) { return Memory(bytes / sizeof(Line) + 1); }

struct Type {
  const char* name;
  DLDataType type;
  uint32_t one;  // as bits
};
constexpr Type types[] = {{"float32", dvt::f32, 0x3f800000},
                          {"float16", dvt::f16, 0x3c00},
                          {"bfloat16", dvt::bf16, 0x3f80},
                          {"int8", dvt::i8, 1}};

const Type& find_type(const char* name) {
  for (const Type& t : types)
    if (!std::strcmp(name, t.name)) return t;
  throw std::runtime_error(std::string("no such type: ") + name);
}

struct Operand {
  explicit Operand(const std::string& text) {
    char name[16];
    if (std::sscanf(text.c_str(), "%15[^:]:%ldx%ld", name, &shape[0], &shape[1]) != 3)
      throw std::runtime_error("no operand: " + text);
    const Type& t = find_type(name);
    const size_t n = size_t(shape[0] * shape[1]), size = t.type.bits / 8;
    strides[0] = shape[1];
    data = memory(n * size);
    for (size_t i = 0; i < n; ++i) std::memcpy(data[0].bytes + i * size, &t.one, size);
    tensor = {data.data(), {1, 0}, 2, t.type, shape, strides, 0};
  }
  Operand(const Operand&) = delete;

  int64_t shape[2], strides[2] = {0, 1};
  Memory data;
  DLTensor tensor;
};

// ---- the host

dvt_status fail(const dvt_host*, dvt_status, uint64_t, const char*, int, const char* message) {
  throw std::runtime_error(message);
}
void check(dvt_status status) {
  if (status != DVT_OK) throw std::runtime_error("status " + std::to_string(status));
}
dvt_host make_host(const char* library) {
  dvt_host host{};
  host.struct_size = sizeof host, host.abi_major = DVT_ABI_MAJOR, host.abi_draft = DVT_ABI_DRAFT;
  host.library_path = library, host.fail = fail;
  host.log = [](const dvt_host*, int, const char*) {};
  host.num_threads = [](const dvt_host*) -> uint32_t { return 1; };
  host.parallel_for = [](const dvt_host*, uint64_t n, uint64_t, void (*body)(void*, uint64_t, uint64_t, uint32_t),
                         void* ctx) { body(ctx, 0, n, 0); };
  return host;
}

const dvt_kernel& find_row(const dvt_backend& backend, const std::string& op, const std::list<Operand>& operands) {
  const auto fits = [&](const dvt_kernel& row) {
    if (row.op != op || row.n_in + row.n_out != operands.size()) return false;
    const dvt_operand* wanted = row.operands;
    for (const Operand& o : operands)
      if (!dvt::same(o.tensor.dtype, (wanted++)->dtype)) return false;
    return true;
  };
  for (uint64_t i = 0; i < backend.n_kernels; ++i)
    if (fits(*backend.kernels[i])) return *backend.kernels[i];
  throw std::runtime_error("no row of " + op);
}

void run(const dvt_kernel& row, std::list<Operand>& operands, bool packed) {
  std::vector<const DLTensor*> tensors;
  for (const Operand& o : operands) tensors.push_back(&o.tensor);
  const dvt_attr last_axis{DVT_A_I64, 1, {.i = 1}};  // softmax has that attribute, the other ops have none
  dvt_call call{};
  call.struct_size = sizeof call, call.n_in = row.n_in, call.n_out = row.n_out, call.n_attr = 1;
  call.in = tensors.data(), call.out = tensors.data() + row.n_in, call.attr = &last_axis;
  Memory workspace;
  if (row.query) {
    dvt_answer answer{};
    answer.struct_size = sizeof answer;
    check(row.query(nullptr, &call, &answer));
    workspace = memory(answer.workspace);
    call.workspace = workspace.data(), call.workspace_size = answer.workspace;
  }
  Memory panels;
  std::vector<dvt_packed> of_all(row.n_in);
  if (packed) {
    if (!row.pack_size) throw std::runtime_error("the row packs nothing");
    check(row.pack_size(nullptr, &call, 1, &of_all[1].size, &of_all[1].layout));
    panels = memory(of_all[1].size);
    of_all[1].data = panels.data();
    check(row.pack(nullptr, &call, 1, &of_all[1]));
    call.packed = of_all.data();
  }
  check(row.run(nullptr, &call));
  marker();
  const dvt_status status = row.run(nullptr, &call);
  marker();
  check(status);
}
void run(const dvt_backend& backend, const char* text) {
  std::istringstream words(text);
  std::string op, how, word;
  std::getline(words, op, ','), std::getline(words, how, ',');
  std::list<Operand> operands;
  while (std::getline(words, word, ',')) operands.emplace_back(word);
  run(find_row(backend, op, operands), operands, how == "packed");
}
}  // namespace

int main(int, char** words) {
  void* const library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  const dvt_host host = make_host(words[1]);
  const dvt_backend* backend;
  check(reinterpret_cast<decltype(&dvt_backend_v1)>(dlsym(library, "dvt_backend_v1"))(&host, &backend));
  for (char** call = words + 2; *call; ++call) run(*backend, *call);
  std::cout << std::ifstream("/proc/self/maps").rdbuf();
}
