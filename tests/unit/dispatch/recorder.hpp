// A backend defined by the test: host memory, rows that are functions of the test. Every call of a row is
// recorded in `seen`, as "add: f32(6)/(1), host f32()/() -> f32(6)/(1)" (shapes and strides), and checked
// against the rules of abi.h: operands inside live memory, aligned to an element, no overlap but what
// DVT_O_ALIAS allows.
#pragma once
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <variant>

#include "check.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/rows.hpp"
#include "dovetail/backend.hpp"
#include "text.hpp"

#pragma GCC diagnostic ignored "-Wmissing-field-initializers"  // ops' specs name what they need

namespace recorder {
struct Plugin;
}
struct dvt_device {
  recorder::Plugin* plugin;
};

namespace recorder {
using namespace dovetail;
using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;
using Run = std::function<dvt_status(const dvt_call&)>;
using Query = std::function<dvt_status(const dvt_call&, dvt_answer&)>;

inline std::vector<std::string> seen;
inline bool is_seen(const std::string& line) { return std::find(seen.begin(), seen.end(), line) != seen.end(); }
inline int times_seen(const std::string& row) {
  return int(std::count_if(seen.begin(), seen.end(), [&](auto& line) { return line.starts_with(row + ":"); }));
}

// ---- elements ---------------------------------------------------------------------------------------------------

inline char* address(const DLTensor& t, int64_t i) {  // in row-major order
  int64_t offset = 0;
  for (int axis = t.ndim - 1; axis >= 0; --axis) {
    offset += i % t.shape[axis] * t.strides[axis];
    i /= t.shape[axis];
  }
  return static_cast<char*>(t.data) + offset * (t.dtype.bits / 8);
}
inline int64_t count(const DLTensor& t) {
  int64_t n = 1;
  for (int i = 0; i < t.ndim; ++i) n *= t.shape[i];
  return n;
}
template <class F>
auto with_type(DType t, F f) {
  switch (t) {
    case DType::b8:
    case DType::u8: return f(uint8_t{});
    case DType::i8: return f(int8_t{});
    case DType::i16: return f(int16_t{});
    case DType::i32: return f(int32_t{});
    case DType::i64: return f(int64_t{});
    case DType::u16: return f(uint16_t{});
    case DType::u32: return f(uint32_t{});
    case DType::u64: return f(uint64_t{});
    case DType::f16: return f(dvt::float16{});
    case DType::f32: return f(float{});
    case DType::f64: return f(double{});
    default: std::abort();
  }
}
inline double get(DType t, const void* at) {
  return with_type(t, [&](auto v) {
    std::memcpy(&v, at, sizeof v);
    return double(v);
  });
}
inline void put(DType t, void* at, double value) {
  with_type(t, [&](auto v) {
    v = t == DType::b8 ? decltype(v)(value != 0) : decltype(v)(value);
    std::memcpy(at, &v, sizeof v);
    return 0;
  });
}
inline std::string show(const Doubles& values) {
  std::ostringstream text;
  for (const double v : values) text << (text.tellp() > 0 ? " " : "") << v;
  return text.str();
}

// ---- rows -------------------------------------------------------------------------------------------------------

constexpr uint8_t kPlain = DVT_O_STRIDED | DVT_O_HOST_SCALAR | DVT_O_ALIAS;
inline dvt_operand takes(DType t, int flags = DVT_O_STRIDED, int align_log2 = 0) {
  return {info(t).dl, uint8_t(flags), uint8_t(align_log2), 0};
}
inline dvt_operand any(int bits, int flags = DVT_O_STRIDED) {
  return {{DVT_ANY, uint8_t(bits), 1}, uint8_t(flags), 0, 0};
}

struct Row {
  std::string op;
  std::vector<dvt_operand> in, out;
  Run run;
  Query query{};
  const char* engine = nullptr;
  uint32_t version = 1;
};

// out = f(operands), elementwise; absent operands count as 0.
inline Run computes(std::function<double(const Doubles&)> f) {
  return [f](const dvt_call& c) {
    for (int64_t i = 0, n = count(*c.out[0]); i < n; ++i) {
      Doubles x;
      for (uint32_t k = 0; k < c.n_in; ++k)
        x.push_back(c.in[k] ? get(*dtype_of(c.in[k]->dtype), address(*c.in[k], i)) : 0);
      for (uint32_t k = 0; k < c.n_out; ++k) put(*dtype_of(c.out[k]->dtype), address(*c.out[k], i), f(x) + k);
    }
    return DVT_OK;
  };
}
inline double plus(const Doubles& x) { return x[0] + (x.size() > 1 ? x[1] : 0); }
inline double times(const Doubles& x) { return x[0] * x[1]; }

inline dvt_status copy_elements(const dvt_call& c) {
  for (int64_t i = 0, n = count(*c.out[0]); i < n; ++i)
    std::memcpy(address(*c.out[0], i), address(*c.in[0], i), c.out[0]->dtype.bits / 8);
  return DVT_OK;
}
inline dvt_status fill_from_attribute(const dvt_call& c) {  // dvt.full
  const dvt_attr& a = c.attr[1];
  const double value = a.kind == DVT_A_F64 ? a.v.f : a.kind == DVT_A_F64S ? a.v.fs[0] : double(a.v.i);
  for (int64_t i = 0, n = count(*c.out[0]); i < n; ++i)
    put(*dtype_of(c.out[0]->dtype), address(*c.out[0], i), value);
  return DVT_OK;
}
// dvt.copy, dvt.astype and dvt.add of float32.
inline std::vector<Row> basic_rows() {
  std::vector<Row> rows;
  for (const int bits : {8, 16, 32, 64, 128})
    rows.push_back({"dvt.copy", {any(bits)}, {any(bits, 0)}, copy_elements});
  rows.push_back({"dvt.astype", {any(0)}, {any(0, 0)}, computes(plus)});
  rows.push_back(
      {"dvt.add", {takes(DType::f32, kPlain), takes(DType::f32, kPlain)}, {takes(DType::f32, 0)}, computes(plus)});
  return rows;
}
inline std::vector<Row> operator+(std::vector<Row> a, const std::vector<Row>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// ---- the rules of abi.h -----------------------------------------------------------------------------------------

inline std::mutex memory_mutex;
inline std::map<const char*, uint64_t> memory;  // the results of the plugins' alloc

struct Extent {
  const char *begin, *end;
  explicit Extent(const DLTensor& t) : begin(static_cast<const char*>(t.data)), end(begin) {
    int64_t last = 0;
    for (int i = 0; i < t.ndim; ++i) last += (t.shape[i] - 1) * t.strides[i];
    if (count(t)) end = begin + (last + 1) * (t.dtype.bits / 8);
  }
  bool meets(const Extent& o) const { return begin < o.end && o.begin < end; }
  bool is_live() const {
    if (begin == end) return true;
    const std::lock_guard lock(memory_mutex);
    auto block = memory.upper_bound(begin);
    return block != memory.begin() && (--block, end <= block->first + block->second);
  }
};

inline bool row_major(const DLTensor& t) {
  int64_t step = 1;
  for (int i = t.ndim; i-- > 0; step *= t.shape[i])
    if (t.shape[i] != 1 && t.strides[i] != step) return false;
  return true;
}
inline bool exactly(const DLTensor& a, const DLTensor& b) {
  return a.data == b.data && a.ndim == b.ndim && std::equal(a.shape, a.shape + a.ndim, b.shape) &&
         std::equal(a.strides, a.strides + a.ndim, b.strides);
}
inline bool is_host(const DLTensor& t) { return t.device.device_type == 1 /* kDLCPU */; }

inline void expect(bool ok, const dvt_kernel& row, const std::string& what) {
  check::that(ok, __FILE__, __LINE__, std::string(row.op) + ": " + what);
}
inline void check_operand(const dvt_kernel& row, const DLTensor& t, const dvt_operand& wants, bool running) {
  expect(t.ndim >= 0 && t.ndim <= DVT_MAX_NDIM && t.byte_offset == 0 && t.strides && t.shape, row, "a view");
  for (int i = 0; i < t.ndim; ++i) expect(t.shape[i] >= 0 && t.strides[i] >= 0, row, "a negative size or stride");
  if (is_host(t)) return expect(t.ndim == 0 && wants.flags & DVT_O_HOST_SCALAR, row, "memory of the host");
  if (!(wants.flags & DVT_O_STRIDED) && std::strcmp(row.op, "dvt.copy")) expect(row_major(t), row, "strides");
  expect(wants.dtype.code == DVT_ANY || wants.dtype == t.dtype, row, "a dtype");
  if (!running) return;
  const uintptr_t align = std::max<uintptr_t>(t.dtype.bits / 8, uintptr_t{1} << wants.align_log2);
  expect(reinterpret_cast<uintptr_t>(t.data) % align == 0, row, "alignment");
  expect(Extent(t).is_live(), row, "an operand outside of its memory");
}
inline void check_call(const dvt_kernel& row, const dvt_call& c, bool running) {
  const bool variadic = row.n_in && row.operands[row.n_in - 1].flags & DVT_O_VARIADIC;
  expect(c.struct_size == sizeof(dvt_call) && (variadic || c.n_in == row.n_in) && c.n_out == row.n_out, row,
         "counts");
  bool any_output = !running;
  for (uint32_t k = 0; k < c.n_out; ++k) {
    check_operand(row, *c.out[k], row.operands[row.n_in + k], running);
    any_output |= count(*c.out[k]) > 0;
  }
  expect(any_output, row, "run for nothing");
  for (uint32_t i = 0; i < c.n_in; ++i) {
    const dvt_operand& wants = row.operands[std::min(i, row.n_in - 1)];
    if (!c.in[i]) expect(wants.flags & DVT_O_OPTIONAL, row, "a missing operand");
    else check_operand(row, *c.in[i], wants, running);
    for (uint32_t k = 0; c.in[i] && running && k < c.n_out; ++k)
      if (Extent(*c.in[i]).meets(Extent(*c.out[k])))
        expect(k == 0 && wants.flags & DVT_O_ALIAS && exactly(*c.in[i], *c.out[k]), row,
               "input and output overlap");
  }
}

inline std::string describe(const DLTensor* t) {
  if (!t) return "-";
  const auto text = [&](const int64_t* at) {
    std::string list;
    for (int i = 0; i < t->ndim; ++i) list += (i ? ", " : "") + std::to_string(at[i]);
    return "(" + list + ")";
  };
  return (is_host(*t) ? "host " : "") + std::string(info(*dtype_of(t->dtype)).brief) + text(t->shape) + "/" +
         text(t->strides);
}
inline std::string describe(const dvt_kernel& row, const dvt_call& c) {
  const std::string name = row.op;
  std::string text = (row.engine ? row.engine : name.substr(name.find('.') + 1)) + ":";
  for (uint32_t i = 0; i < c.n_in; ++i) text += (i ? ", " : " ") + describe(c.in[i]);
  for (uint32_t i = 0; i < c.n_out; ++i) text += (i ? ", " : " -> ") + describe(c.out[i]);
  return text;
}

// ---- C functions for the rows -----------------------------------------------------------------------------------

constexpr size_t kMostRows = 256;
struct Made {
  dvt_kernel kernel;
  std::vector<dvt_operand> operands;
  Row row;
};
inline Made made[kMostRows];
inline size_t n_made = 0;

template <size_t I>
dvt_status run_row(dvt_device*, const dvt_call* c) {
  seen.push_back(describe(made[I].kernel, *c));
  check_call(made[I].kernel, *c, true);
  return made[I].row.run(*c);
}
template <size_t I>
dvt_status query_row(dvt_device*, const dvt_call* c, dvt_answer* answer) {
  check_call(made[I].kernel, *c, false);
  return made[I].row.query(*c, *answer);
}
template <size_t... I>
void set_functions(dvt_kernel& k, size_t at, std::index_sequence<I...>) {
  static constexpr decltype(k.run) runs[] = {run_row<I>...};
  static constexpr decltype(k.query) queries[] = {query_row<I>...};
  k.run = runs[at], k.query = queries[at];
}
inline dvt_kernel* make_row(const Row& row) {
  if (n_made == kMostRows) std::abort();
  Made& m = made[n_made];
  m.row = row, m.operands = row.in;
  m.operands.insert(m.operands.end(), row.out.begin(), row.out.end());
  set_functions(m.kernel, n_made++, std::make_index_sequence<kMostRows>());
  if (!row.query) m.kernel.query = nullptr;
  m.kernel.struct_size = sizeof(dvt_kernel), m.kernel.op_version = row.version;
  m.kernel.op = m.row.op.c_str(), m.kernel.engine = row.engine, m.kernel.operands = m.operands.data();
  m.kernel.n_in = uint32_t(row.in.size()), m.kernel.n_out = uint32_t(row.out.size());
  return &m.kernel;
}

// ---- the backend ------------------------------------------------------------------------------------------------

struct Options {
  uint32_t kind = DVT_KIND_OTHER, caps = DVT_CAP_HOST_MAPPED, devices = 1;
  uint64_t alloc_align = 64;
};
struct Plugin {
  Plugin(const char* name, const std::vector<Row>& rows, Options options = {}) : options(options) {
    for (const Row& row : rows) kernels.push_back(make_row(row));
    table.struct_size = sizeof table, table.abi_major = DVT_ABI_MAJOR, table.abi_draft = DVT_ABI_DRAFT;
    table.name = name, table.kernels = kernels.data(), table.n_kernels = kernels.size();
    table.device_count = [](uint32_t* n) { return *n = opening->options.devices, DVT_OK; };
    table.device_open = [](uint32_t, dvt_device** out) { return *out = new dvt_device{opening}, DVT_OK; };
    table.device_close = [](dvt_device* d) { delete d; };
    table.device_props = [](dvt_device* d, dvt_props* p) {
      p->kind = d->plugin->options.kind, p->caps = d->plugin->options.caps;
      p->dl_device_type = 12, p->alloc_align = d->plugin->options.alloc_align;
      return DVT_OK;
    };
    table.alloc = [](dvt_device* d, uint64_t size, uint32_t, dvt_stream*, void** out) {
      *out = std::aligned_alloc(d->plugin->options.alloc_align, size);
      const std::lock_guard lock(memory_mutex);
      memory[static_cast<char*>(*out)] = size;
      return DVT_OK;
    };
    table.dealloc = [](dvt_device*, void* data, uint32_t, dvt_stream*) {
      const std::lock_guard lock(memory_mutex);
      memory.erase(static_cast<char*>(data));
      std::free(data);
    };
    table.copy = [](dvt_device*, const DLTensor* to, const DLTensor* from, dvt_stream*) {
      if (const int64_t bytes = count(*from) * (from->dtype.bits / 8))
        std::memcpy(to->data, from->data, size_t(bytes));
      return DVT_OK;
    };
    opening = this;
    backend = &attach_backend(name, &table);
  }
  Plugin(const Plugin&) = delete;
  Device& device(size_t i = 0) { return *backend->devices.at(i); }
  dvt_status fail(dvt_status code, const char* why) { return host->fail(host, code, 0, __FILE__, __LINE__, why); }

  static inline Plugin* opening = nullptr;
  const Options options;
  std::vector<const dvt_kernel*> kernels;
  dvt_backend table{};
  Backend* backend;
  const dvt_host* host = new_host("recorder", "");
};
// It lives as long as the process.
inline Plugin& plugin(const char* name, const std::vector<Row>& rows, Options options = {}) {
  return *new Plugin(name, rows, options);
}

// ---- arrays and calls -------------------------------------------------------------------------------------------

inline Tensor array(Device& device, const Ints& shape, Doubles values = {}, DType dtype = DType::f32) {
  Tensor t;
  t.set_type(dtype, &device);
  t.set_shape(shape);
  for (uint64_t i = values.size(); i < t.numel; ++i) values.push_back(double(i));
  Stream& stream = current_stream(device);
  t.own(allocate(device, device.index, stream, t.bytes()));
  std::vector<char> bytes(t.bytes() + 1);
  for (uint64_t i = 0; i < t.numel; ++i) put(dtype, &bytes[i * info(dtype).bytes()], values[i]);
  DLTensor host = t.view;
  host.data = bytes.data(), host.device = {static_cast<decltype(host.device.device_type)>(1), 0};
  use(*t.storage, stream, true);
  copy_bytes(device, stream, t.view, host);
  return t;
}
inline Tensor number(double value, DType dtype = DType::f32) {
  char bits[16] = {};
  put(dtype, bits, value);
  return host_scalar(dtype, bits);
}
inline const Tensor absent{};  // an absent optional operand
// In memory that the host can read, as on all devices of the tests.
inline std::string values(const Tensor& t) {
  if (t.device) t.device->synchronize();
  Doubles v;
  for (uint64_t i = 0; i < t.numel; ++i) v.push_back(get(t.dtype, address(t.view, int64_t(i))));
  return show(v);
}

using Value = std::variant<std::nullptr_t, int, double, bool, Ints, std::string, DType>;
using Settings = std::vector<std::pair<std::string, Value>>;
inline Attrs attributes(const Op& o, const Settings& settings) {
  static auto& strings = *new std::deque<std::string>;
  Attrs attrs = o.defaults;
  int i = 0;
  for (const ParamSpec& p : o.spec.params) {
    if (is_operand(p.kind)) continue;
    for (const auto& [name, v] : settings) {
      if (name != p.name) continue;
      dvt_attr& a = attrs.at[i];
      if (auto n = std::get_if<int>(&v)) a = {DVT_A_I64, 1, {.i = *n}};
      else if (auto f = std::get_if<double>(&v)) a = {DVT_A_F64, 1, {.f = *f}};
      else if (auto b = std::get_if<bool>(&v)) a = {DVT_A_BOOL, 1, {.i = *b}};
      else if (auto is = std::get_if<Ints>(&v)) attrs.set_ints(i, *is);
      else if (auto t = std::get_if<DType>(&v)) a = {DVT_A_DTYPE, 1, {.dt = info(*t).dl}};
      else if (auto s = std::get_if<std::string>(&v))
        a = {DVT_A_STR, uint32_t(s->size()), {.s = strings.emplace_back(*s).c_str()}};
      else a = {DVT_A_NONE, 0, {.raw = 0}};
    }
    ++i;
  }
  return attrs;
}

struct Call {  // the result of `infer` stays for inspection
  Call(const Op& o, std::vector<const Tensor*> operands, const Settings& settings = {}, Device* device = nullptr)
      : in(std::move(operands)), attrs(attributes(o, settings)), inv(o, device, in.data(), int(in.size()), attrs) {
    for (const Tensor*& t : in)
      if (t == &absent) t = nullptr;
    for (uint32_t i = 0; i < o.spec.n_out; ++i) inv.out[i] = &out[i];
  }
  const Plan& plan() { return inv.infer(), *inv.plan; }
  std::string engine() { return plan().rows()[0].row->engine; }
  Tensor& run() { return inv.infer(), inv.run(), out[0]; }

  std::vector<const Tensor*> in;
  Attrs attrs;
  Tensor out[kMaxOutputs];
  Invocation inv;
};
inline Tensor run(const std::string& name, std::vector<const Tensor*> in, const Settings& settings = {},
                  Device* device = nullptr) {
  return Call(op(name), std::move(in), settings, device).run();
}
// x = op(x, others...), in x's memory if the row allows it.
inline Tensor& update(const std::string& name, Tensor& x, std::vector<const Tensor*> in,
                      const Settings& settings = {}) {
  in.insert(in.begin(), &x);
  Call call(op(name), in, settings);
  call.inv.replaced = &x;
  call.run();
  return x = std::move(call.out[0]);
}
inline Tensor slice(const Tensor& x, const Ints& start, const Ints& stop, const Ints& step) {
  return run("slice", {&x}, {{"start", start}, {"stop", stop}, {"step", step}});
}
inline Tensor permute(const Tensor& x, const Ints& axes) { return run("permute_dims", {&x}, {{"axes", axes}}); }
inline uint64_t in_use(Device& device) { return memory_stats(device).in_use; }
}  // namespace recorder
