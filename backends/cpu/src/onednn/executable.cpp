#include "onednn/executable.hpp"

#include <string_view>

#include "scratch.hpp"

namespace dovetail::cpu::onednn {
namespace {
// "": none.
std::string_view name_of_code(const PrimitiveDesc& desc) {
  const char* name = "";
  if (!desc || dnnl()->primitive_desc_query(desc.get(), dnnl_query_impl_info_str, 0, &name)) return "";
  return name;
}
bool has(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }
}  // namespace

bool is_gemm(const PrimitiveDesc& desc) { return has(name_of_code(desc), "gemm:"); }

bool is_generated(const PrimitiveDesc& desc) {
#if !defined(__x86_64__)
  if (is_gemm(desc)) return false;  // also with a "jit" suffix: only x86 has such code
#endif
  const std::string_view name = name_of_code(desc);
  return !name.empty() && !has(name, "ref") && !has(name, "simple");
}

Executable::Executable(const PrimitiveDesc& desc, std::initializer_list<int> kinds, Code code) {
  if (!desc || (code == Code::generated && !is_generated(desc))) return;
  const Dnnl& d = *dnnl();
  for (int kind : kinds)
    if (!add(kind, d.primitive_desc_query_md(desc.get(), dnnl_query_exec_arg_md, kind))) return;
  const_dnnl_memory_desc_t scratch_desc = d.primitive_desc_query_md(desc.get(), dnnl_query_scratchpad_md, 0);
  scratch_size_ = d.memory_desc_get_size(scratch_desc);
  if (scratch_size_ && !add(DNNL_ARG_SCRATCHPAD, scratch_desc)) return;
  primitive_ = make<Primitive>(d.primitive_create, const_dnnl_primitive_desc_t(desc.get()));
}

bool Executable::add(int kind, const_dnnl_memory_desc_t desc) {
  memories_.push_back(
      make<Memory>(dnnl()->memory_create, desc, dnnl()->engine, static_cast<void*>(DNNL_MEMORY_NONE)));
  arguments_.push_back({kind, memories_.back().get()});
  return bool(memories_.back());
}

bool Executable::run(std::initializer_list<const void*> data) const {
  if (!primitive_) return false;
  size_t i = 0;
  const auto set = [&](const void* p) {
    dnnl()->memory_set_data_handle(memories_[i++].get(), const_cast<void*>(p));
  };
  for (const void* p : data) set(p);
  if (scratch_size_) {
    void* const buffer = scratch(Scratch::onednn, scratch_size_);
    if (!buffer) return false;
    set(buffer);
  }
  return dnnl()->primitive_execute(primitive_.get(), dnnl()->stream, int(arguments_.size()), arguments_.data()) ==
         dnnl_success;
}

Executable reorder(const Desc& from, const Desc& to) {
  const Dnnl& d = *dnnl();
  const auto desc =
      make<PrimitiveDesc>(d.reorder_primitive_desc_create, const_dnnl_memory_desc_t(from.get()), d.engine,
                          const_dnnl_memory_desc_t(to.get()), d.engine, const_dnnl_primitive_attr_t(d.attributes));
  return {desc, {DNNL_ARG_FROM, DNNL_ARG_TO}, Executable::Code::any};
}

// oneDNN before 3.3 cannot return a description as bytes.
Layout::Layout(const PrimitiveDesc& of, dnnl_query_t what) {
  if (!is_generated(of)) return;
  const Dnnl& d = *dnnl();
  const_dnnl_memory_desc_t wanted = d.primitive_desc_query_md(of.get(), what, 0);
  size = d.memory_desc_get_size(wanted);
  number = size;
  const auto add = [&](uint64_t word) { number = (number ^ word) * 0x9E3779B97F4A7C15u, number ^= number >> 29; };
  const auto ask = [&](dnnl_query_t query, auto value) {
    return d.memory_desc_query(wanted, query, &value) == dnnl_success ? value : decltype(value){};
  };
  const auto add_all = [&](int n, dnnl_query_t query) {
    const auto values = ask(query, static_cast<const dnnl_dim_t*>(nullptr));
    for (int i = 0; values && i < n; ++i) add(uint64_t(values[i]));
  };
  add(uint64_t(ask(dnnl_query_data_type, dnnl_data_type_undef)));
  for (const dnnl_query_t query : {dnnl_query_dims, dnnl_query_padded_dims, dnnl_query_strides})
    add_all(ask(dnnl_query_ndims_s32, 0), query);
  for (const dnnl_query_t query : {dnnl_query_inner_blks, dnnl_query_inner_idxs})
    add_all(ask(dnnl_query_inner_nblks_s32, 0), query);
  desc = make<Desc>(d.memory_desc_clone, wanted);
}
}  // namespace dovetail::cpu::onednn
