#include "onednn/primitive.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "device/errors.hpp"
#include "launch.hpp"

namespace gpu::onednn {
namespace {
constexpr size_t cache_line = 64;

// ---- building ----------------------------------------------------------------------

dnnl_data_type_t data_type(DLDataType t) {
  if (t.code == DVT_BFLOAT) return dnnl_bf16;
  return t.bits == 16 ? dnnl_f16 : dnnl_f32;
}
MemoryDesc describe(const Operand& o) {
  if (!o.axes) return nullptr;
  return make<MemoryDesc>(dnnl()->memory_desc_create_with_strides, int(o.axes), o.size, data_type(o.type),
                          o.stride);
}
MemoryDesc describe_any(const Operand& o) {
  return make<MemoryDesc>(dnnl()->memory_desc_create_with_tag, int(o.axes), o.size, data_type(o.type),
                          dnnl_format_tag_any);
}
// With gaps between images oneDNN 3.13 reads the wrong elements (x64:gemm:jit in bfloat16).
MemoryDesc describe_images(Operand o, bool any) {
  if (any) return describe_any(o);
  int64_t step = 1;
  for (int i = o.axes; i-- > 0; step *= o.size[i]) o.stride[i] = step;
  return describe(o);
}

Attributes attributes() {
  auto made = make<Attributes>(dnnl()->primitive_attr_create);
  // Scratch memory comes with each call: a primitive's own would be shared by the streams that run it.
  if (made && dnnl()->primitive_attr_set_scratchpad_mode(made.get(), dnnl_scratchpad_mode_user)) return nullptr;
  return made;
}

PrimitiveDesc choose_matmul(dnnl_engine_t engine, const Description& d, const Primitive& p,
                            const Attributes& with) {
  const MemoryDesc any = d.any_weights ? describe_any(d.weights) : nullptr;
  if (d.any_weights && !any) return nullptr;
  return make<PrimitiveDesc>(dnnl()->matmul_primitive_desc_create, engine, p.in.given.get(),
                             any ? any.get() : p.weights.given.get(), p.bias.given.get(), p.out.given.get(),
                             with.get());
}

PrimitiveDesc choose_convolution(dnnl_engine_t engine, const Description& d, const Primitive&,
                                 const Attributes& with) {
  const auto typed = [&](Operand o) {
    if (d.in_float32) o.type = dvt::f32;
    return o;
  };
  const MemoryDesc in = describe_images(typed(d.in), d.any_images), weights = describe_any(typed(d.weights)),
                   bias = describe(typed(d.bias)), out = describe_images(typed(d.out), d.any_images);
  if (!in || !weights || (d.bias.axes && !bias) || !out) return nullptr;
  const int64_t between[] = {d.dilation[0] - 1, d.dilation[1] - 1};  // oneDNN counts what is left out
  return make<PrimitiveDesc>(dnnl()->convolution_forward_primitive_desc_create, engine, dnnl_forward_inference,
                             dnnl_convolution_direct, in.get(), weights.get(), bias.get(), out.get(), d.step,
                             between, d.padding, d.padding, with.get());
}

// Empty where it is plain loops.
Step make_step(const PrimitiveDesc& desc) {
  const char* name = "";
  Step made;
  if (!desc || dnnl()->primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, &name)) return made;
  if (std::strstr(name, "ref")) return made;
  const_dnnl_memory_desc_t scratch = dnnl()->primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  made.scratch = make<MemoryDesc>(dnnl()->memory_desc_clone, scratch);
  made.scratch_bytes = dnnl()->memory_desc_get_size(scratch);
  if (made.scratch)
    made.primitive = make<PrimitiveHandle>(dnnl()->primitive_create, const_dnnl_primitive_desc_t(desc.get()));
  return made;
}

enum class Way { in, out };
// Decides the layout in which the primitive uses an operand, and the reorder to or from it. Returns false if oneDNN
// has no such reorder.
bool settle(Side& side, Way way, dnnl_engine_t engine, const_dnnl_memory_desc_t used, const Attributes& with) {
  side.used = make<MemoryDesc>(dnnl()->memory_desc_clone, used);
  if (!side.used) return false;
  if (dnnl()->memory_desc_equal(side.given.get(), side.used.get())) return true;
  const dnnl_memory_desc *from = side.given.get(), *to = side.used.get();
  if (way == Way::out) std::swap(from, to);
  side.reorder = make_step(make<PrimitiveDesc>(dnnl()->reorder_primitive_desc_create, from, engine, to, engine,
                                               const_dnnl_primitive_attr_t(with.get())));
  return bool(side.reorder);
}
bool settle(Primitive& p, dnnl_engine_t engine, const PrimitiveDesc& desc, const Attributes& with) {
  const auto used = [&](dnnl_query_t what, int i) { return dnnl()->primitive_desc_query_md(desc.get(), what, i); };
  return settle(p.in, Way::in, engine, used(dnnl_query_src_md, 0), with) &&
         settle(p.weights, Way::in, engine, used(dnnl_query_weights_md, 0), with) &&
         (!p.bias.given || settle(p.bias, Way::in, engine, used(dnnl_query_weights_md, 1), with)) &&
         settle(p.out, Way::out, engine, used(dnnl_query_dst_md, 0), with);
}

size_t used_bytes(const Side& side) {
  return (dnnl()->memory_desc_get_size(side.used.get()) + cache_line - 1) / cache_line * cache_line;
}
void lay_out_workspace(Primitive& p) {
  size_t end = 0, scratch = p.step.scratch_bytes;
  for (Side* side : {&p.in, &p.bias, &p.out})
    if (side->reorder) side->place = end, end += used_bytes(*side);
  for (const Side* side : {&p.in, &p.weights, &p.bias, &p.out})
    scratch = std::max(scratch, side->reorder.scratch_bytes);
  p.scratch_place = end;  // one after the other they use it
  p.weights.place = end + (scratch + cache_line - 1) / cache_line * cache_line;
  p.workspace = p.weights.place + (p.weights.reorder ? used_bytes(p.weights) : 0);
}

std::optional<Packing> plan_packing(const Side& weights) {
  if (!weights.reorder) return std::nullopt;
  size_t bytes = 0;
  if (dnnl()->memory_desc_get_blob(nullptr, &bytes, weights.used.get())) return std::nullopt;
  std::vector<uint8_t> blob(bytes);
  if (dnnl()->memory_desc_get_blob(blob.data(), &bytes, weights.used.get())) return std::nullopt;
  uint64_t layout = 0xCBF29CE484222325u;  // FNV-1a
  for (const uint8_t byte : blob) layout = (layout ^ byte) * 0x100000001B3u;
  return Packing{dnnl()->memory_desc_get_size(weights.used.get()), layout};
}

// ---- running ----------------------------------------------------------------------

// A call's way to oneDNN.
class Run {
 public:
  struct Argument {
    int kind;
    const MemoryDesc& desc;
    const void* data;
  };

  Run(dvt_device* d, const dvt_call* c) : engine_(static_cast<dnnl_engine_t>(d->onednn.handle())) {
    dvt_stream& stream = stream_of(d, c->stream);
    stream_ = static_cast<dnnl_stream_t>(stream.onednn->get(d->onednn, &stream.queue));
  }

  dvt_status operator()(const Step& step, void* scratch, std::initializer_list<Argument> arguments) const {
    if (!stream_) return DVT_OOM;
    constexpr int most = 5;
    Memory memories[most];
    dnnl_exec_arg_t list[most];
    int n = 0;
    const auto add = [&](const Argument& a) {
      if (!a.desc) return true;
      memories[n] = make<Memory>(dnnl()->sycl_interop_memory_create, const_dnnl_memory_desc_t(a.desc.get()),
                                 engine_, dnnl_sycl_interop_usm, const_cast<void*>(a.data));
      list[n] = {a.kind, memories[n].get()};
      return bool(memories[n++]);
    };
    for (const Argument& a : arguments)
      if (!add(a)) return DVT_OOM;
    if (!add({DNNL_ARG_SCRATCHPAD, step.scratch, scratch})) return DVT_OOM;
    // It keeps the primitive and the memories until it is done with them.
    const dnnl_status_t s =
        dnnl()->sycl_interop_primitive_execute(step.primitive.get(), stream_, n, list, nullptr, nullptr);
    if (s == dnnl_success) return DVT_OK;
    return DVT_FAIL(s == dnnl_out_of_memory ? DVT_OOM : DVT_INTERNAL, "oneDNN: status %d", int(s));
  }
  dvt_status reorder(const Step& step, void* scratch, const MemoryDesc& from, const void* data,
                     const MemoryDesc& to, void* result) const {
    return (*this)(step, scratch, {{DNNL_ARG_FROM, from, data}, {DNNL_ARG_TO, to, result}});
  }

 private:
  dnnl_engine_t engine_;
  dnnl_stream_t stream_;
};
}  // namespace

PrimitiveRef build(dnnl_engine_t engine, const Description& d) {
  auto p = std::make_shared<Primitive>();
  p->in.given = describe(d.in), p->weights.given = describe(d.weights), p->out.given = describe(d.out);
  p->bias.given = describe(d.bias);
  const Attributes with = attributes();
  if (!p->in.given || !p->weights.given || !p->out.given || (d.bias.axes && !p->bias.given) || !with)
    return nullptr;
  const auto choose = d.kind == Kind::matmul ? choose_matmul : choose_convolution;
  const PrimitiveDesc desc = choose(engine, d, *p, with);
  p->step = make_step(desc);
  if (!p->step || !settle(*p, engine, desc, with)) return nullptr;
  lay_out_workspace(*p);
  p->packing = plan_packing(p->weights);
  return p;
}

Arguments arguments(const dvt_call* c) {
  const auto in = [&](uint32_t i) { return dvt::has_in(c, i) ? dvt::data<const void>(c->in[i]) : nullptr; };
  return {in(0), in(1), in(2), dvt::data<void>(c->out[0]), c->packed ? c->packed[1].data : nullptr};
}

bool takes(dvt_device* d, const dvt_call* c, const Arguments& a) {
  const uintptr_t all =
      uintptr_t(a.in) | uintptr_t(a.packed ? a.packed : a.weights) | uintptr_t(a.bias) | uintptr_t(a.out);
  return all % cache_line == 0 && !is_captured(d, c);
}

uint64_t workspace(const Primitive& p, bool packed) { return packed ? p.weights.place : p.workspace; }

dvt_status execute(dvt_device* d, const dvt_call* c, const Primitive& p, const Arguments& a) {
  return guarded(d, [&]() -> dvt_status {
    if (const uint64_t least = workspace(p, a.packed); c->workspace_size < least)
      return DVT_FAIL(DVT_INTERNAL, "oneDNN: a workspace of %llu bytes: expected %llu",
                      (unsigned long long)c->workspace_size, (unsigned long long)least);
    const Run run(d, c);
    const auto memory = static_cast<std::byte*>(c->workspace);
    void* const scratch = memory + p.scratch_place;
    const void *in = a.in, *weights = a.packed ? a.packed : a.weights, *bias = a.bias;
    void* out = a.out;
    const auto bring = [&](const Side& side, const void*& data) {
      if (!side.reorder) return DVT_OK;
      const void* const from = std::exchange(data, memory + side.place);
      return run.reorder(side.reorder, scratch, side.given, from, side.used, memory + side.place);
    };
    if (dvt_status s = bring(p.in, in)) return s;
    if (dvt_status s = a.packed ? DVT_OK : bring(p.weights, weights)) return s;
    if (dvt_status s = bring(p.bias, bias)) return s;
    if (p.out.reorder) out = memory + p.out.place;
    if (dvt_status s = run(p.step, scratch,
                           {{DNNL_ARG_SRC, p.in.used, in},
                            {DNNL_ARG_WEIGHTS, p.weights.used, weights},
                            {DNNL_ARG_BIAS, p.bias.used, bias},
                            {DNNL_ARG_DST, p.out.used, out}}))
      return s;
    if (p.out.reorder)
      if (dvt_status s = run.reorder(p.out.reorder, scratch, p.out.used, out, p.out.given, a.out)) return s;
    return finish(d, c);
  });
}

dvt_status pack_size(const dvt_call* c, const PrimitiveRef& p, uint64_t* size, uint64_t* layout) {
  if (!p || !p->packing || reinterpret_cast<uintptr_t>(c->in[1]->data) % cache_line) return DVT_UNSUPPORTED;
  *size = p->packing->size, *layout = p->packing->layout;
  return DVT_OK;
}

dvt_status pack(dvt_device* d, const dvt_call* c, const PrimitiveRef& p, const dvt_packed* to) {
  return guarded(d, [&]() -> dvt_status {
    if (!p) return DVT_OOM;  // it was there for pack_size
    void* const scratch = static_cast<std::byte*>(c->workspace) + p->scratch_place;
    const void* const weights = dvt::data<const void>(c->in[1]);
    if (dvt_status s =
            Run(d, c).reorder(p->weights.reorder, scratch, p->weights.given, weights, p->weights.used, to->data))
      return s;
    return finish(d, c);
  });
}
}  // namespace gpu::onednn
