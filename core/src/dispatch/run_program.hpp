// A program that runs: on any device, for any sizes, from any thread.
#pragma once
#include <functional>
#include <map>
#include <mutex>

#include "device/packs.hpp"
#include "dispatch/executables.hpp"

namespace dovetail {
class RunnableProgram {
 public:
  // Whether groups of its nodes run as one, by the device's compiler.
  enum class Fuse { no, yes, rounding_each /* narrow floats after every node, as eager execution does */ };
  explicit RunnableProgram(std::shared_ptr<const Program> program, Fuse fuse = Fuse::no)
      : program_(std::move(program)), fuse_(fuse) {}
  const Program& program() const { return *program_; }
  const std::shared_ptr<const Program>& shared() const { return program_; }

  // One operand for each input, all on `device` (nullptr: on that of the first). The memory of an operand that
  // nobody else holds may be taken for a result. `given`: nullptr, or for each result the memory in which the
  // caller wants it (of any strides, also over operands), or nullptr.
  std::vector<Tensor> run(Device* device, std::vector<Tensor> in, const Tensor* const* given = nullptr);
  // Looks up all that runs on operands of these types need: kernels, decompositions, groups. Throws
  // Error(not_implemented) where the device lacks a kernel.
  void prepare(Device&, std::span<const TensorType> in);
  // For its arrays, by name, on each device that gets them from now on.
  void give_packs(SavedPacks packs) { saved_packs_ = std::move(packs); }
  // What kernels have made of its arrays on the device.
  std::vector<std::pair<std::string, SavedPack>> packs_on(Device&);
  // The binding for operands of these types and these arguments of the program (ProgramBuilder::argument), kept
  // under `key`, which names the device, them and nothing else. nullptr where the program is not right for them,
  // which `why` explains.
  std::shared_ptr<const Executable> find(Device&, std::string_view key, const TensorType* const* in,
                                         const Attrs& arguments, std::string& why);
  // How devices run it in groups, as long as their kernels are those of then.
  std::vector<std::pair<const Device*, std::shared_ptr<const Fusion>>> fusions();
  // Dtypes and shapes of the results for operands of these. Nothing runs.
  std::vector<TensorType> infer(std::span<const TensorType> in) const;
  // Records the program's calls on values of the builder, as record_inline() does; its errors are those of a run.
  std::vector<int> record_in(ProgramBuilder&, const std::vector<int>& operands,
                             const std::vector<int>* arrays = nullptr) const;
  // What is known of the results without operands: their dtypes, and the sizes that are the same whatever the
  // operands' are; -1 for the others. Error(value) where no sizes are found that the program takes.
  struct Output {
    DType dtype;
    std::vector<int64_t> shape;
  };
  std::vector<Output> outputs() const;
  // Calls f for some choices of the sizes that are open, 0 and 1 among them. Error(value) where the program takes
  // none of them.
  void try_bindings(const std::function<void(const Binding&)>& f) const;
  // Why the program does not run on the device alone for operands of these dtypes and shapes: the message of the
  // kernel that is missing. Empty where it does. Runs nothing.
  std::string missing(Device&, std::span<const TensorType> in);
  // The same for sizes that the program takes.
  std::string missing(Device&);
  // How the device runs each node, for operands of these or for sizes that the program takes.
  std::vector<NodeWay> ways(Device&, const std::vector<TensorType>* in) const;

 private:
  template <class F>
  void try_sizes(size_t times, F) const;
  Binding bind(const TensorType* const* in) const;
  Device& device_for(Device* wanted, const std::vector<Tensor>& in) const;
  std::shared_ptr<const Executable> executable(Device&, const TensorType* const* in);
  std::vector<Tensor> arrays_on(Device&);
  std::shared_ptr<const Fusion> fusion_for(Device&, const Binding&, const Attrs* arguments);

  const std::shared_ptr<const Program> program_;
  const Fuse fuse_;
  ExecutableCache executables_;
  SavedPacks saved_packs_;
  std::mutex mutex_;
  struct OnDevice {
    std::vector<Tensor> arrays;  // of the program
    uint64_t resets;             // of the device when they were made
  };
  std::map<const Device*, OnDevice> on_device_;  // where they have been used
  struct Fused {
    std::shared_ptr<Fusions> fusions;
    uint64_t epoch = 0;  // of the plans
  };
  std::map<const Device*, Fused> fused_;
};
// The elements of an array, which keeps its value: a later change of it gets memory of its own.
HostArray elements_of(const Tensor&);
// Such elements as an array: the host's memory itself where the device works in it and the address is a multiple of
// `alignment`, else a copy.
Tensor on_device(const HostArray&, Device&, uint64_t alignment = 64);
}  // namespace dovetail
