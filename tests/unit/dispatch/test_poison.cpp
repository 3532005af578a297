// DOVETAIL_POISON_CALLS: what a kernel keeps of its call is gone when it has returned.
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
  poisons_calls = true;
  const Tensor x = array(device(), {2, 3}), one = number(1);
  Tensor y = run("add", {&x, &one});
  CHECK_EQ(values(y), "1 2 3 4 5 6");
  CHECK_EQ(kept->n_in, uint32_t(poison));
  CHECK_EQ(reinterpret_cast<uintptr_t>(kept->in), poison);
  CHECK_EQ(reinterpret_cast<uintptr_t>(kept_tensor->data), poison);
  CHECK_EQ(uint64_t(*kept_shape), poison);
  const dvt_call* before = kept;
  for (int i = 0; i < 1000; ++i) y = run("add", {&x, &one});  // not what the memory is used for next
  CHECK_EQ(before->n_in, uint32_t(poison));
  CHECK_EQ(values(y), "1 2 3 4 5 6");
  poisons_calls = false;
}

TEST(without_it_rows_get_the_hosts_own) {
  const Tensor x = array(device(), {6});
  CHECK_EQ(values(run("add", {&x, &x})), "0 2 4 6 8 10");
  CHECK(kept->n_in != uint32_t(poison));
}

CHECK_MAIN
