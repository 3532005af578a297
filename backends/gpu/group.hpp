// A group of a program's nodes as kernels that a compiler of the device's makes of text: what backends share of
// dvt_compiler (abi.h). dovetail/codegen_source.hpp prints the text.
#pragma once
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "dovetail/codegen_source.hpp"

namespace gpu {
// A call of the sizes that the program's hints give, else of 1024, and of row-major operands without data: the
// likely one.
class HintedCall {
 public:
  explicit HintedCall(const dvt_program& p) {
    for (uint32_t s = 0; s < p.n_symbols; ++s) symbols_.push_back(p.symbols[s].hint < 0 ? 1024 : p.symbols[s].hint);
    const uint32_t n = p.n_inputs + p.n_outputs;
    shapes_.resize(n), strides_.resize(n), tensors_.resize(n);
    for (uint32_t i = 0; i < n; ++i) add(i, p.values[i < p.n_inputs ? p.inputs[i] : p.outputs[i - p.n_inputs]]);
    for (const DLTensor& t : tensors_) operands_.push_back(&t);
    call_.struct_size = sizeof call_;
    call_.n_in = p.n_inputs, call_.n_out = p.n_outputs;
    call_.in = operands_.data(), call_.out = operands_.data() + p.n_inputs;
  }
  HintedCall(const HintedCall&) = delete;
  HintedCall& operator=(const HintedCall&) = delete;

  dvt_exe_call get() const {
    return {sizeof(dvt_exe_call), uint32_t(symbols_.size()), 0, 0, symbols_.data(), nullptr, &call_};
  }

 private:
  void add(uint32_t i, const DLTensor& t) {
    std::vector<int64_t>&shape = shapes_[i], &strides = strides_[i];
    shape.assign(t.shape, t.shape + t.ndim);
    for (int64_t& size : shape)
      if (size < 0) size = symbols_[size_t(-1 - size)];
    strides.assign(shape.size(), 1);
    for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
    tensors_[i] = t;
    tensors_[i].data = nullptr, tensors_[i].shape = shape.data(), tensors_[i].strides = strides.data();
  }

  std::vector<int64_t> symbols_;
  std::vector<std::vector<int64_t>> shapes_, strides_;
  std::vector<DLTensor> tensors_;
  std::vector<const DLTensor*> operands_;
  dvt_call call_{};
};

// Writes the text of a kernel where DOVETAIL_COMPILE_DUMP names a folder. The host makes it, and warns if it
// cannot.
inline void dump(const std::string& text) {
  const char* const folder = std::getenv("DOVETAIL_COMPILE_DUMP");
  if (folder && *folder)
    std::ofstream(folder + ("/kernel-" + std::to_string(std::hash<std::string>()(text)) + ".text")) << text;
}

// The group's source, and its kernels for the forms of its calls. They live as long: what is captured uses them.
template <class Kernel>
class Group {
 public:
  dvt::codegen::Source source;

  // make(text), which returns a shared_ptr<const Kernel>, where it has not been called for the form yet. It may
  // return nullptr: there is no such kernel, now and later.
  template <class Make>
  const Kernel* kernel(const dvt::codegen::Form& form, const dvt::codegen::Dialect& dialect, const char* name,
                       Make make) {
    const std::lock_guard guard(mutex_);
    for (const auto& [known, kernel] : kernels_)
      if (known == form) return kernel.get();
    const std::string text = source.text(dialect, form, name);
    dump(text);
    return kernels_.emplace_back(form, make(text)).second.get();
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<dvt::codegen::Form, std::shared_ptr<const Kernel>>> kernels_;
};

// Claims what text is known for; nothing if there is a reason, a static string, why no group can run.
inline dvt_status claim_groups(const dvt_program& p, const char* reason, dvt_claim* out) {
  const auto supports = [&](const dvt_program& program, const dvt_node& node) {
    return reason ? reason : dvt::codegen::unknown(program, node);
  };
  dvt::codegen::claim(p, supports, out);
  return DVT_OK;
}

// The answer of a query to a group that runs node by node; the reason is a static string.
inline dvt_status refuse_group(dvt_answer* answer, const char* reason) {
  DVT_PUT(answer, dvt_answer, reason, reason);
  return DVT_UNSUPPORTED;
}
inline dvt_status accept_group(dvt_answer* answer, const dvt::codegen::Launch& launch) {
  DVT_PUT(answer, dvt_answer, level, DVT_NATIVE);
  DVT_PUT(answer, dvt_answer, workspace, launch.workspace);
  DVT_PUT(answer, dvt_answer, in_place, launch.in_place);
  return DVT_OK;
}
}  // namespace gpu
