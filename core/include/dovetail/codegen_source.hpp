// dovetail/codegen_source.hpp - a group as the source text of a kernel, in C or a language that has C in it, as
// OpenCL C has, for devices whose compiler takes text. C++17, header-only, like codegen.hpp and like it no part of
// the protocol.
//
//   dvt::codegen::Source source;                                   // once per group
//   if (const char* reason = source.lower(*program)) ...           // no text for it
//   const dvt::codegen::Launch launch = source.plan(call, blocks, threads);  // for a call: which text, its
//   arguments const std::string text = source.text(dialect, launch.form, "kernel");
//
// Decided here, for every device alike: how threads share rows, the order of sums, what is an argument. A text
// depends on the group's ops and types, and on the call only by its Form, so few texts serve all calls: sizes,
// strides, numbers and constants are arguments.
//
// A group without reductions has a thread per element, or goes by rows, which saves the divisions by which a thread
// finds its element, where there are many. One with reductions always goes by rows. Those have Form::lanes lanes;
// lane l takes the elements l, l + lanes, ..., and a tree joins the lanes. A thread does the work of one lane, or
// of several where a block has fewer threads than lanes: the order, and so the bits, depend on the row's size
// alone.
//
// The kernel's parameters: a pointer per input of the program that is no scalar, in order; one per output; one to
// the workspace, if Source::n_kept() is not 0; and the struct whose bytes are Launch::arguments.
#ifndef DOVETAIL_CODEGEN_SOURCE_HPP
#define DOVETAIL_CODEGEN_SOURCE_HPP

#include "dovetail/codegen_writer.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
namespace codegen {
// What a launch takes beside its text.
struct Launch {
  Form form;
  uint32_t blocks = 1;
  uint64_t workspace = 0;  // bytes
  uint64_t in_place = 0;   // of dvt_answer
  std::vector<void*> pointers;
  std::vector<uint64_t> arguments;  // the bytes of the struct
  const char* refusal = nullptr;    // why node by node is better for these sizes
};

// How many lanes share a row of so many elements: each does up to four, and long rows have a block's worth.
inline uint32_t lanes_for(int64_t columns) { return columns <= 32 ? 8 : columns <= 512 ? 32 : 256; }

// An element as a register has it, in the first bytes of an argument.
template <class From>
uint64_t argument_of(DLDataType t, From x) {
  uint64_t bits = 0;
  const auto put = [&](auto rounded) {
    const Compute<decltype(rounded)> value(rounded);
    std::memcpy(&bits, &value, sizeof value);
  };
#define DVT_ARGUMENT(name, T) \
  if (!std::strcmp(types::type_name(t), #name)) put(convert<T>(x));
  DVT_ALL(DVT_ARGUMENT)
  DVT_FLOATS8(DVT_ARGUMENT)
#undef DVT_ARGUMENT
  return bits;
}
inline uint64_t argument_of_element(const DLTensor& t) {
  uint64_t bits = 0;
#define DVT_ARGUMENT(name, T) \
  if (!std::strcmp(types::type_name(t.dtype), #name)) bits = argument_of(t.dtype, *data<const T>(&t));
  DVT_ALL(DVT_ARGUMENT)
  DVT_FLOATS8(DVT_ARGUMENT)
#undef DVT_ARGUMENT
  return bits;
}

// One group. Refers to its program, which lives as long.
class Source {
 public:
  // NULL; or why there is no text for the program. `recompute` as of codegen::lower.
  const char* lower(const dvt_program& p, uint32_t recompute = 1) {
    *this = {};
    program_ = &p;
    reads_.resize(p.n_inputs, false);
    for (uint32_t n = 0; n < p.n_nodes; ++n)
      if (const char* reason = unknown(p, *p.nodes[n])) return reason;
    if (const char* reason = codegen::lower(p, loops_, recompute)) return reason;
    for (uint32_t v = 0; v < loops_.values.size(); ++v)
      if (const char* reason = add_value(v)) return reason;
    for (uint32_t i = 0; i < loops_.outputs.size(); ++i) {
      if (loops_.values[loops_.outputs[i]].source != Value::step) return "a result that no node makes";
      accesses_.push_back({loops_.outputs[i], i, true});
    }
    in_place_ = in_place(p, loops_);
    uint32_t bytes = 0;
    for (const Step& s : loops_.steps)
      if (s.leading) return "a reduction along other axes than the last one";
      else if (s.reduces)
        bytes += 2 * std::max<uint32_t>(loops_.values[s.result].dtype.bits / 8, 4), reduces_ = true;
    return bytes * 256 > most_shared ? "more reductions than a block has memory for" : nullptr;
  }

  std::string text(const Dialect& dialect, const Form& form, const std::string& name) const {
    return Writer(*program_, loops_, accesses_, scalars_, dialect, form).run(name);
  }

  // For sizes and strides of a call. `blocks`: how many the device has work for at a time, of `threads` each.
  Launch plan(const dvt_exe_call& c, uint32_t blocks, uint32_t threads) const {
    Launch out;
    Space space = space_of(c);
    const bool has_rows = space.size.back() > 1;
    space.merge(space.axes() - reduces_);
    if (space.axes() == 0) space.add(1);
    int64_t count = 1;
    for (size_t axis = 0; axis + 1 < space.axes(); ++axis) count *= space.size[axis];
    const bool by_rows = reduces_ || (has_rows && count >= blocks && space.size.back() >= short_row);
    const int64_t columns = by_rows ? space.size.back() : 1;
    if (!by_rows) count *= space.size.back();
    if (reduces_ && columns > long_row && count < few_rows)
      out.refusal = "few rows, and each too long for one block";
    if (!by_rows && count == 0) out.refusal = "no elements, beside which results of rows may have some";
    out.form.axes = uint32_t(space.axes());
    out.form.lanes = by_rows ? lanes_for(columns) : 0;
    out.form.wide = count >= narrow_indices || columns >= narrow_indices;
    out.form.strided = is_strided(space);
    const int64_t at_once = by_rows ? std::max(threads / out.form.lanes, 1u) : threads;
    out.blocks = uint32_t(std::max<int64_t>(1, std::min<int64_t>(blocks, (count + at_once - 1) / at_once)));
    out.workspace = uint64_t(n_kept()) * out.blocks * uint64_t(at_once) * uint64_t(columns) * 8;
    out.in_place = in_place_;
    add_arguments(c, count, space, out);
    return out;
  }

  uint32_t n_kept() const { return loops_.n_kept; }
  const Loops& loops() const { return loops_; }

 private:
  static constexpr uint32_t most_shared = 32 << 10;
  static constexpr int64_t short_row = 8, long_row = 1 << 16, few_rows = 64, narrow_indices = int64_t(1) << 30;

  // The index space of a call. stride(axis, x): of access x, in elements.
  struct Space {
    size_t accesses;
    std::vector<int64_t> size{}, strides{};

    size_t axes() const { return size.size(); }
    int64_t& stride(size_t axis, size_t x) { return strides[axis * accesses + x]; }
    void add(int64_t n) { size.push_back(n), strides.resize(strides.size() + accesses, 0); }

    // Leaves out axes of one element, and joins those that every tensor has as one; of the first `end` axes.
    void merge(size_t end) {
      size_t to = 0;
      for (size_t axis = 0; axis < axes(); ++axis) {
        if (axis < end && size[axis] == 1) continue;
        const bool joins = to > 0 && axis < end && continues(to - 1, axis);
        const int64_t outer = joins ? size[--to] : 1;
        size[to] = outer * size[axis];
        for (size_t x = 0; x < accesses; ++x) stride(to, x) = stride(axis, x);
        ++to;
      }
      size.resize(to), strides.resize(to * accesses);
    }

   private:
    bool continues(size_t outer, size_t inner) {
      for (size_t x = 0; x < accesses; ++x)
        if (stride(outer, x) != stride(inner, x) * size[inner]) return false;
      return true;
    }
  };

  const char* add_value(uint32_t v) {
    const Value& value = loops_.values[v];
    const DLTensor& t = program_->values[value.value];
    if (value.source == Value::step) return nullptr;
    const bool is_scalar = value.source != Value::input || program_->info[value.value].flags & DVT_V_HOST_SCALAR;
    if (value.source == Value::constant && std::any_of(t.shape, t.shape + t.ndim, [](int64_t n) { return n != 1; }))
      return "a constant array";
    if (!is_scalar) {
      accesses_.push_back({v, value.index, false});
      reads_[value.index] = true;
      return nullptr;
    }
    scalars_.push_back(v);
    constants_.push_back(value.source == Value::constant ? argument_of_element(t) : 0);
    return nullptr;
  }

  Space space_of(const dvt_exe_call& c) const {
    Space space{accesses_.size()};
    for (const int64_t size : loops_.space) space.add(size < 0 ? c.symbols[-1 - size] : size);
    for (size_t x = 0; x < accesses_.size(); ++x) {
      const Access& access = accesses_[x];
      const DLTensor* const t = access.writes ? c.call->out[access.operand] : c.call->in[access.operand];
      const auto first = size_t(loops_.values[access.value].first_axis);
      for (size_t axis = 0; axis < size_t(t->ndim); ++axis)
        if (t->shape[axis] != 1) space.stride(first + axis, x) = t->strides[axis];
    }
    return space;
  }

  bool is_strided(Space& space) const {
    const size_t last = space.axes() - 1;
    for (size_t x = 0; x < accesses_.size() && space.size[last] > 1; ++x)
      if (space.stride(last, x) != loops_.values[accesses_[x].value].varies) return true;
    return false;
  }

  void add_arguments(const dvt_exe_call& c, int64_t count, Space& space, Launch& out) const {
    std::vector<uint64_t>& to = out.arguments;
    to.reserve(1 + space.axes() * (1 + accesses_.size()) + scalars_.size());
    to.push_back(uint64_t(count));
    for (const int64_t size : space.size) to.push_back(uint64_t(size));
    for (size_t x = 0; x < accesses_.size(); ++x)
      for (size_t axis = 0; axis < space.axes(); ++axis) to.push_back(uint64_t(space.stride(axis, x)));
    for (size_t i = 0; i < scalars_.size(); ++i) to.push_back(scalar(c, i));
    out.pointers.reserve(c.call->n_in + c.call->n_out + 1);
    for (uint32_t i = 0; i < c.call->n_in; ++i)
      if (reads_[i]) out.pointers.push_back(data<void>(c.call->in[i]));
    for (uint32_t i = 0; i < c.call->n_out; ++i) out.pointers.push_back(data<void>(c.call->out[i]));
    if (n_kept()) out.pointers.push_back(c.call->workspace);
  }
  uint64_t scalar(const dvt_exe_call& c, size_t i) const {
    const Value& v = loops_.values[scalars_[i]];
    if (v.source == Value::constant) return constants_[i];
    if (v.source == Value::input) {
      const DLTensor* const t = c.call->in[v.index];
      return t->data ? argument_of_element(*t) : 0;  // a query has no data
    }
    if (!c.numbers) return 0;
    const dvt_number_value x = c.numbers[v.index];
    return program_->numbers[v.index].is_real ? argument_of(v.dtype, x.f) : argument_of(v.dtype, x.i);
  }

  const dvt_program* program_ = nullptr;
  Loops loops_;
  std::vector<bool> reads_;          // of each input: is it one of them
  std::vector<Access> accesses_;     // inputs, then outputs
  std::vector<uint32_t> scalars_;    // values that are arguments
  std::vector<uint64_t> constants_;  // of each of them that is a constant
  bool reduces_ = false;
  uint64_t in_place_ = 0;
};
}  // namespace codegen
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_CODEGEN_SOURCE_HPP
