// runtime.h in C++17, from many threads: threads DEVICE LIBRARY...
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "api.h"

static void work(dvr_device* device, int number) {
  const int64_t shape[] = {16};
  std::vector<float> values(16, float(number)), got(16);
  const dvr_op* add = dvr_find_op("add");
  for (int i = 0; i < 200; ++i) {
    dvr_tensor x, y = nothing();
    array(&x, device, f32, 1, shape, values.data());
    const dvr_tensor* in[] = {&x, &x};
    OK(dvr_call(add, nullptr, in, 2, nullptr, 0, &y, 1, 0));
    OK(dvr_read(&y, got.data()));
    for (float v : got) CHECK(v == 2 * float(number));
    const std::string name = "no_op_" + std::to_string(number);  // errors are each thread's own
    CHECK(!dvr_find_op(name.c_str()));
    std::this_thread::yield();
    CHECK(std::string(last_error().message).find(name) != std::string::npos);
    dvr_tensor_release(&x);
    dvr_tensor_release(&y);
  }
}

// Threads share a program: each runs it for sizes of its own, which meet those of others.
static void share_a_program(dvr_device* device) {
  dvr_builder* builder;
  dvr_program* program;
  OK(dvr_builder_new(&builder));
  const int64_t any[] = {-1}, sixteen[] = {16};
  const std::vector<float> weights(16, 3);
  int32_t x, w, out;
  OK(dvr_builder_input(builder, f32, 1, any, nullptr, "x", &x));
  OK(dvr_builder_array(builder, f32, 1, sixteen, weights.data(), &w));
  int32_t rows;
  OK(dvr_builder_size(builder, x, 0, &rows));
  const int64_t shape[] = {0, 1};
  dvr_attr attr = {"shape", {DVT_A_I64S, 2, {}}};
  attr.value.v.is = shape;
  const dvr_number_at at = {"shape", 0, rows};
  OK(dvr_builder_call(builder, dvr_find_op("reshape"), &x, 1, &attr, 1, &at, 1, &out));
  const int32_t operands[] = {out, w};
  OK(dvr_builder_call(builder, dvr_find_op("multiply"), operands, 2, nullptr, 0, nullptr, 0, &out));
  OK(dvr_builder_finish(builder, &out, 1, &program));
  dvr_builder_free(builder);
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([=] {
      for (int i = 0; i < 100; ++i) {
        const int64_t n[] = {1 + (i + number) % 7};
        const std::vector<float> values(static_cast<size_t>(n[0]), float(number));
        std::vector<float> got(16 * values.size());
        dvr_tensor in, result = nothing();
        array(&in, device, f32, 1, n, values.data());
        dvr_tensor* in_list[] = {&in};
        OK(dvr_program_run(program, nullptr, in_list, 1, nullptr, &result, 1));
        OK(dvr_read(&result, got.data()));
        for (float v : got) CHECK(v == 3 * float(number));
        dvr_tensor_release(&in), dvr_tensor_release(&result);
      }
    });
  for (std::thread& t : threads) t.join();
  dvr_program_free(program);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  OK(dvr_load_backends(argv + 2, uint32_t(argc - 2)));
  dvr_device* device = dvr_find_device(argv[1]);
  CHECK(device);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(work, device, i);
  for (std::thread& t : threads) t.join();
  dvr_generator* g = dvr_default_generator();
  OK(dvr_generator_set(g, 1, 0));
  std::vector<std::thread> drawing;
  for (int i = 0; i < 4; ++i)
    drawing.emplace_back([g] {
      uint32_t key[4];
      for (int k = 0; k < 1000; ++k) OK(dvr_generator_key(g, 4, key));
    });
  for (std::thread& t : drawing) t.join();
  uint64_t offset = 0;
  OK(dvr_generator_get(g, nullptr, &offset));
  CHECK(offset == 4000);
  share_a_program(device);
  std::puts("ok");
}
