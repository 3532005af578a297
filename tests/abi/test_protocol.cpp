// The two plugins, called as the header documents, without the runtime.
#include <atomic>
#include <cstring>

#include "check.hpp"
#include "device/plugins.hpp"

using namespace plugins;

namespace {
const dvt_kernel& row(const dvt_backend& table, const char* op, uint8_t bits = 32) {
  for (uint64_t i = 0; i < table.n_kernels; ++i)
    if (!std::strcmp(table.kernels[i]->op, op) && table.kernels[i]->operands[0].dtype.bits == bits)
      return *table.kernels[i];
  std::abort();
}

struct Call {  // one-dimensional operands; all of it is invalid once run has returned
  explicit Call(dvt_stream* stream, uint64_t id) {
    call.struct_size = sizeof call, call.stream = stream, call.correlation_id = id;
    call.in = in, call.out = out, call.n_out = 1;
  }
  void operand(void* data, int64_t n, DLDataType type, bool output) {
    shape[k] = n;
    tensor[k] = {data, {}, 1, type, &shape[k], &stride, 0};
    if (output) out[0] = &tensor[k];
    else in[call.n_in++] = &tensor[k];
    ++k;
  }
  DLTensor tensor[3];
  int64_t shape[3], stride = 1;
  const DLTensor *in[2], *out[1];
  dvt_call call{};
  int k = 0;
};
constexpr DLDataType f32{DVT_FLOAT, 32, 1}, i64{DVT_INT, 64, 1};
}  // namespace

TEST(out_structs_of_an_older_host_are_not_overrun) {
  for (Device* device : {&minimal(), &queue().device}) {
    struct {
      dvt_props props;
      char after[64];
    } memory;
    std::memset(&memory, 0xAB, sizeof memory);
    memory.props.struct_size = offsetof(dvt_props, dl_device_type);
    CHECK_EQ(device->backend->table->device_props(device->handle, &memory.props), DVT_OK);
    CHECK_EQ(reinterpret_cast<unsigned char*>(&memory.props.alloc_align)[0], 0xABu);
    CHECK_EQ(device->backend->table->device_open(5, nullptr), DVT_INVALID);
  }
}

TEST(a_call_is_copied_before_run_returns) {
  Device& device = queue().device;
  const dvt_backend& table = *device.backend->table;
  const dvt_streams& s = *table.streams;
  dvt_stream *first, *second;
  dvt_event* event;
  CHECK_EQ(s.create(device.handle, 0, &first), DVT_OK);
  CHECK_EQ(s.create(device.handle, 0, &second), DVT_OK);
  CHECK_EQ(s.ev_create(device.handle, 0, &event), DVT_OK);
  uint32_t done = 0;
  CHECK_EQ(s.ev_query(event, &done), DVT_OK);
  CHECK_EQ(done, 1u);  // never recorded: done

  float* x[3];
  for (float*& memory : x) {
    CHECK_EQ(table.alloc(device.handle, 256, DVT_MEM_DEVICE, first, reinterpret_cast<void**>(&memory)), DVT_OK);
    for (int i = 0; i < 64; ++i) memory[i] = float(i);
  }
  queue().hold(1);
  {
    Call call(first, 41);
    call.operand(x[0], 64, f32, false), call.operand(x[1], 64, f32, false), call.operand(x[0], 64, f32, true);
    CHECK_EQ(row(table, "dvt.add").run(device.handle, &call.call), DVT_OK);
    std::memset(static_cast<void*>(&call), 0xCD, sizeof call);
  }
  CHECK_EQ(x[0][5], 5.f);
  CHECK_EQ(s.ev_record(event, first), DVT_OK);
  CHECK_EQ(s.ev_query(event, &done), DVT_OK);
  CHECK_EQ(done, 0u);
  CHECK_EQ(s.ev_wait(second, event), DVT_OK);
  {
    Call call(second, 42);
    call.operand(x[0], 64, f32, false), call.operand(x[0], 64, f32, false), call.operand(x[2], 64, f32, true);
    CHECK_EQ(row(table, "dvt.add").run(device.handle, &call.call), DVT_OK);
  }
  queue().hold(0);
  CHECK_EQ(s.sync(second), DVT_OK);
  CHECK_EQ(x[2][5], 20.f);
  CHECK_EQ(s.ev_query(event, &done), DVT_OK);
  CHECK_EQ(done, 1u);

  int64_t bad[2] = {3, 99};
  Call call(first, 77);
  call.operand(x[1], 64, f32, false), call.operand(bad, 2, i64, false), call.operand(x[2], 2, f32, true);
  CHECK_EQ(row(table, "dvt.take").run(device.handle, &call.call), DVT_OK);
  CHECK_EQ(s.sync(first), DVT_INDEX);
  CHECK_EQ(s.sync(first), DVT_OK);  // reported once
  call.call.stream = nullptr;
  CHECK_EQ(row(table, "dvt.take").run(device.handle, &call.call), DVT_INDEX);

  static std::atomic<int> ran{0};
  CHECK_EQ(s.host_fn(first, [](void*) { ++ran; }, nullptr), DVT_OK);
  for (float* memory : x) table.dealloc(device.handle, memory, DVT_MEM_DEVICE, first);
  CHECK_EQ(s.sync(first), DVT_OK);
  CHECK_EQ(ran.load(), 1);
  s.ev_destroy(event);
  s.destroy(second);
  s.destroy(first);
}

TEST(kernels_of_both) {
  for (Device* device : {&minimal(), &queue().device}) {
    Stream& stream = *device->default_stream;
    Vector x = filled(*device, 6, 0), k(*device, 3, DType::i64), out(*device, 3);
    write(x, std::vector<float>{0, 1, 2, 3, 4, 5}, stream);
    write(k, std::vector<int64_t>{5, -6, 2}, stream);
    run("take", stream, {&x, &k}, out);
    CHECK(read(out) == (std::vector<float>{5, 0, 2}));
    Vector three(*device, 3);
    Call call(stream.handle, 1);
    call.operand(x.storage->data, 3, f32, false), call.operand(three.storage->data, 3, f32, true);
    int64_t two = 2;
    call.tensor[0].strides = &two;
    CHECK_EQ(row(*device->backend->table, "dvt.copy", 32).run(device->handle, &call.call), DVT_OK);
    CHECK(read(three) == (std::vector<float>{0, 2, 4}));
    stream.synchronize();
  }
}

CHECK_MAIN
