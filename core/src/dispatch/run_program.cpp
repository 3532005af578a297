#include "dispatch/run_program.hpp"

#include <algorithm>
#include <new>

#include "dispatch/decompose.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/host_memory.hpp"
#include "dispatch/packed.hpp"

namespace dovetail {
namespace {
constexpr uintptr_t kAlignment = 64;  // of memory that a device's kernels take as it is

std::string key_of(const Device& device, const TensorType* const* in, size_t n) {
  std::string key(reinterpret_cast<const char*>(&device.index), sizeof device.index);
  for (size_t i = 0; i < n; ++i) {
    key.push_back(char(in[i]->dtype)), key.push_back(char(in[i]->rank()));
    key.append(reinterpret_cast<const char*>(in[i]->dims), sizeof(int64_t) * size_t(in[i]->rank()));
  }
  return key;
}

template <class T>
std::vector<const TensorType*> types_of(std::span<const T> tensors) {
  std::vector<const TensorType*> types;
  for (const T& t : tensors) types.push_back(&t);
  return types;
}

void expect_count(const Program& p, size_t n) {
  if (n != p.inputs.size())
    throw Error(ErrorKind::type,
                "[program] " + std::to_string(n) + " operands: expected " + std::to_string(p.inputs.size()));
}

}  // namespace

Tensor on_device(const HostArray& elements, Device& device, uint64_t alignment) {
  const TensorType type = elements.type();
  const auto address = reinterpret_cast<uintptr_t>(elements.data);
  const bool plain =
      elements.dtype != DType::b8 || are_plain_bools({reinterpret_cast<const uint8_t*>(elements.data), type.numel});
  if (!device.host_mapped || address % alignment || !type.numel || !plain)
    return upload(elements.data, elements.dtype, elements.shape, device);
  Tensor t;
  t.set_type(elements.dtype, &device);
  t.set_shape(elements.shape);
  auto owner = std::make_unique<std::shared_ptr<const void>>(elements.owner);
  const auto end = [](Storage* s) { delete static_cast<std::shared_ptr<const void>*>(s->owner); };
  t.own(adopt(device, current_stream(device), const_cast<std::byte*>(elements.data), end, owner.get()));
  owner.release();
  t.storage->immutable = true;
  return t;
}

Binding RunnableProgram::bind(const TensorType* const* in) const {
  std::string why;
  auto binding = bind_program(program_, in, nullptr, nullptr, &why);
  if (!binding) {
    const auto& inputs = program_->inputs;
    const auto wrong = [&](const Program::Input& i) {
      return i.dtype != DType::none && in[&i - inputs.data()]->dtype != i.dtype;
    };
    if (misfit(*program_, in).empty())
      why += "; export the function for such sizes too, or let it compute with the size instead of looking at it";
    throw Error(std::ranges::any_of(inputs, wrong) ? ErrorKind::type : ErrorKind::value, "[program] " + why);
  }
  return std::move(*binding);
}

Device& RunnableProgram::device_for(Device* device, const std::vector<Tensor>& in) const {
  for (size_t i = 0; i < in.size(); ++i) {
    if (!in[i].device)
      throw Error(ErrorKind::type, "[program] " + name_of_input(*program_, i) + " is a number: expected an array");
    if (!device) device = in[i].device;
    if (in[i].device != device)
      throw Error(ErrorKind::value, "[program] " + name_of_input(*program_, i) + " is on " + in[i].device->name +
                                        ": expected " + device->name + ", as the others");
  }
  if (!device) throw Error(ErrorKind::value, "[program] it has no inputs: name the device to run it on");
  return *device;
}

std::vector<Tensor> RunnableProgram::arrays_on(Device& device) {
  if (program_->arrays.empty()) return {};
  std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
  {
    const GilRelease others_run;  // the holder may wait for it
    lock.lock();
  }
  OnDevice& known = on_device_[&device];
  const uint64_t resets = device.resets;
  if (known.arrays.empty() || known.resets != resets) {
    std::vector<Tensor> made;
    for (const Program::Array& a : program_->arrays) {
      made.push_back(on_device(a.elements, device));
      const auto saved = saved_packs_.find(a.name);
      if (saved != saved_packs_.end() && made.back().storage)
        dovetail::give_packs(*made.back().storage, saved->second);
    }
    known = {std::move(made), resets};
  }
  return known.arrays;
}

void RunnableProgram::prepare(Device& device, std::span<const TensorType> in) {
  expect_count(*program_, in.size());
  executable(device, types_of(in).data());
  const std::string why = missing(device, in);
  if (!why.empty()) throw Error(ErrorKind::not_implemented, why);
}

std::vector<std::pair<std::string, SavedPack>> RunnableProgram::packs_on(Device& device) {
  std::vector<std::pair<std::string, SavedPack>> found;
  const std::vector<Tensor> arrays = arrays_on(device);
  for (size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i].storage)
      for (SavedPack& pack : packs_to_save(*arrays[i].storage))
        found.emplace_back(program_->arrays[i].name, std::move(pack));
  return found;
}

std::shared_ptr<const Executable> RunnableProgram::executable(Device& device, const TensorType* const* in) {
  std::string key = key_of(device, in, program_->inputs.size());
  if (auto found = executables_.find(key)) return found;
  const BroughtDecompositions brought(*program_);
  Binding binding = bind(in);
  auto fusion = fuse_ == Fuse::no ? nullptr : fusion_for(device, binding, nullptr);
  auto made = make_executable(std::move(binding), device, arrays_on(device), std::move(fusion));
  executables_.keep(key, made);
  return made;
}

std::shared_ptr<const Executable> RunnableProgram::find(Device& device, std::string_view key,
                                                        const TensorType* const* in, const Attrs& arguments,
                                                        std::string& why) {
  if (auto found = executables_.find(key)) return found;
  auto binding = bind_program(program_, in, &arguments, nullptr, &why);
  if (!binding) return nullptr;
  const BroughtDecompositions brought(*program_);
  auto fusion = fuse_ == Fuse::no ? nullptr : fusion_for(device, *binding, &arguments);
  auto made = make_executable(std::move(*binding), device, arrays_on(device), std::move(fusion));
  executables_.keep(key, made);
  return made;
}

std::shared_ptr<const Fusion> RunnableProgram::fusion_for(Device& device, const Binding& binding,
                                                          const Attrs* arguments) {
  std::shared_ptr<Fusions> fusions;
  {
    const uint64_t epoch = plans_epoch();
    const std::lock_guard lock(mutex_);
    Fused& fused = fused_[&device];
    if (!fused.fusions || fused.epoch != epoch) fused = {std::make_shared<Fusions>(), epoch};
    fusions = fused.fusions;
  }
  const uint32_t flags = DVT_P_DETERMINISTIC | (fuse_ == Fuse::rounding_each ? DVT_P_ROUND_EACH : 0);
  return fusions->find_or_make(binding, device, arguments, flags);
}

std::vector<std::pair<const Device*, std::shared_ptr<const Fusion>>> RunnableProgram::fusions() {
  std::map<const Device*, Fused> fused;
  {
    const std::lock_guard lock(mutex_);
    fused = fused_;
  }
  std::vector<std::pair<const Device*, std::shared_ptr<const Fusion>>> all;
  for (const auto& [device, made] : fused)
    for (auto& fusion : made.fusions->known()) all.emplace_back(device, std::move(fusion));
  return all;
}

std::vector<Tensor> RunnableProgram::run(Device* wanted, std::vector<Tensor> in, const Tensor* const* given) {
  expect_count(*program_, in.size());
  Device& device = device_for(wanted, in);
  const auto e = executable(device, types_of(std::span<const Tensor>(in)).data());
  if (given) {
    const std::vector<TensorType> types = e->types.of(program_->outputs);
    std::vector<const TensorType*> results;
    for (const TensorType& t : types) results.push_back(&t);
    check_given("program", given, results.data(), results.size(), device);
  }
  const BroughtDecompositions brought(*program_);  // a while_loop may come to new sizes
  std::vector<Tensor> results = replay(*e, std::move(in), given);
  if (given) {
    std::vector<Tensor*> made;
    for (Tensor& t : results) made.push_back(&t);
    put_in_given(made.data(), given, made.size(), device);
  }
  for (Tensor& t : results)
    if (!t.device) t = materialise(t, device);
  return results;
}

std::vector<TensorType> RunnableProgram::infer(std::span<const TensorType> in) const {
  expect_count(*program_, in.size());
  const Binding b = bind(types_of(in).data());
  std::vector<TensorType> results;
  for (const int v : program_->outputs) results.push_back(b.values[size_t(v)]);
  return results;
}

std::vector<int> RunnableProgram::record_in(ProgramBuilder& builder, const std::vector<int>& operands,
                                            const std::vector<int>* arrays) const {
  expect_count(*program_, operands.size());
  std::vector<const TensorType*> in;
  for (const int v : operands) in.push_back(&builder.value(v));
  InlineOptions options;
  options.arrays = arrays;
  return record_inline(builder, bind(in.data()), operands, options);
}

std::string RunnableProgram::missing(Device& device, std::span<const TensorType> in) {
  expect_count(*program_, in.size());
  Binding binding = bind(types_of(in).data());
  const BroughtDecompositions brought(*program_);
  try {
    return missing_kernel(*make_executable(std::move(binding), device));
  } catch (const Error& e) {
    if (e.kind != ErrorKind::not_implemented) throw;
    return e.what();
  }
}

// Calls f with operands' types for up to `times` choices of the sizes that are open; those that f refuses do not
// count.
template <class F>
void RunnableProgram::try_sizes(size_t times, F f) const {
  std::string why;
  size_t done = 0;
  for (const int64_t size : {16, 24, 120, 1, 2, 3, 4, 8, 12, 32, 64, 128, 256, 0}) {
    std::vector<TensorType> in;
    for (const Program::Input& input : program_->inputs) {
      if (input.dtype == DType::none) throw Error(ErrorKind::value, "[program] its inputs take any dtype");
      std::vector<int64_t> shape = input.shape;
      std::ranges::replace(shape, int64_t{-1}, size);
      in.emplace_back().dtype = input.dtype;
      in.back().set_shape(shape);
    }
    try {
      f(in);
      if (++done == times) return;
    } catch (const Error& e) {
      if (e.kind != ErrorKind::value && e.kind != ErrorKind::axis && e.kind != ErrorKind::index) throw;
      why = e.what();
    }
  }
  if (!done)
    throw Error(ErrorKind::value, "no sizes were found for which the program holds, and for the last ones: " + why,
                "name them by giving operands");
}

void RunnableProgram::try_bindings(const std::function<void(const Binding&)>& f) const {
  const auto try_one = [&](const std::vector<TensorType>& in) {
    f(bind(types_of(std::span<const TensorType>(in)).data()));
  };
  try_sizes(SIZE_MAX, try_one);
}

std::string RunnableProgram::missing(Device& device) {
  std::string why;
  try_sizes(1, [&](const std::vector<TensorType>& in) { why = missing(device, in); });
  return why;
}

std::vector<NodeWay> RunnableProgram::ways(Device& device, const std::vector<TensorType>* given) const {
  const BroughtDecompositions brought(*program_);
  std::vector<NodeWay> found;
  const auto look = [&](const std::vector<TensorType>& in) {
    expect_count(*program_, in.size());
    found = node_ways(bind(types_of(std::span<const TensorType>(in)).data()), device);
  };
  if (given) look(*given);
  else try_sizes(1, look);
  return found;
}

std::vector<RunnableProgram::Output> RunnableProgram::outputs() const {
  std::vector<Output> known;
  try_sizes(3, [&](const std::vector<TensorType>& in) {
    const std::vector<TensorType> types = infer(in);
    for (size_t i = 0; i < types.size(); ++i) {
      const std::span<const int64_t> shape = types[i].shape();
      if (known.size() < types.size()) known.push_back({types[i].dtype, {shape.begin(), shape.end()}});
      if (known[i].shape.size() != shape.size() || known[i].dtype != types[i].dtype)
        throw Error(ErrorKind::value, "[program] output " + std::to_string(i) +
                                          " has no one dtype and number of axes: they depend on the inputs' sizes");
      for (size_t axis = 0; axis < shape.size(); ++axis)
        if (known[i].shape[axis] != shape[axis]) known[i].shape[axis] = -1;
    }
  });
  return known;
}

HostArray elements_of(const Tensor& array) {
  const Tensor t = array.dense ? array : compact(array);
  HostArray made{t.dtype, {t.shape().begin(), t.shape().end()}, nullptr, nullptr};
  if (t.device->host_mapped && is_pooled(*t.storage)) {  // others may write memory of their own
    host_access(*t.storage, false);
    made.data = static_cast<const std::byte*>(t.view.data);
    made.owner = std::make_shared<Tensor>(t);
    return made;
  }
  constexpr auto alignment = std::align_val_t(kAlignment);
  const std::shared_ptr<void> memory(operator new(std::max<size_t>(t.bytes(), 1), alignment),
                                     [](void* p) { operator delete(p, alignment); });
  download(t, memory.get());
  made.data = static_cast<const std::byte*>(memory.get());
  made.owner = memory;
  return made;
}
}  // namespace dovetail
