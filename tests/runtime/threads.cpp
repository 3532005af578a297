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
  std::puts("ok");
}
