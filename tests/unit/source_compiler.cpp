// The backend "text": the simulated device, whose library DOVETAIL_WRAPPED names, with a compiler that prints
// groups as C (dovetail/codegen_source.hpp) and has the machine's compiler make a library of the text. Groups run
// on the host, on copies of their operands, in as many threads as set_threads says; each thread does the part of
// the block's threads that its number gives it.
#include <dlfcn.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "dovetail/codegen_source.hpp"
#include "dovetail/functors.hpp"
#include "wrapped_backend.hpp"

// ---- the functions that texts call ------------------------------------------------------------------------------

extern "C" {
#define GPU_GROUP_FUNCTION DVT_EXPORT
#include "gpu/groups/functions.hpp"
}

// ---- blocks of threads ------------------------------------------------------------------------------------------

namespace {
constexpr uint32_t most_blocks = 3;
uint32_t n_threads = 1;
thread_local uint32_t thread_number = 0, block_number = 0, block_count = 1;

class Barrier {
 public:
  void wait(uint32_t n) {
    std::unique_lock lock(mutex_);
    const uint64_t round = round_;
    if (++waiting_ == n) waiting_ = 0, ++round_, all_.notify_all();
    else all_.wait(lock, [&] { return round_ != round; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  uint32_t waiting_ = 0;
  uint64_t round_ = 0;
};
Barrier& barrier = *new Barrier;
}  // namespace

extern "C" {
DVT_EXPORT unsigned dvt_thread() { return thread_number; }
DVT_EXPORT unsigned dvt_block() { return block_number; }
DVT_EXPORT unsigned dvt_blocks() { return block_count; }
DVT_EXPORT void dvt_barrier() { barrier.wait(n_threads); }
}

// ---- the compiler -----------------------------------------------------------------------------------------------

using dvt::codegen::Launch;
using Kernel = void (*)(void* const*, const void*);

struct dvt_exe {
  dvt_device* device;
  const dvt_program* program;
  dvt::codegen::Source source;
};

namespace {
dvt_backend backend;
std::string& last_text = *new std::string;
std::map<std::string, Kernel>& kernels = *new std::map<std::string, Kernel>;  // by their texts
std::mutex running;  // arrays that threads share are static variables

dvt::codegen::Dialect dialect() {
  dvt::codegen::Dialect d;
  d.head =
      "#pragma STDC FP_CONTRACT OFF\nunsigned dvt_thread(void), dvt_block(void), dvt_blocks(void);\n"
      "void dvt_barrier(void);\n";
  d.kernel = "static void";
  d.thread = "dvt_thread()", d.block = "dvt_block()", d.blocks = "dvt_blocks()", d.barrier = "dvt_barrier();";
  d.threads = n_threads;
  return d;
}

// "call" with the kernel's parameters in arrays.
std::string entry(size_t pointers) {
  std::string text = "void call(void* const* p, const dvt_arguments* a) { kernel(";
  for (size_t i = 0; i < pointers; ++i) text += "p[" + std::to_string(i) + "], ";
  return text + "*a); }\n";
}

dvt_status build(const std::string& text, Kernel* out) {
  Dl_info self;
  dladdr(reinterpret_cast<void*>(&dvt_thread), &self);
  char folder[] = "/tmp/dovetail_text_XXXXXX";
  if (!mkdtemp(folder)) return DVT_FAIL(DVT_INTERNAL, "no temporary folder");
  const std::string source = std::string(folder) + "/kernel.c", library = std::string(folder) + "/kernel.so";
  std::ofstream(source) << text;
  const std::string command = "cc -std=c11 -O1 -w -ffp-contract=off -fPIC -shared -o " + library + " " + source +
                              " " + self.dli_fname + " 2> " + folder + "/errors";
  const int failed = std::system(command.c_str());
  void* const made = failed ? nullptr : dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string problem = made || failed ? "" : dlerror();
  if (!failed) unlink(library.c_str()), unlink(source.c_str()), unlink((std::string(folder) + "/errors").c_str());
  if (!failed) rmdir(folder);
  if (!made) return DVT_FAIL(DVT_INTERNAL, "the text does not compile: see %s %s", folder, problem.c_str());
  *out = reinterpret_cast<Kernel>(dlsym(made, "call"));
  return DVT_OK;
}

dvt_status claim(dvt_device*, const dvt_program* p, dvt_claim* out) {
  dvt::codegen::claim(*p, dvt::codegen::unknown, out);
  return DVT_OK;
}

dvt_status compile(dvt_device* d, const dvt_program* p, const char*, dvt_exe** out) {
  auto exe = std::make_unique<dvt_exe>();
  exe->device = d, exe->program = p;
  if (const char* reason = exe->source.lower(*p)) return DVT_FAIL(DVT_UNSUPPORTED, "%s", reason);
  *out = exe.release();
  return DVT_OK;
}

dvt_status query(dvt_exe* e, const dvt_exe_call* c, dvt_answer* answer) {
  const Launch launch = e->source.plan(*c, most_blocks, n_threads);
  if (launch.refusal) {
    DVT_PUT(answer, dvt_answer, reason, launch.refusal);
    return DVT_UNSUPPORTED;
  }
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  DVT_PUT(answer, dvt_answer, workspace, launch.workspace);
  DVT_PUT(answer, dvt_answer, in_place, launch.in_place);
  return DVT_OK;
}

// The bytes that a tensor covers, as a row-major one of bytes.
struct Bytes {
  int64_t size = 1, stride = 1;
  DLTensor tensor{};

  Bytes(const DLTensor& t, void* data) {
    for (int32_t i = 0; i < t.ndim; ++i) size += (t.shape[i] - 1) * t.strides[i];
    for (int32_t i = 0; i < t.ndim; ++i)
      if (t.shape[i] == 0) size = 0;
    size *= t.dtype.bits / 8;
    tensor = {data, t.device, 1, dvt::u8, &size, &stride, 0};
  }
  Bytes(const Bytes&) = delete;
};

constexpr size_t beyond = 16;  // bytes that no group may write
constexpr char filler = char(0xDB);

dvt_status copy(dvt_device* d, const DLTensor& t, std::vector<char>& host, bool back) {
  Bytes device(t, dvt::data<void>(&t));
  if (!back) host.assign(size_t(device.size) + beyond, filler);
  if (!device.size) return DVT_OK;
  Bytes here(t, host.data());
  here.tensor.device = {1 /* kDLCPU */, 0};
  return back ? backend.copy(d, &device.tensor, &here.tensor, nullptr)
              : backend.copy(d, &here.tensor, &device.tensor, nullptr);
}

// A call with copies of its operands in the host's memory.
class HostCall {
 public:
  HostCall(const dvt_exe* e, const dvt_exe_call* c)
      : device_(e->device), from_(*c->call), exe_call_(*c), call_(*c->call) {
    const auto is_scalar = [&](uint32_t i) {
      return e->program->info[e->program->inputs[i]].flags & DVT_V_HOST_SCALAR;
    };
    const size_t n = from_.n_in + from_.n_out;
    tensors_.reserve(n), bytes_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      tensors_.push_back(*device_tensor(i));
      scalar_.push_back(i < from_.n_in && is_scalar(uint32_t(i)));
    }
    for (const DLTensor& t : tensors_) list_.push_back(&t);
    workspace_.assign(from_.workspace_size + beyond, filler);
    call_.in = list_.data(), call_.out = list_.data() + from_.n_in, call_.workspace = workspace_.data();
    exe_call_.call = &call_;
  }
  const dvt_exe_call& get() const { return exe_call_; }

  dvt_status copy_in() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (scalar_[i]) continue;
      std::vector<char>& bytes = bytes_[place_of(i)];
      if (dvt_status s = copy(device_, *device_tensor(i), bytes, false)) return s;
      tensors_[i].data = bytes.data(), tensors_[i].byte_offset = 0;
    }
    return DVT_OK;
  }
  dvt_status copy_out() {
    if (!ends_as_filled(workspace_)) return DVT_FAIL(DVT_INTERNAL, "a group wrote past the end of its workspace");
    for (size_t i = from_.n_in; i < tensors_.size(); ++i) {
      std::vector<char>& bytes = bytes_[place_of(i)];
      if (!ends_as_filled(bytes)) return DVT_FAIL(DVT_INTERNAL, "a group wrote past the end of its output");
      if (dvt_status s = copy(device_, *device_tensor(i), bytes, true)) return s;
    }
    return DVT_OK;
  }

 private:
  static bool ends_as_filled(const std::vector<char>& bytes) {
    return std::all_of(bytes.end() - beyond, bytes.end(), [](char c) { return c == filler; });
  }
  // Of an output in an input's memory, that input.
  size_t place_of(size_t i) const {
    for (size_t k = 0; k < from_.n_in && i >= from_.n_in; ++k)
      if (!scalar_[k] && device_tensor(k)->data && device_tensor(k)->data == device_tensor(i)->data) return k;
    return i;
  }
  const DLTensor* device_tensor(size_t i) const { return i < from_.n_in ? from_.in[i] : from_.out[i - from_.n_in]; }

  dvt_device* const device_;
  const dvt_call from_;
  dvt_exe_call exe_call_;
  dvt_call call_;
  std::vector<DLTensor> tensors_;
  std::vector<const DLTensor*> list_;
  std::vector<std::vector<char>> bytes_;
  std::vector<bool> scalar_;
  std::vector<char> workspace_;
};

void run_blocks(Kernel kernel, const Launch& launch) {
  const auto work = [&](uint32_t thread) {
    thread_number = thread, block_count = launch.blocks;
    for (block_number = 0; block_number < launch.blocks; ++block_number) {
      kernel(launch.pointers.data(), launch.arguments.data());
      barrier.wait(n_threads);
    }
  };
  std::vector<std::thread> others;
  for (uint32_t t = 1; t < n_threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& t : others) t.join();
}

dvt_status run(dvt_exe* e, const dvt_exe_call* c) {
  const std::lock_guard lock(running);
  if (c->call->stream)
    if (dvt_status s = backend.streams->sync(c->call->stream)) return s;
  HostCall host(e, c);
  if (dvt_status s = host.copy_in()) return s;
  const Launch launch = e->source.plan(host.get(), most_blocks, n_threads);
  last_text = e->source.text(dialect(), launch.form, "kernel") + entry(launch.pointers.size());
  Kernel& kernel = kernels[last_text];
  if (!kernel)
    if (dvt_status s = build(last_text, &kernel)) return s;
  run_blocks(kernel, launch);
  return host.copy_out();
}

void destroy(dvt_exe* e) { delete e; }

// ---- rows -------------------------------------------------------------------------------------------------------
//
// A kernel for each op that has text and that the simulated device has no kernel for: a group of one node. So ops
// come to the compiler as they are, and every one can be called by itself.

class Alone {
 public:
  Alone(const dvt_call* c, const char* op) : call_(c) {
    for (uint32_t i = 0; i < c->n_in; ++i) values_.push_back(*c->in[i]), inputs_.push_back(i);
    values_.push_back(*c->out[0]);
    info_.resize(values_.size(), {0, 0, 0, -1, 0, nullptr, {}});
    node_ = {sizeof node_, 1, op, inputs_.data(), &c->n_in, c->attr, c->n_in, 1, c->n_attr, 0, nullptr};
    program_.struct_size = sizeof program_, program_.flags = DVT_P_TYPED;
    program_.n_values = uint32_t(values_.size()), program_.values = values_.data(), program_.info = info_.data();
    program_.n_nodes = 1, program_.nodes = &nodes_;
    program_.n_inputs = c->n_in, program_.inputs = inputs_.data();
    program_.n_outputs = 1, program_.outputs = &c->n_in;
  }
  Alone(const Alone&) = delete;

  const char* refusal() const { return dvt::codegen::Source().lower(program_); }
  dvt_status run(dvt_device* d) const {
    dvt_exe exe{d, &program_, {}};
    if (const char* reason = exe.source.lower(program_)) return DVT_FAIL(DVT_INTERNAL, "%s", reason);
    const dvt_exe_call call{sizeof call, 0, 0, 0, nullptr, nullptr, call_};
    return ::run(&exe, &call);
  }

 private:
  const dvt_call* const call_;
  std::vector<DLTensor> values_;  // the inputs, and number n_in: the output
  std::vector<uint32_t> inputs_;
  std::vector<dvt_value> info_;
  dvt_node node_;
  const dvt_node* nodes_ = &node_;
  dvt_program program_{};
};

constexpr const char* reductions[] = {"dvt.mean", "dvt.min", "dvt.prod", "dvt.any", "dvt.all"};
constexpr size_t n_reductions = std::size(reductions);
constexpr size_t n_ops = std::extent_v<std::remove_reference_t<decltype(dvt::codegen::all_ops())>>;

template <size_t i>
const char* full_name() {
  if constexpr (i >= n_ops) return reductions[i - n_ops];
  else {
    static const std::string& name = *new std::string(std::string("dvt.") + dvt::codegen::all_ops()[i].op);
    return name.c_str();
  }
}
template <size_t i>
dvt_status run_row(dvt_device* d, const dvt_call* c) {
  return Alone(c, full_name<i>()).run(d);
}
template <size_t i>
dvt_status query_row(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  const char* const reason = Alone(c, full_name<i>()).refusal();
  if (reason) DVT_PUT(answer, dvt_answer, reason, reason);
  else DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  return reason ? DVT_UNSUPPORTED : DVT_OK;
}
template <size_t i>
void add_row(dvt::KernelTable& table, const dvt_backend& wrapped) {
  for (uint64_t k = 0; k < wrapped.n_kernels; ++k)
    if (!std::strcmp(full_name<i>(), wrapped.kernels[k]->op)) return;
  for (DLDataType type : dvt::types::boolean + dvt::types::integers + dvt::types::floats) {
    dvt::Row row(full_name<i>(), run_row<i>);
    row.query(query_row<i>);
    if constexpr (i >= n_ops) {
      row.in(type, DVT_O_STRIDED).out(i >= n_ops + 3 ? dvt::boolean : type);
    } else {
      const dvt::codegen::OpText& op = dvt::codegen::all_ops()[i];
      if (!dvt::codegen::has_text(op, type)) continue;
      for (uint32_t k = 0; k < op.operands; ++k) row.in(type, DVT_O_STRIDED);
      row.out(op.makes_bool ? dvt::boolean : type);
    }
    table.add(row);
  }
}
template <size_t... i>
std::vector<const dvt_kernel*> rows(const dvt_backend& wrapped, std::index_sequence<i...>) {
  static dvt::KernelTable& table = *new dvt::KernelTable;
  (add_row<i>(table, wrapped), ...);
  std::vector<const dvt_kernel*> all(wrapped.kernels, wrapped.kernels + wrapped.n_kernels);
  all.insert(all.end(), table.data(), table.data() + table.size());
  return all;
}

const void* extension(const char* name, uint32_t version) {
  static const dvt_compiler compiler = [] {
    dvt_compiler c{};
    c.struct_size = sizeof c;
    c.claim = claim, c.compile = compile, c.query = query, c.run = run, c.destroy = destroy;
    return c;
  }();
  return std::strcmp(name, "dovetail.compiler") || version != DVT_X_COMPILER ? nullptr : &compiler;
}
}  // namespace

extern "C" {
int32_t dvt_probe_v1(char*, size_t) { return 1; }

dvt_status dvt_backend_v1(const dvt_host* host, const dvt_backend** out) {
  const dvt_backend* wrapped = nullptr;
  if (dvt_status s = open_wrapped(host, &wrapped)) return s;
  backend = *wrapped;
  static const auto all = rows(*wrapped, std::make_index_sequence<n_ops + n_reductions>());
  backend.name = "text", backend.extension = extension;
  backend.kernels = all.data(), backend.n_kernels = all.size();
  *out = &backend;
  return DVT_OK;
}

// For the tests: into how many threads a block is divided from now on, and the text that was compiled last.
DVT_EXPORT void set_threads(uint32_t n) { n_threads = n; }
DVT_EXPORT const char* text_of_last() { return last_text.c_str(); }
}
