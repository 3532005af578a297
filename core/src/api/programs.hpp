// The objects behind dvr_program.
#pragma once
#include <mutex>

#include "api/api.hpp"
#include "dispatch/run_program.hpp"
#include "graph/c_program.hpp"

namespace dovetail::api {
struct ProgramHandle {
  explicit ProgramHandle(std::unique_ptr<RunnableProgram> made) : owned(std::move(made)) {}
  struct Value {  // what dvr_value_info points to
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
    std::vector<std::string> size_names;
    std::vector<const char*> names;
  };
  const std::string& text();
  const std::vector<Value>& inputs();
  const dvt_program* view() const { return view_.of(runnable.program().shared_from_this()); }
  const std::vector<Value>& outputs();  // throws where no sizes are found that the program takes
  const std::unique_ptr<RunnableProgram> owned;
  RunnableProgram& runnable = *owned;

 private:
  std::once_flag text_once_, inputs_once_, outputs_once_;
  std::string text_;
  LazyCProgram view_;
  std::vector<Value> inputs_, outputs_;
};
inline ProgramHandle& to(dvr_program* p) { return expect(reinterpret_cast<ProgramHandle*>(p), "the program"); }
void give_program(std::shared_ptr<const Program>, dvr_program*& out);
void give_program(std::unique_ptr<RunnableProgram>, dvr_program*& out);

// A dtype and a shape without memory.
inline void put_type(const TensorType& type, dvr_tensor& out) {
  Tensor t;
  static_cast<TensorType&>(t) = type;
  t.set_dense();
  t.set_device(nullptr);
  put_view(t, out);
  out.view.data = nullptr, out.buffer = nullptr;
}
}  // namespace dovetail::api
