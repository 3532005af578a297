// DOVETAIL_POISON_CALLS: a call that a kernel keeps is invalid once it has returned. DOVETAIL_GUARD_MEMORY:
// writes outside its outputs are reported, with its name.
#include "device/guard.hpp"
#include "dispatch/recorder.hpp"

using namespace recorder;

namespace {
const dvt_call* kept;
const DLTensor* kept_tensor;
const int64_t* kept_shape;

Device& device() {
  static Device& d = plugin("poison", {{"dvt.add",
                                        {takes(DType::f32, kPlain), takes(DType::f32, kPlain)},
                                        {takes(DType::f32, 0)},
                                        [](const dvt_call& c) {
                                          kept = &c, kept_tensor = c.in[0], kept_shape = c.out[0]->shape;
                                          return computes(plus)(c);
                                        }}})
                         .device();
  return d;
}
constexpr uint64_t poison = 0xDBDBDBDBDBDBDBDB;
}  // namespace

TEST(a_call_ends_with_run) {
  debug_checks = poisoned_calls;
  const Tensor x = array(device(), {2, 3}), one = number(1);
  Tensor y = run("add", {&x, &one});
  CHECK_EQ(values(y), "1 2 3 4 5 6");
  CHECK_EQ(kept->n_in, uint32_t(poison));
  CHECK_EQ(reinterpret_cast<uintptr_t>(kept->in), poison);
  CHECK_EQ(reinterpret_cast<uintptr_t>(kept_tensor->data), poison);
  CHECK_EQ(uint64_t(*kept_shape), poison);
  const dvt_call* before = kept;
  for (int i = 0; i < 1000; ++i) y = run("add", {&x, &one});  // not the next contents of the memory
  CHECK_EQ(before->n_in, uint32_t(poison));
  CHECK_EQ(values(y), "1 2 3 4 5 6");
  debug_checks = 0;
}

TEST(without_it_rows_get_the_hosts_own_call) {
  const Tensor x = array(device(), {6});
  CHECK_EQ(values(run("add", {&x, &x})), "0 2 4 6 8 10");
  CHECK(kept->n_in != uint32_t(poison));
}

namespace {
// multiply: right, but it also writes `outside` bytes after (or before) output 0 or its workspace.
struct Outside {
  bool workspace = false;
  int64_t bytes = 0;
} outside;

Device& sloppy() {
  Row row{"dvt.multiply",
          {takes(DType::f32, kPlain), takes(DType::f32, kPlain)},
          {takes(DType::f32, 0)},
          [](const dvt_call& c) {
            const auto status = computes(times)(c);
            char* at = outside.workspace ? static_cast<char*>(c.workspace) + c.workspace_size
                                         : address(*c.out[0], 0) + count(*c.out[0]) * 4;
            if (outside.bytes > 0) std::memset(at, 0, size_t(outside.bytes));
            if (outside.bytes < 0) std::memset(static_cast<char*>(c.out[0]->data) + outside.bytes, 0, 1);
            return status;
          },
          [](const dvt_call&, dvt_answer& a) { return a.workspace = 100, DVT_OK; }};
  static Device& d = plugin("sloppy", basic_rows() + std::vector<Row>{row}).device();
  return d;
}
// The report on a product of six elements.
std::string reported(Outside how) {
  outside = how;
  const Tensor x = array(sloppy(), {2, 3});
  CHECK_EQ(values(run("multiply", {&x, &x})), "0 1 4 9 16 25");
  std::string all;
  for (const Overrun& o : overruns(sloppy())) all += to_string(o) + "\n";
  return all;
}
}  // namespace

TEST(writes_outside_an_output_name_the_op) {
  guard_memory(true);
  const uint64_t before = in_use(sloppy());
  CHECK_EQ(reported({}), "");
  CHECK_EQ(reported({.bytes = 4}), "[multiply] wrote 4 bytes past the end of its output 0 (24 B)\n");
  CHECK_EQ(reported({.bytes = -9}), "[multiply] wrote 9 bytes before the beginning of its output 0 (24 B)\n");
  CHECK_EQ(reported({.workspace = true, .bytes = 1}),
           "[multiply] wrote 1 byte past the end of its workspace (100 B)\n");
  CHECK_EQ(reported({}), "");
  CHECK_EQ(in_use(sloppy()), before);
  guard_memory(false);
  CHECK_EQ(reported({}), "");
}

TEST(guarded_memory_is_written_in_place) {
  guard_memory(true);
  Tensor x = array(device(), {6}), one = number(1);
  const void* at = x.view.data;
  update("add", x, {&one});
  CHECK_EQ(values(x), "1 2 3 4 5 6");
  CHECK_EQ(x.view.data, at);
  guard_memory(false);
}

CHECK_MAIN
