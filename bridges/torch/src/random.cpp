#include "random.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <c10/core/GeneratorImpl.h>

#include <cstring>
#include <mutex>

namespace dovetail_torch {
namespace {
class GeneratorImpl final : public c10::GeneratorImpl {
 public:
  explicit GeneratorImpl(c10::DeviceIndex index)
      : c10::GeneratorImpl(torch_device(index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)) {
    check(dvr_generator_new(c10::default_rng_seed_val, &state_));
  }
  ~GeneratorImpl() override { dvr_generator_free(state_); }

  struct State {
    uint64_t seed, offset;
  };
  State get() const {
    State s{};
    check(dvr_generator_get(state_, &s.seed, &s.offset));
    return s;
  }
  void key(uint64_t words, uint32_t out[4]) { check(dvr_generator_key(state_, words, out)); }

  void set_current_seed(uint64_t seed) override { check(dvr_generator_set(state_, seed, 0)); }
  void set_offset(uint64_t offset) override { check(dvr_generator_set(state_, get().seed, offset)); }
  uint64_t get_offset() const override { return get().offset; }
  uint64_t current_seed() const override { return get().seed; }
  uint64_t seed() override {
    const uint64_t seed = c10::detail::getNonDeterministicRandom();
    set_current_seed(seed);
    return seed;
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    const State s = get();
    at::Tensor bytes = at::empty({int64_t(sizeof s)}, at::TensorOptions().dtype(at::kByte));
    std::memcpy(bytes.mutable_data_ptr(), &s, sizeof s);
    return bytes.getIntrusivePtr();
  }
  void set_state(const c10::TensorImpl& from) override {
    State s;
    TORCH_CHECK(
        from.is_cpu() && from.dtype() == at::kByte && from.numel() == int64_t(sizeof s) && from.is_contiguous(),
        "dovetail: a generator's state is a CPU tensor of ", sizeof s, " bytes (uint8)");
    std::memcpy(&s, from.data(), sizeof s);
    check(dvr_generator_set(state_, s.seed, s.offset));
  }

 private:
  GeneratorImpl* clone_impl() const override {
    auto* copy = new GeneratorImpl(device().index());
    const State s = get();
    check(dvr_generator_set(copy->state_, s.seed, s.offset));
    return copy;
  }
  dvr_generator* state_ = nullptr;
};

GeneratorImpl& impl_of(const at::Generator& g) {
  TORCH_CHECK(g.device().is_privateuseone(), "Expected a 'dovetail' device type for generator but found '",
              g.device().type(), "'");
  return *static_cast<GeneratorImpl*>(g.unsafeGetGeneratorImpl());
}
}  // namespace

at::Generator new_generator(c10::DeviceIndex index) {
  device_at(index);
  return at::make_generator<GeneratorImpl>(index);
}
const at::Generator& default_generator(c10::DeviceIndex index) {
  device_at(index);
  static auto& all = *new std::vector<at::Generator>([] {
    std::vector<at::Generator> made;
    for (size_t i = 0; i < devices().size(); ++i) made.push_back(new_generator(c10::DeviceIndex(i)));
    return made;
  }());
  return all[size_t(index)];
}

at::Tensor draw_key(const std::optional<at::Generator>& generator, c10::DeviceIndex index, uint64_t words) {
  at::Generator g = generator && generator->defined() ? *generator : default_generator(index);
  at::Tensor key = at::empty({4}, at::TensorOptions().dtype(at::kUInt32));
  {
    const std::lock_guard lock(g.mutex());
    impl_of(g).key(words, static_cast<uint32_t*>(key.mutable_data_ptr()));
  }
  return key.to(torch_device(index));
}

at::Generator host_generator(at::Generator generator) {
  uint32_t key[4];
  {
    const std::lock_guard lock(generator.mutex());
    impl_of(generator).key(1, key);
  }
  at::Generator g = at::make_generator<at::CPUGeneratorImpl>();
  // Offsets of one seed give unrelated streams.
  g.set_current_seed((uint64_t(key[1]) << 32 | key[0]) + (uint64_t(key[3]) << 32 | key[2]) * 0x9E3779B97F4A7C15u);
  return g;
}

// What torch.dovetail.default_generators holds.
TORCH_LIBRARY_FRAGMENT(dovetail, m) {
  m.def("default_generator(int index) -> Generator?",
        [](int64_t index) -> std::optional<at::Generator> { return default_generator(c10::DeviceIndex(index)); });
}
}  // namespace dovetail_torch
