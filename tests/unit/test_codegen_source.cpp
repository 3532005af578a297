// The texts of kernels, as their authors read them: dovetail/codegen_source.hpp. test_codegen_source.py compiles
// and runs such texts.
#include "dovetail/codegen_source.hpp"

#include "check.hpp"
#include "program_builder.hpp"

namespace {
using dvt::f16;
using dvt::f32;
using dvt::codegen::Dialect;
using dvt::codegen::Form;
using dvt::codegen::Launch;
using dvt::codegen::Source;
constexpr int64_t rows = -1, columns = -2;  // symbols

Dialect opencl() {
  Dialect d;
  d.head = "#pragma OPENCL FP_CONTRACT OFF\n";
  d.kernel = "__kernel void", d.global = "__global", d.shared = "__local";
  d.thread = "get_local_id(0)", d.block = "get_group_id(0)", d.blocks = "get_num_groups(0)";
  d.barrier = "barrier(CLK_LOCAL_MEM_FENCE);";
  d.threads = 256;
  return d;
}

struct Space : ProgramBuilder {
  Space() { symbol(64), symbol(1024); }
  uint32_t map(const char* op, std::initializer_list<uint32_t> in, DLDataType type = f32) {
    return node(op, in, type, {rows, columns});
  }
};

// A call of a program with sizes for its symbols: row-major operands, except where strides are given.
class Call {
 public:
  Call(const dvt_program& p, std::vector<int64_t> symbols, std::map<uint32_t, std::vector<int64_t>> strides = {})
      : symbols_(std::move(symbols)) {
    const auto add = [&](uint32_t v, std::vector<const DLTensor*>& to) {
      DLTensor& t = tensors_.emplace_back(p.values[v]);
      auto& shape = sizes_.emplace_back(t.shape, t.shape + t.ndim);
      for (int64_t& size : shape) size = size < 0 ? symbols_[size_t(-1 - size)] : size;
      auto& stride = sizes_.emplace_back(shape.size(), 1);
      for (size_t i = shape.size(); i-- > 1;) stride[i - 1] = stride[i] * shape[i];
      if (strides.count(v)) stride = strides[v];
      t.shape = shape.data(), t.strides = stride.data();
      to.push_back(&t);
    };
    for (uint32_t i = 0; i < p.n_inputs; ++i) add(p.inputs[i], in_);
    for (uint32_t i = 0; i < p.n_outputs; ++i) add(p.outputs[i], out_);
    call_.n_in = p.n_inputs, call_.n_out = p.n_outputs, call_.in = in_.data(), call_.out = out_.data();
    exe_call_.symbols = symbols_.data(), exe_call_.call = &call_;
  }
  Call(const Call&) = delete;
  const dvt_exe_call& get() const { return exe_call_; }

 private:
  std::vector<int64_t> symbols_;
  std::deque<DLTensor> tensors_;
  std::deque<std::vector<int64_t>> sizes_;
  std::vector<const DLTensor*> in_, out_;
  dvt_call call_{};
  dvt_exe_call exe_call_{};
};
}  // namespace

TEST(elements_have_a_thread_each) {
  Space p;
  const uint32_t x = p.input(f16, {rows, columns}), w = p.input(f16, {columns}), k = p.constant(2.0f);
  p.output(p.map("dvt.astype", {p.map("dvt.maximum", {p.map("dvt.exp", {p.map("dvt.astype", {x})}), k})}, f16));
  p.output(p.map("dvt.add", {x, w}, f16));
  Source source;
  CHECK(!source.lower(p.view()));
  CHECK_EQ(source.text(opencl(), {2, 0, false, true}, "exp_maximum_add"), R"(#pragma OPENCL FP_CONTRACT OFF
float dvt_exp_f32(float);
float dvt_load_f16(unsigned short);
unsigned short dvt_store_f16(float);
typedef struct {
  long count, size[2], stride[4][2];
  float v3[2];
} dvt_arguments;
__kernel void exp_maximum_add(const __global unsigned short* in0, const __global unsigned short* in1, __global unsigned short* out0, __global unsigned short* out1, const dvt_arguments a) {
  const float v3 = a.v3[0];
  for (unsigned int i = get_group_id(0) * 256u + get_local_id(0); i < (unsigned int)a.count; i += get_num_groups(0) * 256u) {
    unsigned int rest = i;
    const unsigned int i1 = rest % (unsigned int)a.size[1];
    rest /= (unsigned int)a.size[1];
    const unsigned int i0 = rest;
    const float v0 = dvt_load_f16(in0[i0 * a.stride[0][0] + i1 * a.stride[0][1]]);
    const float v6 = dvt_load_f16(in1[i0 * a.stride[1][0] + i1 * a.stride[1][1]]);
    const float v1 = v0;
    const float v2 = dvt_exp_f32(v1);
    const float v4 = v2 > v3 || v2 != v2 ? v2 : v3;
    const float v5 = dvt_load_f16(dvt_store_f16(v4));
    const float v7 = v0 + v6;
    out0[i0 * a.stride[2][0] + i1 * a.stride[2][1]] = dvt_store_f16(v5);
    out1[i0 * a.stride[3][0] + i1 * a.stride[3][1]] = dvt_store_f16(v7);
  }
}
)");
}

TEST(elements_of_many_rows_need_no_divisions) {
  Space p;
  const uint32_t x = p.input(f32, {rows, columns}), w = p.input(f32, {columns}), k = p.input(f32, {rows, 1});
  p.output(p.map("dvt.add", {p.map("dvt.multiply", {x, k}), w}));
  Source source;
  CHECK(!source.lower(p.view()));
  CHECK_EQ(source.text(opencl(), {2, 256, false}, "multiply_add"), R"(#pragma OPENCL FP_CONTRACT OFF
typedef struct {
  long count, size[2], stride[4][2];
} dvt_arguments;
__kernel void multiply_add(const __global float* in0, const __global float* in1, const __global float* in2, __global float* out0, const dvt_arguments a) {
  const unsigned int first = get_local_id(0) % 256;
  for (unsigned int base = get_group_id(0) * 1u; base < (unsigned int)a.count; base += get_num_groups(0) * 1u) {
    const int exists = base < (unsigned int)a.count;
    const unsigned int row = exists ? base : (unsigned int)a.count - 1;
    const unsigned int i0 = row;
    const long at0 = i0 * a.stride[0][0];
    const long at1 = i0 * a.stride[1][0];
    const float v1 = in2[at1];
    const long at2 = i0 * a.stride[2][0];
    const long at3 = i0 * a.stride[3][0];
    for (unsigned int lane = first; lane < 256; lane += 256) {
      for (unsigned int j = lane; j < (unsigned int)a.size[1]; j += 256) {
        const float v0 = in0[at0 + j];
        const float v2 = v0 * v1;
        const float v3 = in1[at2 + j];
        const float v4 = v2 + v3;
        if (exists) {
          out0[at3 + j] = v4;
        }
      }
    }
  }
}
)");
}

TEST(rows_are_shared_by_lanes) {
  Space p;
  const uint32_t x = p.input(f32, {rows, columns});
  p.output(p.reduce("dvt.mean", p.map("dvt.multiply", {x, x})));
  Source source;
  CHECK(!source.lower(p.view()));
  CHECK_EQ(source.text(opencl(), {2, 32, false}, "mean_square"), R"(#pragma OPENCL FP_CONTRACT OFF
typedef struct {
  long count, size[2], stride[2][2];
} dvt_arguments;
__kernel void mean_square(const __global float* in0, __global float* out0, const dvt_arguments a) {
  __local float all_sum_v2[256];
  __local float all_lost_v2[256];
  const unsigned int team = get_local_id(0) / 32;
  const unsigned int first = get_local_id(0) % 32;
  for (unsigned int base = get_group_id(0) * 8u; base < (unsigned int)a.count; base += get_num_groups(0) * 8u) {
    const int exists = base + team < (unsigned int)a.count;
    const unsigned int row = exists ? base + team : (unsigned int)a.count - 1;
    const unsigned int i0 = row;
    const long at0 = i0 * a.stride[0][0];
    const long at1 = i0 * a.stride[1][0];
    for (unsigned int lane = first; lane < 32; lane += 32) {
      float sum_v2 = (float)(-0.0f);
      float lost_v2 = 0;
      for (unsigned int j = lane; j < (unsigned int)a.size[1]; j += 32) {
        const float v0 = in0[at0 + j];
        const float v1 = v0 * v0;
        const float x_v2 = (float)(v1);
        {
          const float total = sum_v2 + x_v2, part = total - sum_v2;
          lost_v2 += (sum_v2 - (total - part)) + (x_v2 - part);
          sum_v2 = total;
        }
      }
      all_sum_v2[team * 32 + lane] = sum_v2;
      all_lost_v2[team * 32 + lane] = lost_v2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (unsigned int width = 16; width > 0; width /= 2) {
      for (unsigned int lane = first; lane < width; lane += 32) {
        const float x_v2 = all_sum_v2[team * 32 + lane + width];
        {
          const float total = all_sum_v2[team * 32 + lane] + x_v2, part = total - all_sum_v2[team * 32 + lane];
          all_lost_v2[team * 32 + lane] += (all_sum_v2[team * 32 + lane] - (total - part)) + (x_v2 - part);
          all_sum_v2[team * 32 + lane] = total;
        }
        all_lost_v2[team * 32 + lane] += all_lost_v2[team * 32 + lane + width];
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float total_v2 = all_sum_v2[team * 32 + 0];
    const float rest_v2 = all_lost_v2[team * 32 + 0];
    const float v2 = (float)(((rest_v2 == rest_v2 && rest_v2 != 0 ? total_v2 + rest_v2 : total_v2) + 0) / (float)a.size[1]);
    if (exists && first == 0) {
      out0[at1] = v2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
)");
}

TEST(the_form_follows_sizes_and_strides) {
  Space p;
  const uint32_t x = p.input(f32, {rows, columns}), y = p.input(f32, {rows, columns});
  p.output(p.map("dvt.add", {p.map("dvt.exp", {x}), y}));
  const dvt_program& program = p.view();
  Source source;
  CHECK(!source.lower(program));
  const auto plan = [&](const Call& call) { return source.plan(call.get(), 16, 256); };
  const Launch dense = plan(Call(program, {3, 5}));
  CHECK(dense.form == (Form{1, 0, false}));
  CHECK(dense.arguments == (std::vector<uint64_t>{15, 15, 1, 1, 1}));
  CHECK_EQ(dense.blocks, 1u);
  CHECK_EQ(plan(Call(program, {300, 5})).blocks, 6u);    // one for each 256 elements
  CHECK_EQ(plan(Call(program, {3000, 5})).blocks, 16u);  // of a device that runs so many
  const Launch turned = plan(Call(program, {3, 5}, {{y, {1, 3}}}));
  CHECK(turned.form == (Form{2, 0, false, true}));
  CHECK(turned.arguments == (std::vector<uint64_t>{15, 3, 5, 5, 1, 1, 3, 5, 1}));
  CHECK(plan(Call(program, {1 << 20, 1 << 10})).form == (Form{1, 0, true}));
  const auto turned_form = [&](int64_t m, int64_t n) { return plan(Call(program, {m, n}, {{y, {1, m}}})).form; };
  CHECK(turned_form(16, 8) == (Form{2, 8, false, true}));  // by rows: as many as blocks, and not short
  CHECK(turned_form(15, 8) == (Form{2, 0, false, true}));
  CHECK(turned_form(16, 7) == (Form{2, 0, false, true}));
  CHECK(turned_form(16, 100000) == (Form{2, 256, false, true}));
  CHECK(plan(Call(program, {16, 8}, {{y, {16, 1}}})).form == (Form{2, 8, false}));
  CHECK(plan(Call(program, {1, 8}, {{y, {16, 2}}})).form == (Form{1, 0, false, true}));
  CHECK(plan(Call(program, {1, 1}, {{y, {16, 2}}})).form == (Form{1, 0, false}));  // one element is beside itself

  Space r;
  const uint32_t wide = r.input(f32, {rows, columns}), bias = r.input(f32, {columns}),
                 scale = r.input(f32, {rows, 1});
  r.output(r.map("dvt.add", {r.map("dvt.multiply", {wide, scale}), bias}));
  CHECK(!source.lower(r.view()));
  CHECK(plan(Call(r.view(), {300, 40})).form == (Form{2, 32, false}));  // one scale for a row
  // Where the last axis has one element, another is along rows, and scales are next to each other in it.
  CHECK(plan(Call(r.view(), {300, 1})).form == (Form{1, 0, false, true}));

  Space t;
  const uint32_t full = t.input(f32, {rows, 40, columns}), part = t.input(f32, {rows, 40, 1});
  t.output(t.node("dvt.multiply", {full, part}, f32, {rows, 40, columns}));
  CHECK(!source.lower(t.view()));
  CHECK(plan(Call(t.view(), {16, 9})).form == (Form{2, 8, false}));
  CHECK(plan(Call(t.view(), {16, 1}, {{part, {1, 16, 1}}})).form == (Form{2, 0, false, true}));

  Space q;
  const uint32_t a = q.input(f32, {rows, columns}), e = q.map("dvt.exp", {a});
  q.output(q.map("dvt.divide", {e, q.reduce("dvt.sum", e)}));
  CHECK(!source.lower(q.view()));
  CHECK_EQ(source.n_kept(), 1u);
  const auto lanes = [&](int64_t n) { return plan(Call(q.view(), {4, n})).form.lanes; };
  CHECK_EQ(lanes(32), 8u);
  CHECK_EQ(lanes(33), 32u);
  CHECK_EQ(lanes(513), 256u);
  CHECK_EQ(plan(Call(q.view(), {4, 600})).workspace, 4u * 600 * 8);  // a row of each block
  CHECK_EQ(plan(Call(q.view(), {4, 20})).workspace, 32u * 20 * 8);   // of 32 teams of a block
  CHECK(!plan(Call(q.view(), {64, 100000})).refusal);
  CHECK_EQ(std::string(plan(Call(q.view(), {63, 100000})).refusal), "few rows, and each too long for one block");
}

TEST(refused_with_a_reason) {
  Source source;
  const auto reason = [&](auto make, uint32_t flags = 0) {
    Space p;
    p.flags |= flags;
    p.output(make(p));
    const char* const why = source.lower(p.view());
    return std::string(why ? why : "");
  };
  const auto input = [](Space& p, DLDataType t = f32) { return p.input(t, {rows, columns}); };
  CHECK_EQ(reason([&](Space& p) { return p.map("dvt.sort", {input(p)}); }), "no code for this op");
  CHECK_EQ(reason([&](Space& p) { return p.map("dvt.exp", {input(p, dvt::i32)}, dvt::i32); }),
           "no code for these dtypes");
  CHECK_EQ(reason([&](Space& p) { return p.map("dvt.less", {input(p), input(p, dvt::i32)}, dvt::boolean); }),
           "no code for these dtypes");
  const auto sum = [&](Space& p) { return p.reduce("dvt.sum", p.map("dvt.exp", {input(p)})); };
  CHECK_EQ(reason(sum), "");
  CHECK_EQ(reason(sum, DVT_P_ROUND_EACH), "a sum in another order than the kernel's has other bits");
  CHECK_EQ(reason([&](Space& p) {
             uint32_t x = input(p), y = x;
             for (int i = 0; i < 17; ++i) y = p.map("dvt.subtract", {y, p.reduce("dvt.mean", x)});
             return y;
           }),
           "more reductions than a block has memory for");
}
CHECK_MAIN
