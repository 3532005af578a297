// The C++ helpers for authors of backends: dovetail/backend.hpp.
#include "check.hpp"

#include <functional>
#include <queue>
#include <string>

#include "dovetail/backend.hpp"

struct dvt_device {};
struct dvt_stream {
  std::queue<std::function<dvt_status()>> jobs;
};

namespace {
struct Failure {
  dvt_status code = DVT_OK;
  uint64_t id = 0;
  std::string message;
} failure;
std::vector<uint64_t> chunks;

dvt_host make_host() {
  dvt_host h{};
  h.struct_size = sizeof h, h.abi_major = DVT_ABI_MAJOR, h.abi_draft = DVT_ABI_DRAFT;
  h.fail = [](const dvt_host*, dvt_status code, uint64_t id, const char*, int, const char* message) {
    failure = {code, id, message};
    return code;
  };
  h.parallel_for = [](const dvt_host*, uint64_t n, uint64_t grain, auto fn, void* ctx) {
    for (uint64_t i = 0; i < n; i += grain) chunks.push_back(i), fn(ctx, i, i + grain < n ? i + grain : n, 0);
  };
  return h;
}
dvt_host the_host = make_host();

// A complete call; its parts can be overwritten to show that a copy does not need them.
struct Example {
  int64_t shape[2] = {2, 3}, strides[2] = {3, 1}, axes[2] = {0, 1};
  double complex[2] = {1.5, -2};
  float elements[6] = {1, 2, 3, 4, 5, 6}, scalar = 7;
  char text[5] = "tanh";
  DLTensor x{elements, {12, 0}, 2, dvt::f32, shape, strides, 0};
  DLTensor s{&scalar, {1, 0}, 0, dvt::f32, shape, strides, 0};
  DLTensor out{elements, {12, 0}, 2, dvt::f32, shape, strides, 8};
  const DLTensor* in[3] = {&x, nullptr, &s};
  const DLTensor* outs[1] = {&out};
  dvt_attr attr[7]{};
  dvt_packed packed[3]{};
  dvt_call call{};

  Example() {
    attr[0].kind = DVT_A_I64, attr[0].v.i = -5;
    attr[1].kind = DVT_A_STR, attr[1].count = 4, attr[1].v.s = text;
    attr[2].kind = DVT_A_I64S, attr[2].count = 2, attr[2].v.is = axes;
    attr[3].kind = DVT_A_F64S, attr[3].count = 2, attr[3].v.fs = complex;
    attr[4].kind = DVT_A_DTYPE, attr[4].v.dt = dvt::bf16;
    attr[5].kind = DVT_A_PROGRAM;
    attr[6].kind = DVT_A_BOOL, attr[6].v.i = 1;
    packed[2].size = 99;
    call.struct_size = sizeof call, call.n_in = 3, call.n_out = 1, call.n_attr = 7;
    call.in = in, call.out = outs, call.attr = attr, call.packed = packed, call.correlation_id = 42;
  }
  void spoil() {
    shape[0] = strides[0] = axes[0] = -1, complex[0] = -1, scalar = -1, text[0] = '?';
    attr[0].v.i = 0, packed[2].size = 0, in[0] = nullptr;
  }
};

dvt_status check_example(const dvt_call* c) {
  const dvt::Attrs a(c);
  CHECK(a.i64(0) == -5 && a.i64(9, 3) == 3);
  CHECK(a.is(1, "tanh") && !a.is(1, "tan") && !a.is(0, "tanh"));
  CHECK(a.i64s(2).count == 2 && a.i64s(2)[0] == 0 && a.i64s(2)[1] == 1);
  CHECK(a.scalar<double>(3) == 1.5 && a.imag(3) == -2);
  CHECK(dvt::same(a.dtype(4, dvt::f32), dvt::bf16) && dvt::same(a.dtype(8, dvt::f32), dvt::f32));
  CHECK(a.boolean(6) && a.boolean(7, true) && !a.given(7));
  CHECK(dvt::has_in(c, 0) && !dvt::has_in(c, 1) && dvt::has_in(c, 2) && !dvt::has_in(c, 3));
  CHECK_EQ(dvt::size(c->in[0]), 6);
  CHECK_EQ(c->in[0]->strides[0], 3);
  CHECK_EQ(*dvt::data<float>(c->in[2]), 7);
  CHECK_EQ(c->packed[2].size, uint64_t{99});
  CHECK_EQ(c->correlation_id, uint64_t{42});
  return DVT_OK;
}
}  // namespace

TEST(handshake_refuses_another_draft) {
  dvt_host other = the_host;
  other.abi_draft = 77;
  CHECK_EQ(dvt::accept(&other), DVT_INVALID);
  CHECK(failure.message.find("draft 77: rebuild the plugin") != std::string::npos);
  CHECK_EQ(dvt::accept(&the_host), DVT_OK);
}

TEST(failures_carry_their_text_and_call) {
  dvt::accept(&the_host);
  CHECK_EQ(DVT_FAIL(DVT_INDEX, "[take] index %d", 9), DVT_INDEX);
  CHECK_EQ(failure.message, "[take] index 9");
  CHECK_EQ(DVT_FAIL_LATE(DVT_OOM, 5, "%s", "late"), DVT_OOM);
  CHECK_EQ(failure.id, uint64_t{5});
}

TEST(rows_outlive_the_table_s_growth) {
  dvt::KernelTable table;
  const auto run = [](dvt_device*, const dvt_call*) -> dvt_status { return DVT_OK; };
  for (int i = 0; i < 100; ++i)
    table.add(
        dvt::Row("dvt.add", run).in(dvt::f32, DVT_O_ALIAS).in(dvt::any(32)).out(dvt::f16).ulp(2).deterministic());
  CHECK_EQ(table.size(), uint64_t{100});
  for (uint64_t i = 0; i < table.size(); ++i) {
    const dvt_kernel& k = *table.data()[i];
    CHECK(k.struct_size == sizeof k && k.op_version == 1 && !std::strcmp(k.op, "dvt.add"));
    CHECK(k.n_in == 2 && k.n_out == 1 && k.run && !k.query && k.max_ulp == 2);
    CHECK(k.flags == DVT_K_BITWISE_DETERMINISTIC && k.operands[0].flags == DVT_O_ALIAS);
    CHECK(k.operands[1].dtype.code == DVT_ANY && dvt::same(k.operands[2].dtype, dvt::f16));
  }
}

TEST(types_follow_cpp) {
  CHECK(dvt::same(dvt::dtype_of<bool>(), dvt::boolean) && dvt::same(dvt::dtype_of<const int8_t>(), dvt::i8));
  CHECK(dvt::same(dvt::dtype_of<uint64_t>(), dvt::u64) && dvt::same(dvt::dtype_of<double>(), dvt::f64));
}

TEST(operands_are_seen_by_their_strides) {
  Example e;
  const dvt::View<float> x(&e.x), out(&e.out);
  CHECK_EQ(x(1, 2), 6);
  CHECK_EQ(out(0, 0), 3);  // the byte offset is included
  CHECK(dvt::is_dense(&e.x) && dvt::is_dense(&e.s));
  CHECK_EQ(dvt::bytes(&e.x), uint64_t{24});
  e.strides[0] = 1, e.strides[1] = 2;
  CHECK(!dvt::is_dense(&e.x));
  CHECK_EQ(x(1, 2), 6);
  e.shape[0] = 0;
  CHECK(dvt::is_dense(&e.x));
}

TEST(parallel_loops_cover_everything_once) {
  dvt::accept(&the_host);
  std::vector<int> hits(1000);
  chunks.clear();
  dvt::parallel_for(hits.size(), 300, [&](uint64_t begin, uint64_t end, uint32_t) {
    for (uint64_t i = begin; i < end; ++i) ++hits[i];
  });
  CHECK_EQ(chunks.size(), size_t{4});
  for (int h : hits) CHECK_EQ(h, 1);
  chunks.clear();
  int calls = 0;
  dvt::parallel_for(300, 300, [&](uint64_t, uint64_t, uint32_t) { ++calls; });
  dvt::parallel_for(0, 300, [&](uint64_t, uint64_t, uint32_t) { ++calls; });
  CHECK(chunks.empty() && calls == 1);
}

TEST(a_copied_call_needs_nothing_of_the_original) {
  Example e;
  check_example(&e.call);
  dvt::CallCopy copy(&e.call);
  const dvt::CallCopy own_scalar(&e.call, 0);  // input 2 is the device's, not the host's
  e.spoil();
  check_example(copy.get());
  CHECK_EQ(dvt::Attrs(copy.get()).given(5), false);  // a program is not copied
  CHECK_EQ(own_scalar->in[2]->data, static_cast<void*>(&e.scalar));
  const dvt::CallCopy moved = std::move(copy);
  check_example(moved.get());
}

TEST(enqueue_runs_later_or_at_once) {
  Example e;
  dvt_stream stream;
  const auto submit = [&](auto job) { stream.jobs.push(std::move(job)); };
  int runs = 0;
  const auto body = [&](const dvt_call* c) { return ++runs, check_example(c); };
  CHECK_EQ(dvt::enqueue(&e.call, submit, body), DVT_OK);
  CHECK(runs == 1 && stream.jobs.empty());  // no stream: done on return
  e.call.stream = &stream;
  CHECK_EQ(dvt::enqueue(&e.call, submit, body), DVT_OK);
  e.spoil();
  CHECK_EQ(runs, 1);
  CHECK_EQ(stream.jobs.front()(), DVT_OK);
  CHECK_EQ(runs, 2);
}

CHECK_MAIN
