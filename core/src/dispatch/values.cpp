#include "dispatch/values.hpp"

#include "dispatch/execute.hpp"

namespace dovetail {
namespace {
constexpr size_t kMostKept = 512;  // a thread keeps no more than about 200 KB for each depth of runs
}

void Values::make_room() {
  if (memory_->own.size() < n_ - n_lent_) memory_->own.resize(n_ - n_lent_);
  if (memory_->at.size() < n_) memory_->at.resize(n_);
  for (size_t i = n_lent_; i < n_; ++i) memory_->at[i] = &memory_->own[i - n_lent_];
}

void Values::set_constants(const Executable& e, const std::vector<Scalar>* given) {
  const Program& p = *e.binding.program;
  for (size_t i = 0; i < p.constants.size(); ++i)
    set_host_scalar(own(p.constants[i].value), given ? (*given)[i] : e.binding.constant(i));
  for (size_t i = 0; i < e.arrays.size(); ++i) lend(p.arrays[i].value, e.arrays[i]);
}

Values::Values(const Executable& e, const std::vector<Scalar>* constants) : n_(e.types.size()), n_lent_(0) {
  make_room();
  for (size_t i = 0; i < n_; ++i) memory_->own[i].view.data = nullptr;  // of an earlier run
  e.types.set(memory_->at.data(), e.device());
  for (size_t i = 0; i < e.inside.size(); ++i) set_types_inside(e, i, *this);
  set_constants(e, constants);
}

Values::Values(const Executable& e, const Tensor* const* in, Tensor* const* out,
               const std::vector<Scalar>* constants)
    : n_(e.types.size()), n_lent_(e.first_inputs) {
  make_room();
  const std::vector<int>& outputs = e.binding.program->outputs;
  if (e.makes_outputs)
    for (size_t i = 0; i < outputs.size(); ++i) memory_->at[size_t(outputs[i])] = out[i];
  e.types.set(memory_->at.data() + n_lent_, e.device(), false);
  const auto& inputs = e.binding.program->inputs;
  if (inputs.size() == n_lent_)  // without a look at each
    for (size_t i = 0; i < n_lent_; ++i) lend(int(i), *in[i]);
  else
    for (size_t i = 0; i < inputs.size(); ++i) lend(inputs[i].value, *in[i]);
  set_constants(e, constants);
}

Values::Values(const Executable& e, std::vector<Tensor> in, const std::vector<Scalar>* constants)
    : n_(e.types.size()), n_lent_(0) {
  make_room();
  e.types.set(memory_->at.data() + e.first_inputs, e.device(), false);
  const auto& inputs = e.binding.program->inputs;
  for (size_t i = 0; i < inputs.size(); ++i) own(inputs[i].value) = std::move(in[i]);
  set_constants(e, constants);
}

Values::Values(const Values& o) : n_(o.n_), n_lent_(o.n_lent_) {
  make_room();
  for (size_t i = 0; i < n_; ++i)
    if (o.is_own(int(i))) memory_->own[i - n_lent_] = o.memory_->own[i - n_lent_];
    else memory_->at[i] = o.memory_->at[i];
}

Values::~Values() {
  if (n_ > kMostKept) memory_->own = {};
  else
    for (size_t i = 0; i < n_ - n_lent_; ++i) memory_->own[i].drop_storage();
}
}  // namespace dovetail
