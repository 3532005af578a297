#include "dispatch/control.hpp"

#include <algorithm>

#include "dispatch/execute.hpp"
#include "dispatch/host_memory.hpp"
#include "dispatch/values.hpp"
#include "graph/control.hpp"

namespace dovetail {
namespace {
// The value of a 0-d bool array. Waits for the device.
bool is_true(const Tensor& t) {
  uint8_t value = 0;
  if (t.device) download(t, &value);
  else value = scalar_of(t).read<uint8_t>();
  return value != 0;
}

// Element i along the first axis, as a view.
Tensor element(const Tensor& x, int64_t i) {
  Tensor out = x;
  out.set_rank(x.rank() - 1);
  for (int a = 0; a < out.rank(); ++a) out.size(a) = x.size(a + 1), out.stride(a) = x.stride(a + 1);
  out.update_dense();
  if (out.numel) out.view.data = static_cast<char*>(x.view.data) + i * x.stride(0) * int64_t(info(x.dtype).bytes());
  return out;
}

class Control {
 public:
  Control(const Executable& e, size_t k, Values& values)
      : node_(e.binding.program->nodes[k]),
        attrs_(*e.binding.nodes[k].attrs),
        programs_(e.programs.at(k)),
        device_(e.device()),
        values_(values),
        in_(take_operands(e, k, values)) {}

  std::vector<Tensor> run() {
    const uint32_t flags = node_.op->spec.flags;
    if (flags & op_loop) return loop();
    if (flags & op_branch) return branch();
    return flags & op_while ? while_loop() : scan();
  }

 private:
  std::vector<Tensor> loop() {
    for (const auto& round : programs_) {
      check_interrupt_();
      in_ = replay(*round, std::move(in_));
    }
    return std::move(in_);
  }

  std::vector<Tensor> branch() {
    const bool pred = is_true(in_[0]);
    in_.erase(in_.begin());
    return replay(*programs_[pred ? BranchAttrs::then : BranchAttrs::otherwise], std::move(in_));
  }

  std::vector<Tensor> while_loop() {
    while (is_true(replay(*programs_[WhileAttrs::cond], in_)[0])) {
      check_interrupt_();
      RoundLimit::take_one();
      in_ = replay(*programs_[WhileAttrs::body], std::move(in_));
    }
    return std::move(in_);
  }

  std::vector<Tensor> scan() {
    const auto n_carry = size_t(attrs_.i64(ScanAttrs::n_carry));
    const std::vector<Tensor> xs(std::make_move_iterator(in_.begin() + ptrdiff_t(n_carry)),
                                 std::make_move_iterator(in_.end()));
    std::vector<Tensor> carries = std::move(in_), ys;
    carries.resize(n_carry);
    for (size_t i = n_carry; i < node_.n_out; ++i) {
      const Tensor& y = values_[node_.out + int(i)];
      ys.push_back(empty_tensor(y.dtype, y.shape(), device_));
    }
    std::vector<Tensor> places(ys.size());  // of the round's results in the ys
    std::vector<const Tensor*> given(n_carry, nullptr);
    for (const Tensor& place : places) given.push_back(&place);
    for (int64_t i = 0; i < attrs_.i64(ScanAttrs::length); ++i) {
      check_interrupt_();
      for (const Tensor& x : xs) carries.push_back(element(x, i));
      for (size_t k = 0; k < ys.size(); ++k) places[k] = element(ys[k], i);
      carries = replay(*programs_[0], std::move(carries), given.data());
      for (size_t k = 0; k < ys.size(); ++k) {
        const Tensor& made = carries[n_carry + k];
        if (made.storage == places[k].storage && made.view.data == places[k].view.data) continue;
        copy_into(places[k], made.device ? made : materialise(made, device_));
      }
      carries.resize(n_carry);
    }
    for (Tensor& carry : carries)  // one that is a y, too, would keep all of these
      if (carry.storage && std::ranges::find(ys, carry.storage, &Tensor::storage) != ys.end())
        carry = compact(carry);
    std::ranges::move(ys, std::back_inserter(carries));
    return carries;
  }

  const Program::Node& node_;
  const Attrs& attrs_;
  const std::vector<std::shared_ptr<const Executable>>& programs_;
  Device& device_;
  const Values& values_;  // the node's have their types
  std::vector<Tensor> in_;
  InterruptCheck check_interrupt_;
};
}  // namespace

thread_local uint64_t RoundLimit::left_ = UINT64_MAX;

void RoundLimit::take_one() {
  if (left_ == 0) throw Error(ErrorKind::runtime, "[while_loop] more rounds than the run's limit: expected fewer");
  --left_;
}

std::vector<std::shared_ptr<const Executable>> make_executables(std::vector<std::shared_ptr<Binding>>& programs,
                                                                Device& device, const Fusion* fusion) {
  std::vector<std::shared_ptr<const Executable>> made;
  for (size_t i = 0; i < programs.size(); ++i) {
    const bool again = i && programs[i] == programs[i - 1];
    if (again) {
      made.push_back(made.back());
      continue;
    }
    auto own = fusion ? fusion_of_body(*fusion, *programs[i], device) : nullptr;
    made.push_back(make_executable(std::move(*programs[i]), device, {}, std::move(own)));
  }
  programs.clear();
  return made;
}

void run_control(const Executable& e, size_t k, Values& values) {
  const int out = e.binding.program->nodes[k].out;
  std::vector<Tensor> results = Control(e, k, values).run();
  for (size_t i = 0; i < results.size(); ++i) values.own(out + int(i)) = std::move(results[i]);
}
}  // namespace dovetail
