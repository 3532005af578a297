// Programs: loaded, asked, run.
#include "api/programs.hpp"

#include <algorithm>

#include "dispatch/artefact.hpp"
#include "graph/file.hpp"
#include "graph/text.hpp"

using namespace dovetail;
using namespace dovetail::api;

namespace dovetail::api {
namespace {
std::vector<TensorType> abstract_operands(const dvr_tensor* const* in, uint32_t n_in) {
  if (n_in) expect(in, "the list of operands");
  std::vector<TensorType> types(n_in);
  for (uint32_t i = 0; i < n_in; ++i) {
    const DLTensor& v = expect(in[i], "an operand").view;
    if (v.ndim < 0)
      throw Error(ErrorKind::value, "operand " + std::to_string(i) + " has a negative number of axes");
    types[i].dtype = to_dtype(v.dtype);
    types[i].set_shape(to_shape(uint32_t(v.ndim), v.shape));
  }
  return types;
}

void expect_results(const Program& p, const dvr_tensor* out, uint32_t n_out) {
  if (n_out != p.outputs.size())
    throw Error(ErrorKind::value, std::to_string(n_out) + " results: expected " + std::to_string(p.outputs.size()));
  if (n_out) expect(out, "the list of results");
}

dvr_value_info info_of(const ProgramHandle::Value& v) {
  return {0,
          uint32_t(v.shape.size()),
          v.dtype == DType::none ? DLDataType{} : info(v.dtype).dl,
          v.name.c_str(),
          v.shape.data(),
          v.names.data()};
}

const ProgramHandle::Value& at(const std::vector<ProgramHandle::Value>& values, uint32_t i, const char* what) {
  if (i >= values.size())
    throw Error(ErrorKind::index, std::string(what) + " " + std::to_string(i) + ": expected less than " +
                                      std::to_string(values.size()));
  return values[i];
}
}  // namespace

const std::string& ProgramHandle::text() {
  std::call_once(text_once_, [this] { text_ = to_json(runnable.program()).dump(); });
  return text_;
}

const std::vector<ProgramHandle::Value>& ProgramHandle::inputs() {
  std::call_once(inputs_once_, [this] {
    for (const Program::Input& input : runnable.program().inputs) {
      Value& v = inputs_.emplace_back();
      v.name = input.name, v.dtype = input.dtype, v.shape = input.shape, v.size_names = input.size_names;
      v.size_names.resize(v.shape.size());
    }
    for (Value& v : inputs_)
      for (const std::string& name : v.size_names) v.names.push_back(name.c_str());
  });
  return inputs_;
}

const std::vector<ProgramHandle::Value>& ProgramHandle::outputs() {
  std::call_once(outputs_once_, [this] {
    for (const RunnableProgram::Output& output : runnable.outputs()) {
      Value& v = outputs_.emplace_back();
      v.dtype = output.dtype, v.shape = output.shape;
      v.names.assign(v.shape.size(), "");
    }
  });
  return outputs_;
}

void give_program(std::shared_ptr<const Program> program, dvr_program*& out) {
  give_program(std::make_unique<RunnableProgram>(std::move(program)), out);
}
void give_program(std::unique_ptr<RunnableProgram> made, dvr_program*& out) {
  out = reinterpret_cast<dvr_program*>(new ProgramHandle(std::move(made)));
}

namespace {
void run(ProgramHandle& p, Device* device, dvr_tensor* const* in, uint32_t n_in, const uint8_t* donate,
         dvr_tensor* out, uint32_t n_out) {
  expect_results(p.runnable.program(), out, n_out);
  if (n_in) expect(in, "the list of operands");
  std::vector<Tensor> operands;
  for (uint32_t i = 0; i < n_in; ++i) operands.push_back(to_tensor(in[i], "an operand"));
  std::vector<Tensor> memory(n_out);
  std::vector<const Tensor*> given(n_out, nullptr);
  for (uint32_t i = 0; i < n_out; ++i)
    if (out[i].buffer) memory[i] = to_tensor(&out[i], "a given result"), given[i] = &memory[i];
  const bool any = std::ranges::any_of(given, [](const Tensor* t) { return t != nullptr; });
  for (uint32_t i = 0; donate && i < n_in; ++i)
    if (donate[i]) dvr_release(std::exchange(in[i]->buffer, nullptr));
  std::vector<Tensor> results = p.runnable.run(device, std::move(operands), any ? given.data() : nullptr);
  for (uint32_t i = 0; i < n_out; ++i) {
    Tensor& t = results[i];
    const bool shared = t.storage->refs.load(std::memory_order_acquire) != 1 || t.storage->immutable;
    if (!given[i] && (shared || !t.dense)) t = compact(t);
  }
  for (uint32_t i = 0; i < n_out; ++i)
    if (!given[i]) put(std::move(results[i]), out[i]);
}
}  // namespace
}  // namespace dovetail::api

void dvr_program_free(dvr_program* p) { delete reinterpret_cast<ProgramHandle*>(p); }

dvr_status dvr_program_load(const char* path, dvr_program** out) {
  return guarded("program_load", [&] {
    dvr_program*& result = expect(out, "the result");
    give_program(load_program(&expect(path, "the path")), result);
  });
}

dvr_status dvr_program_open(const char* path, dvr_device* device, uint32_t flags, dvr_program** out) {
  return guarded("program_open", [&] {
    dvr_program*& result = expect(out, "the result");
    if (flags & ~uint32_t{DVR_TRUST_CODE})
      throw Error(ErrorKind::value, "flags " + std::to_string(flags) + ": expected 0 or DVR_TRUST_CODE");
    give_program(open_artefact(&expect(path, "the path"), to(device), flags & DVR_TRUST_CODE), result);
  });
}

dvr_status dvr_program_save(dvr_program* p, const char* path) {
  return guarded("program_save", [&] { save_program(to(p).runnable.program(), &expect(path, "the path")); });
}

dvr_status dvr_program_text(dvr_program* p, const char** text) {
  return guarded("program_text", [&] { expect(text, "the result") = to(p).text().c_str(); });
}

dvr_status dvr_program_view(dvr_program* p, const dvt_program** view) {
  return guarded("program_view", [&] { expect(view, "the result") = to(p).view(); });
}

dvr_status dvr_program_from_text(const char* text, dvr_program** out) {
  return guarded("program_from_text", [&] {
    dvr_program*& result = expect(out, "the result");
    give_program(program_of(parse_json(&expect(text, "the text"))), result);
  });
}

dvr_status dvr_program_counts(dvr_program* p, uint32_t* n_inputs, uint32_t* n_outputs) {
  return guarded("program_counts", [&] {
    const Program& program = to(p).runnable.program();
    if (n_inputs) *n_inputs = uint32_t(program.inputs.size());
    if (n_outputs) *n_outputs = uint32_t(program.outputs.size());
  });
}

dvr_status dvr_program_input(dvr_program* p, uint32_t i, dvr_value_info* out) {
  return guarded("program_input", [&] { put_info(info_of(at(to(p).inputs(), i, "input")), out); });
}

dvr_status dvr_program_output(dvr_program* p, uint32_t i, dvr_value_info* out) {
  return guarded("program_output", [&] { put_info(info_of(at(to(p).outputs(), i, "output")), out); });
}

dvr_status dvr_program_check(dvr_program* p, dvr_device* device, const dvr_tensor* const* in, uint32_t n_in) {
  return guarded("program_check", [&] {
    RunnableProgram& program = to(p).runnable;
    const std::string missing =
        in ? program.missing(to(device), abstract_operands(in, n_in)) : program.missing(to(device));
    if (!missing.empty()) throw Error(ErrorKind::not_implemented, missing);
  });
}

dvr_status dvr_program_infer(dvr_program* p, const dvr_tensor* const* in, uint32_t n_in, dvr_tensor* out,
                             uint32_t n_out) {
  return guarded("program_infer", [&] {
    RunnableProgram& program = to(p).runnable;
    expect_results(program.program(), out, n_out);
    const std::vector<TensorType> types = program.infer(abstract_operands(in, n_in));
    for (uint32_t i = 0; i < n_out; ++i) put_type(types[i], out[i]);
  });
}

dvr_status dvr_program_run(dvr_program* p, dvr_device* device, dvr_tensor* const* in, uint32_t n_in,
                           const uint8_t* donate, dvr_tensor* out, uint32_t n_out) {
  return guarded("program_run",
                 [&] { api::run(to(p), reinterpret_cast<Device*>(device), in, n_in, donate, out, n_out); });
}
