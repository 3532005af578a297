// Ops that a device lacks: through float32, on another device of the host, or an error with a cure. And
// copies of arrays between devices.
#include <chrono>
#include <thread>

#include "device/plugins.hpp"
#include "dispatch/recorder.hpp"

using namespace recorder;
using plugins::queue;

namespace {
constexpr DType f32 = DType::f32, f16 = DType::f16, f64 = DType::f64;
std::vector<std::string> warnings;

Device& lacking() {
  static Device& d =
      plugin("lacking",
             basic_rows() +
                 std::vector<Row>{
                     {"dvt.sqrt",
                      {takes(f32)},
                      {takes(f32, 0)},
                      [](const dvt_call& c) { return copy_elements(c); },
                      [](const dvt_call& c, dvt_answer& a) {
                        a.reason = "it has an even number of elements";
                        return count(*c.in[0]) % 2 ? DVT_OK : DVT_UNSUPPORTED;
                      }},
                     {"dvt.equal", {takes(f32), takes(f32)}, {takes(DType::b8, 0)}, computes([](const Doubles& x) {
                        return x[0] == x[1];
                      })},
                     {"f.full", {}, {takes(f32, 0)}, fill_from_attribute},
                     {"dvt.multiply", {takes(f64), takes(f64)}, {takes(f64, 0)}, computes(times)}})
          .device();
  on_warning = [](const std::string& text) { warnings.push_back(text); };
  return d;
}
// From here on there is a device of kind cpu.
Device& host() {
  lacking();
  static Device& d =
      plugin("host",
             basic_rows() +
                 std::vector<Row>{
                     {"dvt.multiply",
                      {takes(f32, kPlain), takes(f32, kPlain)},
                      {takes(f32, 0)},
                      computes(times),
                      {},
                      "on_host"},
                     {"dvt.sqrt",
                      {takes(f32)},
                      {takes(f32, 0)},
                      computes([](const Doubles& x) { return x[0] / 2; }),
                      {},
                      "on_host"},
                     {"dvt.max", {takes(f32)}, {takes(f32, 0)}, computes([](const Doubles&) { return 42.; })}},
             {.kind = DVT_KIND_CPU})
          .device();
  return d;
}
std::string report() {
  std::string text;
  for (const FallbackCount& c : fallback_report(false))
    text += c.op + " on " + c.device + " " + std::to_string(c.calls) + "; ";
  return text;
}
}  // namespace

TEST(a_no_device_of_the_host) {  // first, because other tests add one
  const Tensor x = array(lacking(), {2, 3});
  const std::string why =
      "[multiply] float32, float32 is not supported on lacking:0: the device has no kernel for it and the "
      "op has no decomposition; ";
  set_fallback(Fallback::error);
  CHECK_THROWS(
      Error, why + "dovetail.fallback('allow') runs it on another device of the host, .astype() changes the dtype",
      run("multiply", {&x, &x}));
  set_fallback(Fallback::allow);
  CHECK_THROWS(Error, why + "no cpu device is installed that could run it, .astype() changes the dtype",
               run("multiply", {&x, &x}));
  CHECK_THROWS(Error, "[sqrt] not supported on lacking:0: it has an even number of elements", run("sqrt", {&x}));
  CHECK_EQ(host_device(lacking()), static_cast<Device*>(nullptr));
  host();
  CHECK_EQ(host_device(lacking()), &host());
  CHECK_EQ(host_device(host()), static_cast<Device*>(nullptr));
  CHECK_EQ(values(run("multiply", {&x, &x})), "0 1 4 9 16 25");  // failures are not cached
  fallback_report(true);
}

TEST(error_warn_allow) {
  host();
  const Tensor x = array(lacking(), {2, 3}), three = number(3);
  set_fallback(Fallback::error);
  CHECK_THROWS(Error, "[multiply] float32, float32 is not supported on lacking:0", run("multiply", {&x, &x}));
  CHECK(warnings.empty() && report().empty());

  set_fallback(Fallback::allow);
  seen.clear();
  const Tensor out = run("multiply", {&x, &three});
  CHECK(out.device == &lacking());
  CHECK_EQ(values(out), "0 3 6 9 12 15");
  CHECK_EQ(seen.back(), "on_host: f32(6)/(1), host f32()/() -> f32(6)/(1)");
  CHECK(warnings.empty());
  CHECK_EQ(report(), "multiply on lacking:0 1; ");

  set_fallback(Fallback::warn);
  for (int i = 0; i < 3; ++i) run("multiply", {&x, &x});
  CHECK_EQ(warnings.size(), 1u);  // also after calls without a warning
  CHECK_EQ(warnings[0],
           "[multiply] runs on host:0: lacking:0 has no kernel for it. dovetail.fallback('error') forbids this, "
           "'allow' silences it");
  CHECK_EQ(report(), "multiply on lacking:0 4; ");
  run("max", {&x}, {{"axis", Ints{-1}}, {"keepdims", true}});
  CHECK_EQ(warnings.size(), 2u);
  CHECK_EQ(fallback_report(true).size(), 2u);
  CHECK(report().empty());
  run("multiply", {&x, &x});
  CHECK_EQ(warnings.size(), 3u);
  set_fallback(Fallback::error);
  CHECK_THROWS(Error, "[multiply] float32, float32 is not supported",
               run("multiply", {&x, &x}));  // plans are rebuilt
  CHECK(fallback() == Fallback::error);
}

TEST(what_is_run_on_the_host) {
  host();
  set_fallback(Fallback::allow);
  const Tensor x = array(lacking(), {2, 3}), t = permute(x, {1, 0}), row = array(lacking(), {2}),
               empty = array(lacking(), {0, 2});
  CHECK_EQ(values(run("multiply", {&t, &row})), "0 3 0 4 0 5");
  const Tensor nothing = run("multiply", {&empty, &row});
  CHECK(nothing.device == &lacking() && to_string(nothing.shape()) == "(0, 2)");
  const Tensor most =
      run("max", {&x}, {{"axis", Ints{-1}}, {"keepdims", true}});  // attributes are normalised twice
  CHECK_EQ(to_string(most.shape()) + values(most), "(2, 1)42 42");
  // A row that refuses only this call.
  const Tensor odd = array(lacking(), {3}), even = array(lacking(), {2});
  CHECK_EQ(values(run("sqrt", {&odd})), "0 1 2");
  CHECK_EQ(values(run("sqrt", {&even})), "0 0.5");
  set_fallback(Fallback::error);
  CHECK_THROWS(Error, "[sqrt] not supported on lacking:0: it has an even number", run("sqrt", {&even}));
  set_fallback(Fallback::allow);
  // Neither the device nor the host has it.
  const std::string why =
      "[less] float32, float32 is not supported on host:0: the device has no kernel for it and the op has no "
      "decomposition";
  try {
    run("less", {&x, &x});
    CHECK(false);
  } catch (const Error& e) {
    CHECK_EQ(std::string(e.what()), why);  // and no cure that does not help
    CHECK(e.kind == ErrorKind::not_implemented);
  }
  Tensor y = array(lacking(), {2, 3});
  CHECK_EQ(values(update("multiply", y, {&y})), "0 1 4 9 16 25");
  fallback_report(true);
}

// ---- through float32 --------------------------------------------------------------------------------------------

TEST(float16_on_a_device_with_float32) {
  host();
  set_fallback(Fallback::error);
  const Tensor x = array(lacking(), {3}, {}, f16), one = number(1, f16);
  seen.clear();
  const Tensor out = run("add", {&x, &one});
  CHECK(out.dtype == f16);
  CHECK_EQ(values(out), "1 2 3");
  CHECK_EQ(seen.size(), 3u);
  CHECK_EQ(seen.at(1), "add: f32(3)/(1), host f32()/() -> f32(3)/(1)");
  seen.clear();
  CHECK_EQ(values(run("equal", {&x, &one})), "0 1 0");
  CHECK_EQ(seen.size(), 2u);  // the output is not float16: it is not cast
  CHECK_THROWS(Error, "[multiply] float32, float32 is not supported", run("multiply", {&x, &x}));
  set_fallback(Fallback::allow);
  CHECK_EQ(values(run("multiply", {&x, &x})), "0 1 4");  // float32 on the host
  set_fallback(Fallback::error);
}

TEST(float16_of_ops_without_operands) {
  register_op(
      {.name = "f.full",
       .shape = "from_shape",
       .dtype = "given",
       .params = {{"shape", ParamKind::i64s}, {"fill_value", ParamKind::scalar}, {"dtype", ParamKind::dtype}},
       .flags = op_half_in_f32});
  const Settings settings{{"shape", Ints{2}}, {"fill_value", 0.5}, {"dtype", f16}};
  seen.clear();
  const Tensor out = run("f.full", {}, settings, &lacking());
  CHECK(out.dtype == f16 && out.device == &lacking());
  CHECK_EQ(values(out), "0.5 0.5");
  CHECK_EQ(seen.at(0), "full: -> f32(2)/(1)");
  CHECK_EQ(seen.size(), 2u);
}

TEST(variadic_ops_through_float32) {
  OpSpec spec{.name = "f.total", .shape = "broadcast", .dtype = "promote", .flags = op_half_in_f32};
  spec.params = {{.name = "xs", .kind = ParamKind::value, .variadic = true}};
  const Op& o = register_op(spec);
  add_kernel(lacking(), make_row({"f.total",
                                  {takes(f32, DVT_O_STRIDED | DVT_O_VARIADIC)},
                                  {takes(f32, 0)},
                                  computes([](const Doubles& x) { return double(x.size()); })}));
  const Tensor x = array(lacking(), {3}, {}, f16);
  CHECK_EQ(values(Call(o, {&x, &x, &x}).run()), "3 3 3");
  CHECK_THROWS(Error, "[f.total] more than 8 arrays: expected fewer",
               Call(o, std::vector<const Tensor*>(12, &x)).run());
}

// ---- to_device --------------------------------------------------------------------------------------------------

TEST(from_device_to_device) {
  Device &mapped = lacking(), &also = host(), &far = plugin("far", basic_rows(), {.caps = 0}).device(),
         &farther = plugin("farther", basic_rows(), {.caps = 0}).device();
  for (Device* from : {&mapped, &far, &queue().device})
    for (Device* to : {&mapped, &also, &far, &farther, &queue().device}) {
      const Tensor x = array(*from, {2, 3}), view = slice(x, {0, 1}, {2, 3}, {1, 1}), empty = array(*from, {0, 3});
      for (const Tensor& t : {x, view, empty}) {
        const Tensor moved = to_device(t, *to);
        CHECK(moved.device == to && moved.storage->device == to);
        CHECK_EQ(to_string(moved.shape()), to_string(t.shape()));
        CHECK_EQ(values(moved), values(t));
      }
      CHECK_EQ(to_device(x, *to).storage == x.storage, from == to);
    }
  const Tensor seven = to_device(number(7, f64), far);
  CHECK(seven.device == &far && seven.storage && seven.dtype == f64);
  CHECK_EQ(values(seven), "7");
}

namespace {
// The queue plugin under another name, with memory that the host can read.
Device& mapped_queue() {
  static dvt_backend table = *queue().device.backend->table;
  table.name = "mapped_queue";
  table.device_props = [](dvt_device* d, dvt_props* p) {
    const dvt_status status = queue().device.backend->table->device_props(d, p);
    p->caps = DVT_CAP_HOST_MAPPED;
    return status;
  };
  static Device& d = *attach_backend("mapped_queue", &table).devices.at(0);
  return d;
}
}  // namespace

TEST(the_host_waits_for_queues) {
  Device &device = mapped_queue(), &far = plugin("far2", basic_rows(), {.caps = 0}).device();
  Stream& stream = *device.default_stream;
  Tensor x = array(device, {1000}), one = to_device(number(1), device), y = array(far, {1000});
  plugins::stall(stream, 50);
  for (int i = 0; i < 3; ++i) x = run("add", {&x, &one});
  CHECK_EQ(get(f32, address(to_device(x, far).view, 10)), 13.);  // written before it is read

  // Memory that is freed while a queue still writes to it.
  plugins::stall(stream, 50);
  {
    const Tensor old = run("add", {&x, &one});
  }
  const Tensor moved = to_device(y, device);
  device.synchronize();
  CHECK_EQ(values(moved), values(y));
}

TEST(a_fallback_waits_for_the_queue) {
  host();
  set_fallback(Fallback::allow);
  Device& device = queue().device;
  const Tensor x = array(device, {8}), one = to_device(number(1), device);
  plugins::stall(*device.default_stream, 30);
  const Tensor y = run("add", {&x, &one});
  fallback_report(true);
  const Tensor root = run("sqrt", {&y});
  CHECK(root.device == &device);
  CHECK_EQ(values(root), "0.5 1 1.5 2 2.5 3 3.5 4");
  CHECK_EQ(report(), "sqrt on queue:0 1; ");
  CHECK_EQ(queue().overlaps(), 0u);
}

CHECK_MAIN
