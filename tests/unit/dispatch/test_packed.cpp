// Operands that a row packs: when, for which calls, and when the packed bytes are freed.
#include <sys/wait.h>

#include <atomic>
#include <random>
#include <thread>

#include "device/guard.hpp"
#include "device/packs.hpp"
#include "device/plugins.hpp"
#include "dispatch/recorder.hpp"

using namespace recorder;

// ---- a product of matrices that packs x2 ------------------------------------------------------------------------
namespace {
struct Counts {
  std::atomic<int> asked{0}, packed{0}, ran{0}, ran_packed{0};
  std::string since() {  // the last time
    return "asked " + std::to_string(asked.exchange(0)) + ", packed " + std::to_string(packed.exchange(0)) +
           ", ran " + std::to_string(ran.exchange(0)) + ", with packed " + std::to_string(ran_packed.exchange(0));
  }
} counts;
std::atomic<dvt_status> size_status{DVT_OK}, pack_status{DVT_OK};

// On the call's stream, if it has one.
dvt_status enqueue(const dvt_call& c, std::function<void()> job) {
  if (!c.stream) return job(), DVT_OK;
  const auto run = [](void* own) {
    const std::unique_ptr<std::function<void()>> job(static_cast<std::function<void()>*>(own));
    (*job)();
  };
  return plugins::queue().device.backend->table->streams->host_fn(c.stream, run,
                                                                  new std::function<void()>(std::move(job)));
}

struct Matrix {
  explicit Matrix(const DLTensor& t)
      : data(static_cast<float*>(t.data)),
        rows(t.shape[0]),
        columns(t.shape[1]),
        down(t.strides[0]),
        right(t.strides[1]) {}
  float& at(int64_t i, int64_t j) const { return data[i * down + j * right]; }
  float* data;
  int64_t rows, columns, down, right;
};

// The columns of x2, one after another, with a sign that only the right layout undoes.
float sign_of(uint64_t layout) { return layout == 1 ? 1.f : -1.f; }
dvt_status pack_size(dvt_device*, const dvt_call* c, uint32_t operand, uint64_t* size, uint64_t* layout) {
  ++counts.asked;
  CHECK(operand == 1 && !c->stream && !c->packed);
  *size = uint64_t(count(*c->in[1])) * sizeof(float);
  *layout = c->in[0]->shape[0] > 4 ? 2 : 1;
  return size_status;
}
dvt_status pack(dvt_device*, const dvt_call* c, uint32_t operand, const dvt_packed* to) {
  ++counts.packed;
  CHECK(operand == 1 && !c->packed && to->size == uint64_t(count(*c->in[1])) * sizeof(float));
  if (pack_status != DVT_OK) return pack_status;
  return enqueue(*c, [x2 = Matrix(*c->in[1]), to = *to] {
    float* next = static_cast<float*>(to.data);
    for (int64_t j = 0; j < x2.columns; ++j)
      for (int64_t i = 0; i < x2.rows; ++i) *next++ = sign_of(to.layout) * x2.at(i, j);
  });
}
dvt_status multiply(dvt_device*, const dvt_call* c) {
  const dvt_packed packed = c->packed ? c->packed[1] : dvt_packed{};
  ++counts.ran, counts.ran_packed += packed.data != nullptr;
  return enqueue(*c, [x1 = Matrix(*c->in[0]), x2 = Matrix(*c->in[1]), out = Matrix(*c->out[0]), packed] {
    for (int64_t i = 0; i < out.rows; ++i)
      for (int64_t j = 0; j < out.columns; ++j) {
        const float* column = static_cast<float*>(packed.data) + (packed.data ? j * x2.rows : 0);
        float sum = 0;
        for (int64_t k = 0; k < x2.rows; ++k)
          sum += x1.at(i, k) * (packed.data ? sign_of(packed.layout) * column[k] : x2.at(k, j));
        out.at(i, j) = sum;
      }
  });
}
constexpr dvt_operand kOperands[] = {{{DVT_FLOAT, 32, 1}, DVT_O_STRIDED, 0, 0},
                                     {{DVT_FLOAT, 32, 1}, DVT_O_STRIDED | DVT_O_PACKABLE, 0, 0},
                                     {{DVT_FLOAT, 32, 1}, 0, 0, 0}};
constexpr dvt_kernel kProduct{sizeof(dvt_kernel), 1,       "t.product", nullptr, kOperands, 2, 1, 0, 0,
                              multiply,           nullptr, pack_size,   pack};

Device& with_product(Device& d) {
  static const Op& product = register_op({.name = "t.product",
                                          .shape = "matmul",
                                          .dtype = "promote",
                                          .params = {{"x1", ParamKind::value}, {"x2", ParamKind::value}}});
  (void)product;
  add_kernel(d, &kProduct);
  return d;
}
Device& device() {
  static Device& d = with_product(plugin("packing", basic_rows()).device());
  return d;
}
Device& queue() {
  static Device& d = with_product(plugins::queue().device);
  return d;
}
Tensor iota(const Ints& shape, DType t = DType::f32) { return array(device(), shape, {}, t); }
std::string product(const Tensor& x1, const Tensor& x2) { return values(run("t.product", {&x1, &x2})); }
uint64_t packed_bytes(Device& d = device()) { return memory_stats(d).packed; }

const std::string kFirst = "asked 0, packed 0, ran 1, with packed 0",
                  kMakes = "asked 1, packed 1, ran 1, with packed 1",
                  kTakes = "asked 0, packed 0, ran 1, with packed 1";
}  // namespace

TEST(packed_for_the_second_call) {
  const Tensor x = iota({2, 3});
  const uint64_t held = in_use(device());
  {
    const Tensor w = iota({3, 2});
    for (const std::string& expected : {kFirst, kMakes, kTakes, kTakes}) {
      CHECK_EQ(product(x, w), "10 13 28 40");
      CHECK_EQ(counts.since(), expected);
    }
    CHECK_EQ(packed_bytes(), 64u);
    CHECK_EQ(in_use(device()), held + 128);
  }
  CHECK_EQ(packed_bytes(), 0u);
  CHECK_EQ(in_use(device()), held);
}

TEST(operands_used_once_are_not_packed) {
  const Tensor x = iota({2, 3});
  for (int i = 0; i < 5; ++i) product(x, iota({3, 2}));  // in the same memory each time
  CHECK_EQ(counts.since(), "asked 0, packed 0, ran 5, with packed 0");
  const Tensor k = iota({3, 2}, DType::i32);
  for (int i = 0; i < 3; ++i) CHECK_EQ(product(x, k), "10 13 28 40");  // cast for each call
  CHECK_EQ(counts.since(), "asked 0, packed 0, ran 3, with packed 0");
}

TEST(another_value_is_not_packed_yet) {
  const Tensor x = iota({2, 3}), one = number(1);
  Tensor w = iota({3, 2});
  const auto thrice = [&](const std::string& expected) {
    for (int i = 0; i < 3; ++i) CHECK_EQ(product(x, w), expected);
    CHECK_EQ(counts.since(), "asked 1, packed 1, ran 3, with packed 2");
  };
  thrice("10 13 28 40");
  const void* memory = w.view.data;
  update("add", w, {&one});
  CHECK_EQ(packed_bytes(), 0u);
  thrice("13 16 40 52");
  update("set_slice", w, {&one}, {{"start", Ints{0, 0}}, {"stop", Ints{3, 1}}, {"step", Ints{1, 1}}});
  CHECK_EQ(packed_bytes(), 0u);
  thrice("3 16 12 52");
  CHECK_EQ(w.view.data, memory);
  product(x, w), update("add", w, {&one}), product(x, w);  // once each
  CHECK_EQ(counts.since(), "asked 0, packed 0, ran 2, with packed 1");
}

TEST(each_view_for_itself) {
  const Tensor x = iota({2, 3}), both = iota({3, 4}), transposed = iota({2, 3});
  const Tensor left = slice(both, {0, 0}, {3, 2}, {1, 1}), right = slice(both, {0, 2}, {3, 4}, {1, 1});
  for (int i = 0; i < 4; ++i) {
    CHECK_EQ(product(x, left), "20 23 56 68");
    CHECK_EQ(product(x, right), "26 29 80 92");
    CHECK_EQ(product(x, permute(transposed, {1, 0})), "5 14 14 50");  // a new view each time
  }
  CHECK_EQ(counts.packed.load(), 3);
  counts.since();
}

TEST(calls_of_another_kind) {
  const Tensor w = iota({3, 2}), two = iota({2, 3}), three = iota({3, 3}), eight = iota({8, 3});
  const auto last = [&](const Tensor& x) {  // in the workspace of the row
    const std::string all = product(x, w);
    return all.substr(all.rfind(' ') + 1);
  };
  last(two), last(two);
  counts.since();
  CHECK_EQ(last(three), "67");  // the same layout serves
  CHECK_EQ(counts.since(), "asked 1, packed 0, ran 1, with packed 1");
  CHECK_EQ(last(three), "67");
  CHECK_EQ(counts.since(), kTakes);
  CHECK_EQ(last(eight), "202");  // another layout would have to be packed
  CHECK_EQ(counts.since(), "asked 1, packed 0, ran 1, with packed 0");
  CHECK_EQ(last(eight), "202");
  CHECK_EQ(counts.since(), kMakes);
  for (const Tensor* x : {&two, &eight, &three}) last(*x);
  CHECK_EQ(counts.since(), "asked 0, packed 0, ran 3, with packed 3");
}

TEST(an_operand_that_a_row_declines_is_not_queried_again) {
  const Tensor x = iota({2, 3}), w = iota({3, 2});
  size_status = DVT_UNSUPPORTED;
  for (int i = 0; i < 5; ++i) CHECK_EQ(product(x, w), "10 13 28 40");
  size_status = DVT_OK;
  CHECK_EQ(counts.since(), "asked 1, packed 0, ran 5, with packed 0");
}

TEST(a_row_that_fails) {
  const Tensor x = iota({2, 3}), w = iota({3, 2}), v = iota({3, 2});
  size_status = DVT_INVALID;
  product(x, w);
  CHECK_THROWS(Error, "[t.product]", product(x, w));
  size_status = DVT_OK, pack_status = DVT_INTERNAL;
  CHECK_THROWS(Error, "[t.product]", product(x, w));
  pack_status = DVT_OOM;
  for (int i = 0; i < 3; ++i) CHECK_EQ(product(x, v), "10 13 28 40");
  pack_status = DVT_OK;
  CHECK_EQ(packed_bytes(), 0u);
  counts.since();
}

TEST(shared_memory_is_not_packed) {
  const Tensor x = iota({2, 3}), w = iota({3, 2});
  for (int i = 0; i < 3; ++i) product(x, w);
  CHECK_EQ(packed_bytes(), 64u);
  never_pack(*w.storage);
  CHECK_EQ(packed_bytes(), 0u);
  counts.since();
  for (int i = 0; i < 3; ++i) CHECK_EQ(product(x, w), "10 13 28 40");
  CHECK_EQ(counts.since(), "asked 0, packed 0, ran 3, with packed 0");

  static float theirs[] = {0, 1, 2, 3, 4, 5};
  Tensor imported;
  imported.set_type(DType::f32, &device());
  imported.set_shape(Ints{3, 2});
  imported.own(adopt(device(), *device().default_stream, theirs, [](Storage*) {}, nullptr));
  for (int i = 0; i < 3; ++i) CHECK_EQ(product(x, imported), "10 13 28 40");
  CHECK_EQ(counts.since(), "asked 0, packed 0, ran 3, with packed 0");
}

TEST(packed_operands_go_before_memory_is_out) {
  constexpr int64_t n = 512;  // a MiB each
  const Tensor x = iota({1, n}), w = iota({n, n}), v = iota({n, n}), small = iota({n, 2});
  const auto multiply = [&](const Tensor& by) { run("t.product", {&x, &by}); };
  for (int i = 0; i < 2; ++i) multiply(w), multiply(small);
  CHECK(packed_bytes() > uint64_t{1} << 20);
  empty_cache(device());
  set_memory_limit(device(), memory_stats(device()).reserved + (1 << 16));
  for (int i = 0; i < 3; ++i) multiply(v);  // there is no memory to pack it, and no reason to drop others'
  CHECK(packed_bytes() > uint64_t{1} << 20);
  counts.since();
  {
    const Tensor more = iota({n, n});
    CHECK_EQ(packed_bytes(), 0u);
  }
  for (int i = 0; i < 3; ++i) multiply(w);  // otherwise the next one would drop it again
  CHECK_EQ(counts.since(), "asked 0, packed 0, ran 3, with packed 0");
  set_memory_limit(device(), 0);
}

TEST(poisoned_calls_of_packed_operands) {
  const Tensor x = iota({2, 3}), w = iota({3, 2});
  debug_checks = poisoned_calls;
  for (int i = 0; i < 3; ++i) CHECK_EQ(product(x, w), "10 13 28 40");
  debug_checks = 0;
  CHECK_EQ(counts.since(), "asked 1, packed 1, ran 3, with packed 2");
}

TEST(rows_that_cannot_be) {
  static const auto refuses = [](const char* name, const std::string& why, auto change) {
    dvt_operand* operands = new dvt_operand[3]{kOperands[0], kOperands[1], kOperands[2]};
    dvt_kernel* row = new dvt_kernel(kProduct);
    row->operands = operands;
    change(*row, operands);
    static dvt_backend table;
    table = *device().backend->table, table.name = name;
    static const dvt_kernel* rows[1];
    rows[0] = row, table.kernels = rows, table.n_kernels = 1;
    CHECK_THROWS(Error, why, attach_backend(name, &table));
  };
  refuses("half", "pack and pack_size: expected both", [](dvt_kernel& k, dvt_operand*) { k.pack = nullptr; });
  refuses("none", "DVT_O_PACKABLE without pack",
          [](dvt_kernel& k, dvt_operand*) { k.pack = nullptr, k.pack_size = nullptr; });
  refuses("nothing", "pack without an operand",
          [](dvt_kernel&, dvt_operand* operands) { operands[1].flags = DVT_O_STRIDED; });
}

// ---- streams and threads ----------------------------------------------------------------------------------------

TEST(another_stream_waits_for_what_was_packed) {
  Device& d = queue();
  Stream& other = *d.new_stream(0);
  const Tensor x = array(d, {2, 3}), w = array(d, {3, 2});
  d.synchronize();
  run("t.product", {&x, &w});
  plugins::stall(*d.default_stream, 60);
  run("t.product", {&x, &w});  // packs it after the stall
  set_current_stream(d, &other);
  Tensor out = run("t.product", {&x, &w});
  CHECK_EQ(counts.since(), "asked 1, packed 1, ran 3, with packed 2");
  CHECK_EQ(values(out), "10 13 28 40");
  set_current_stream(d, nullptr);
  d.free_stream(&other);
}

TEST(dropped_bytes_serve_calls_in_progress) {
  Device& d = queue();
  const Tensor x = array(d, {2, 3});
  Tensor w = array(d, {3, 2});
  run("t.product", {&x, &w}), run("t.product", {&x, &w});
  d.synchronize();
  plugins::stall(*d.default_stream, 30);
  Tensor out = run("t.product", {&x, &w});
  w = Tensor();
  CHECK_EQ(packed_bytes(d), 0u);
  for (int i = 0; i < 4; ++i) array(d, {3, 2}, {9, 9, 9, 9, 9, 9});  // would be in the same memory
  CHECK_EQ(values(out), "10 13 28 40");
  counts.since();
}

TEST(threads_pack_it_once) {
  Device& d = queue();
  for (int round = 0; round < 20; ++round) {
    const Tensor x = array(d, {2, 3}), w = array(d, {3, 2});
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        Stream* own = i % 2 ? d.new_stream(0) : nullptr;
        set_current_stream(d, own);
        for (int k = 0; k < 10; ++k) {
          const Tensor out = run("t.product", {&x, &w});
          current_stream(d).synchronize();
          wrong += get(DType::f32, address(out.view, 3)) != 40;
        }
        set_current_stream(d, nullptr);
        if (own) d.free_stream(own);
      });
    for (std::thread& t : threads) t.join();
    CHECK_EQ(wrong.load(), 0);
    CHECK_EQ(counts.packed.exchange(0), 1);
  }
  counts.since();
}

namespace {
// A weight that threads multiply by while others change it in place, export it and replace it.
struct Weight {
  std::mutex mutex;
  Tensor w;
  float value = 0;  // the value of each element

  std::pair<Tensor, float> read() {
    const std::lock_guard lock(mutex);
    return {w, value};
  }
  void put(Device& d, float to) {
    Tensor other = array(d, {3, 2}, Doubles(6, to));
    const std::lock_guard lock(mutex);
    std::swap(w, other), value = to;
  }
  void add_one() {
    const Tensor one = number(1);
    const std::lock_guard lock(mutex);
    update("add", w, {&one});
    ++value;
  }
};

struct Hammer {
  Device& d;
  Weight* weights;
  std::mt19937 random;
  Tensor one, many, large;
  int wrong = 0;

  void multiply() {
    const auto [w, value] = weights[random() % 4].read();
    for (int k = 0; k < 4; ++k) {
      const Tensor out = run("t.product", {random() % 4 ? &one : &many, &w});
      current_stream(d).synchronize();
      for (const int64_t i : {0, 3}) wrong += get(DType::f32, address(out.view, i)) != 3 * value;
    }
  }
  void step() {
    Weight& weight = weights[random() % 4];
    switch (random() % 24) {
      case 0:
      case 1: return weight.put(d, float(random() % 100));
      case 2:
      case 3: return weight.add_one();
      case 4: return never_pack(*weight.read().first.storage);
      case 5: return empty_cache(d);
      case 6: return set_memory_limit(d, memory_stats(d).reserved);
      case 7: return set_memory_limit(d, 0);
      case 8: return void(release_packs(d));
      case 9: run("t.product", {&one, &large}); return;
      default: return multiply();
    }
  }
};
}  // namespace

TEST(threads_that_change_drop_and_export_what_others_pack) {
  Device& d = queue();
  {
    Weight weights[4];
    for (Weight& w : weights) w.put(d, 1);
    const Tensor one = array(d, {2, 3}, Doubles(6, 1)), many = array(d, {8, 3}, Doubles(24, 1)),
                 large = array(d, {3, 4096});
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i)
      threads.emplace_back([&, i] {
        Stream* own = i ? d.new_stream(0) : nullptr;
        set_current_stream(d, own);
        {
          Hammer hammer{d, weights, std::mt19937(i), one, many, large};
          for (int k = 0; k < 1500; ++k) try {
              hammer.step();
            } catch (const Error& e) {  // the limit may be too low for a step
              hammer.wrong += e.kind != ErrorKind::memory;
              set_memory_limit(d, 0);
            }
          wrong += hammer.wrong;
        }
        set_current_stream(d, nullptr);
        if (own) d.free_stream(own);
      });
    for (std::thread& t : threads) t.join();
    CHECK_EQ(wrong.load(), 0);
    CHECK(counts.ran_packed > 0);
    set_memory_limit(d, 0);
  }
  counts.since();
  d.synchronize();
  CHECK_EQ(packed_bytes(d), 0u);
}

TEST(a_fork_while_other_threads_pack) {
  if (!check::forks_beside_threads) return;
  Device& d = with_product(plugins::minimal());
  std::atomic<bool> stop{false};
  const Tensor x = array(d, {2, 3}), shared = array(d, {3, 2});
  const auto thrice = [&](const Tensor& w) {
    for (int k = 0; k < 3; ++k)
      if (values(run("t.product", {&x, &w})) != "10 13 28 40") return false;
    return true;
  };
  std::thread other([&] {
    while (!stop) thrice(array(d, {3, 2})), release_packs(d);
  });
  for (int round = 0; round < 50; ++round) {
    const pid_t child = fork();
    if (!child) {
      alarm(20);
      bool right = thrice(shared) && thrice(array(d, {3, 2}));
      never_pack(*shared.storage);
      right &= thrice(shared);
      _exit(right ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
  }
  stop = true;
  other.join();
  counts.since();
}

CHECK_MAIN
