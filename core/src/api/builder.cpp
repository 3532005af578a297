// Programs recorded call by call.
#include <algorithm>
#include <map>

#include "api/programs.hpp"
#include "dispatch/named_attrs.hpp"
#include "dispatch/numbers.hpp"

namespace dovetail::api {
namespace {
struct BuilderHandle {
  ProgramBuilder builder;
  std::map<int, int64_t> numbers;  // their values while the program is recorded

  int number(Number n, int64_t value) {
    const int made = builder.number(n);
    numbers[made] = value;
    return made;
  }
  int64_t value_of(int number) const {
    const auto found = numbers.find(number);
    if (found == numbers.end())
      throw Error(ErrorKind::index, "there is no number " + std::to_string(number) + " in the builder");
    return found->second;
  }
  const TensorType& type(int value) const {
    if (value < 0 || value >= n_values)
      throw Error(ErrorKind::index,
                  "value " + std::to_string(value) + ": expected 0 to " + std::to_string(n_values - 1));
    return builder.value(value);
  }
  int made(int first, uint32_t n = 1) {
    n_values = std::max(n_values, first + int(n));
    return first;
  }
  int n_values = 0;
};
BuilderHandle& handle(dvr_builder* b) { return expect(reinterpret_cast<BuilderHandle*>(b), "the builder"); }

// The attributes of a call, with the values of its numbers in their places.
Attrs read_attrs(BuilderHandle& b, const Op& op, const dvr_attr* given, uint32_t n, const dvr_number_at* numbers,
                 uint32_t n_numbers, std::vector<Program::Slot>& slots) {
  if (n) expect(given, "the list of attributes");
  if (n_numbers) expect(numbers, "the list of numbers");
  Attrs attrs = op.defaults;
  uint64_t set = 0;
  for (uint32_t i = 0; i < n; ++i) {
    const int at = given[i].name ? attr_position(op, given[i].name) : int(i);
    set_attr(op, attrs, at, given[i].value);
    set |= uint64_t{1} << at;
  }
  for (uint32_t i = 0; i < n_numbers; ++i) {
    const dvr_number_at& where = numbers[i];
    const int at = attr_position(op, &expect(where.attr, "the attribute's name"));
    const int64_t value = b.value_of(where.number);
    if (where.element < 0) {
      set_attr(op, attrs, at, {DVT_A_I64, 1, {.i = value}});
    } else {
      if (attrs.at[at].kind != DVT_A_I64S || uint32_t(where.element) >= attrs.at[at].count)
        throw Error(ErrorKind::index,
                    "[" + op.spec.name + "] " + where.attr + " has no element " + std::to_string(where.element));
      std::vector<int64_t> list(attrs.i64s(at).begin(), attrs.i64s(at).end());
      list[size_t(where.element)] = value;
      attrs.set_ints(at, list);
    }
    const bool list = attrs.at[at].kind == DVT_A_I64S;  // an integer may stand for a list of one
    slots.push_back({uint8_t(at), int16_t(list ? std::max(where.element, 0) : -1), where.number});
    set |= uint64_t{1} << at;
  }
  expect_attrs(op, set);
  return attrs;
}

// Throws where an operand is missing, or there are too many.
std::vector<int> read_operands(const BuilderHandle& b, const Op& op, const int32_t* in, uint32_t n) {
  if (n) expect(in, "the list of operands");
  std::vector<int> values(in, in + n);
  if (!op.variadic && n > uint32_t(op.n_in))
    throw Error(ErrorKind::type, "[" + op.spec.name + "] " + std::to_string(n) + " operands: expected at most " +
                                     std::to_string(op.n_in));
  while (!op.variadic && values.size() < size_t(op.n_in)) values.push_back(-1);
  size_t i = 0;
  for (const ParamSpec& p : op.spec.params) {
    if (!is_operand(p.kind)) continue;
    for (const size_t end = p.variadic ? values.size() : i + 1; i < end; ++i) {
      if (values[i] >= 0) b.type(values[i]);
      else if (!p.optional)
        throw Error(ErrorKind::type, "[" + op.spec.name + "] misses the operand '" + p.name + "'");
    }
  }
  return values;
}

int call(BuilderHandle& b, const Op& op, const int32_t* in, uint32_t n_in, const dvr_attr* attrs, uint32_t n_attrs,
         const dvr_number_at* numbers, uint32_t n_numbers) {
  const std::vector<int> values = read_operands(b, op, in, n_in);
  const auto is_bool = [&](int v) { return v >= 0 && b.type(v).dtype == DType::b8; };
  if (const Op* logical = op_for_bools(op); logical && !values.empty() && std::ranges::all_of(values, is_bool))
    return call(b, *logical, in, n_in, attrs, n_attrs, numbers, n_numbers);
  std::vector<Program::Slot> slots;
  const Attrs read = read_attrs(b, op, attrs, n_attrs, numbers, n_numbers, slots);
  return b.made(b.builder.call(op, values, read, std::move(slots)), op.spec.n_out);
}

int arithmetic(BuilderHandle& b, uint32_t operation, int x, int y) {
  static constexpr Number::Op ops[] = {Number::add,    Number::subtract, Number::multiply, Number::floor_divide,
                                       Number::modulo, Number::minimum,  Number::maximum};
  if (operation >= std::size(ops))
    throw Error(ErrorKind::value,
                "operation " + std::to_string(operation) + ": expected one of DVR_ADD to DVR_MAXIMUM");
  const Number n{.op = ops[operation], .a = 0, .b = 1};
  const auto value =
      evaluate(n, {{.op = Number::integer}, {.op = Number::integer}}, {{b.value_of(x), 0}, {b.value_of(y), 0}});
  if (!value) throw Error(ErrorKind::value, "a division by 0, or a number beyond 64 bits");
  return b.number({.op = n.op, .a = x, .b = y}, value->i);
}

HostArray copy_of(DType dtype, std::span<const int64_t> shape, const void* data) {
  HostArray a{dtype, {shape.begin(), shape.end()}, nullptr, nullptr};
  const uint64_t bytes = a.type().bytes();
  if (bytes) expect(static_cast<const char*>(data), "the data");
  constexpr auto alignment = std::align_val_t(64);
  const std::shared_ptr<void> memory(operator new(std::max<size_t>(bytes, 1), alignment),
                                     [](void* p) { operator delete(p, alignment); });
  if (bytes) std::memcpy(memory.get(), data, bytes);
  a.data = static_cast<const std::byte*>(memory.get()), a.owner = memory;
  return a;
}
}  // namespace
}  // namespace dovetail::api

using namespace dovetail;
using namespace dovetail::api;

dvr_status dvr_builder_new(dvr_builder** out) {
  return guarded("builder_new",
                 [&] { expect(out, "the result") = reinterpret_cast<dvr_builder*>(new BuilderHandle); });
}

void dvr_builder_free(dvr_builder* b) { delete reinterpret_cast<BuilderHandle*>(b); }

dvr_status dvr_builder_input(dvr_builder* b, DLDataType dtype, uint32_t ndim, const int64_t* shape,
                             const char* const* size_names, const char* name, int32_t* value) {
  return guarded("builder_input", [&] {
    BuilderHandle& h = handle(b);
    int32_t& result = expect(value, "the result");
    Program::Input declared{-1, to_dtype(dtype), {}, name ? name : ""};
    std::vector<int64_t> sizes;
    for (const int64_t n : to_shape(ndim, shape)) {
      if (n < -1) throw Error(ErrorKind::value, "a size of " + std::to_string(n) + ": expected 0 or more, or -1");
      const char* own = size_names ? size_names[declared.shape.size()] : nullptr;
      if (own && *own && n >= 0)
        throw Error(ErrorKind::value, "the size '" + std::string(own) + "' is " + std::to_string(n) +
                                          ": expected -1, as it has a name");
      declared.shape.push_back(n);
      declared.size_names.emplace_back(own ? own : "");
      sizes.push_back(n < 0 ? kSizeOfTrace : n);
    }
    result = h.made(h.builder.input(std::move(declared), sizes));
  });
}

dvr_status dvr_builder_constant(dvr_builder* b, DLDataType dtype, const void* number, int32_t* value) {
  return guarded("builder_constant", [&] {
    BuilderHandle& h = handle(b);
    int32_t& result = expect(value, "the result");
    expect(static_cast<const char*>(number), "the number");
    result = h.made(h.builder.constant(Scalar(to_dtype(dtype), number)));
  });
}

dvr_status dvr_builder_array(dvr_builder* b, DLDataType dtype, uint32_t ndim, const int64_t* shape,
                             const void* data, int32_t* value) {
  return guarded("builder_array", [&] {
    BuilderHandle& h = handle(b);
    int32_t& result = expect(value, "the result");
    result = h.made(h.builder.array(copy_of(to_dtype(dtype), to_shape(ndim, shape), data)));
  });
}

dvr_status dvr_builder_integer(dvr_builder* b, int64_t n, int32_t* number) {
  return guarded("builder_integer",
                 [&] { expect(number, "the result") = handle(b).number({.op = Number::integer, .i = n}, n); });
}

dvr_status dvr_builder_size(dvr_builder* b, int32_t value, uint32_t axis, int32_t* number) {
  return guarded("builder_size", [&] {
    BuilderHandle& h = handle(b);
    const TensorType& t = h.type(value);
    if (axis >= uint32_t(t.rank()))
      throw Error(ErrorKind::index,
                  "axis " + std::to_string(axis) + " of a value with " + std::to_string(t.rank()) + " axes");
    expect(number, "the result") = h.number({.op = Number::size, .a = value, .b = int(axis)}, t.size(int(axis)));
  });
}

dvr_status dvr_builder_arithmetic(dvr_builder* b, uint32_t operation, int32_t x, int32_t y, int32_t* number) {
  return guarded("builder_arithmetic",
                 [&] { expect(number, "the result") = arithmetic(handle(b), operation, x, y); });
}

dvr_status dvr_builder_call(dvr_builder* b, const dvr_op* op, const int32_t* in, uint32_t n_in,
                            const dvr_attr* attrs, uint32_t n_attrs, const dvr_number_at* numbers,
                            uint32_t n_numbers, int32_t* first) {
  return guarded("builder_call", [&] {
    int32_t& result = expect(first, "the result");
    result = api::call(handle(b), to(op), in, n_in, attrs, n_attrs, numbers, n_numbers);
  });
}

dvr_status dvr_builder_inline(dvr_builder* b, dvr_program* p, const int32_t* in, uint32_t n_in, int32_t* out,
                              uint32_t n_out) {
  return guarded("builder_inline", [&] {
    BuilderHandle& h = handle(b);
    const RunnableProgram& program = to(p).runnable;
    if (n_in) expect(in, "the list of operands");
    if (n_out) expect(out, "the list of results");
    if (n_out != program.program().outputs.size())
      throw Error(ErrorKind::value,
                  std::to_string(n_out) + " results: expected " + std::to_string(program.program().outputs.size()));
    const std::vector<int> operands(in, in + n_in);
    for (const int v : operands) h.type(v);
    const std::vector<int> results = program.record_in(h.builder, operands);
    for (uint32_t i = 0; i < n_out; ++i) out[i] = h.made(results[i]);
  });
}

dvr_status dvr_builder_describe(dvr_builder* b, int32_t value, dvr_tensor* out) {
  return guarded("builder_describe", [&] { put_type(handle(b).type(value), expect(out, "the result")); });
}

dvr_status dvr_builder_finish(dvr_builder* b, const int32_t* outputs, uint32_t n_outputs, dvr_program** out) {
  return guarded("builder_finish", [&] {
    BuilderHandle& h = handle(b);
    dvr_program*& result = expect(out, "the result");
    if (n_outputs) expect(outputs, "the list of outputs");
    const std::vector<int> values(outputs, outputs + n_outputs);
    for (const int v : values) h.type(v);
    give_program(h.builder.finish(values), result);
  });
}
