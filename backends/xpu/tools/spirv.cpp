#include "spirv.hpp"

#include <stdexcept>
#include <unordered_map>

namespace spirv {
namespace {
// Numbers of the SPIR-V specification, sections 3.3 and 3.52.
constexpr uint32_t magic = 0x07230203, kernel_model = 6, workgroup = 4, float16 = 9, float64 = 10;
enum Opcode : uint32_t {
  entry_point = 15,
  capability = 17,
  type_bool = 20,
  type_int = 21,
  type_float = 22,
  type_vector = 23,
  type_array = 28,
  type_struct = 30,
  type_pointer = 32,
  constant = 43,
  variable = 59,
};

struct Sizes {  // of types in bytes, by id; of pointers that of what they point to
  std::unordered_map<uint32_t, uint64_t> type, pointee, value;

  void read(Opcode op, std::span<const uint32_t> w) {
    switch (op) {
      case type_bool: type[w[1]] = 1; break;
      case type_int:
      case type_float: type[w[1]] = w[2] / 8; break;
      case type_vector: type[w[1]] = type[w[2]] * (w[3] == 3 ? 4 : w[3]); break;
      case constant: value[w[2]] = w[3]; break;
      case type_array: type[w[1]] = type[w[2]] * value[w[3]]; break;
      case type_struct:
        type[w[1]] = 0;
        for (const uint32_t member : w.subspan(2)) type[w[1]] += type[member];
        break;
      case type_pointer: pointee[w[1]] = type[w[3]]; break;
      default: break;
    }
  }
};
}  // namespace

Module parse(std::span<const uint32_t> words) {
  if (words.size() < 5 || words[0] != magic) throw std::runtime_error("not SPIR-V");
  Module module;
  Sizes sizes;
  for (size_t at = 5, length; at < words.size(); at += length) {
    const auto op = Opcode(words[at] & 0xFFFF);
    length = words[at] >> 16;
    if (length == 0 || at + length > words.size()) throw std::runtime_error("SPIR-V that ends within a word");
    const auto w = words.subspan(at, length);
    sizes.read(op, w);
    if (op == capability) {
      module.fp16 |= w[1] == float16;
      module.fp64 |= w[1] == float64;
    } else if (op == entry_point && w[1] == kernel_model) {
      module.kernels.emplace_back(reinterpret_cast<const char*>(&w[3]));
    } else if (op == variable && w[3] == workgroup) {
      module.local_bytes += sizes.pointee[w[1]];
    }
  }
  return module;
}
}  // namespace spirv
