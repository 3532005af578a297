#include "graph/c_program.hpp"

#include <limits>

#include "graph/content_hash.hpp"
#include "graph/text.hpp"

namespace dovetail {
namespace {
// Number::Op and Guard::Compare are the numbers that abi.h declares.
static_assert(int(DVT_N_INTEGER) == Number::integer && int(DVT_N_REAL) == Number::real &&
              int(DVT_N_SIZE) == Number::size && int(DVT_N_ATTRIBUTE) == Number::attribute &&
              int(DVT_N_ADD) == Number::add && int(DVT_N_SUBTRACT) == Number::subtract &&
              int(DVT_N_MULTIPLY) == Number::multiply && int(DVT_N_DIVIDE) == Number::divide &&
              int(DVT_N_FLOOR_DIVIDE) == Number::floor_divide && int(DVT_N_MODULO) == Number::modulo &&
              int(DVT_N_MINIMUM) == Number::minimum && int(DVT_N_MAXIMUM) == Number::maximum &&
              int(DVT_N_SHIFT_LEFT) == Number::shift_left && int(DVT_N_BIT_LENGTH) == Number::bit_length &&
              int(DVT_N_TO_REAL) == Number::to_real && int(DVT_N_FLOOR) == Number::floor &&
              int(DVT_N_CEIL) == Number::ceil && int(DVT_N_NEGATIVE) == Number::negative &&
              int(DVT_N_POWER) == Number::power && int(DVT_N_BIT_AND) == Number::bit_and &&
              int(DVT_N_BIT_OR) == Number::bit_or && int(DVT_N_BIT_XOR) == Number::bit_xor &&
              int(DVT_N_SHIFT_RIGHT) == Number::shift_right &&
              std::size(number_names) == size_t(DVT_N_SHIFT_RIGHT) + 1);
static_assert(int(DVT_G_EQUAL) == Guard::equal && int(DVT_G_NOT_EQUAL) == Guard::not_equal &&
              int(DVT_G_LESS) == Guard::less && int(DVT_G_LESS_EQUAL) == Guard::less_equal &&
              int(DVT_G_SAME) == Guard::same && std::size(compare_names) == size_t(DVT_G_SAME) + 1);

constexpr uint32_t kAbsent = std::numeric_limits<uint32_t>::max();
constexpr DLDevice kHost = {1, 0};  // kDLCPU

const char* name_or_null(const std::string& name) { return name.empty() ? nullptr : name.c_str(); }

void hash_numbers(Sha256& hash, std::initializer_list<int64_t> numbers) {
  for (const int64_t n : numbers) {
    uint8_t bytes[8];  // in an order that all machines share
    for (int i = 0; i < 8; ++i) bytes[i] = uint8_t(uint64_t(n) >> (56 - 8 * i));
    hash.update(bytes, sizeof bytes);
  }
}

uint64_t big_endian(const uint8_t* bytes) {
  uint64_t n = 0;
  for (int i = 0; i < 8; ++i) n = n << 8 | bytes[i];
  return n;
}
}  // namespace

CProgram::CProgram(std::shared_ptr<const Program> program) : CProgram(program, declared_types(*program)) {}
CProgram::CProgram(const Binding& hints, const Attrs* attrs)
    : CProgram(hints.program, symbolic_types(hints, attrs)) {}

CProgram::CProgram(std::shared_ptr<const Program> program, SymbolicTypes types, uint32_t flags, bool has_hash)
    : program_(std::move(program)), types_(std::move(types)) {
  number_values();
  describe_values();
  describe_symbols();
  describe_numbers();
  describe_guards();
  for (const auto& part : program_->programs) parts_.emplace(part.get(), std::make_unique<CProgram>(part));
  describe_nodes();
  std::vector<int> inputs;
  for (const Program::Input& input : program_->inputs) inputs.push_back(input.value);
  view_.struct_size = sizeof view_;
  view_.flags = flags | (types_.complete ? DVT_P_TYPED : 0);
  view_.n_values = uint32_t(values_.size()), view_.values = values_.data(), view_.info = info_.data();
  view_.n_nodes = uint32_t(nodes_.size()), view_.nodes = node_list_.data();
  view_.n_inputs = uint32_t(inputs.size()), view_.inputs = indices(inputs);
  view_.n_outputs = uint32_t(program_->outputs.size()), view_.outputs = indices(program_->outputs);
  view_.n_symbols = uint32_t(symbols_.size()), view_.symbols = symbols_.data();
  view_.n_numbers = uint32_t(numbers_.size()), view_.numbers = numbers_.data();
  view_.n_guards = uint32_t(guards_.size()), view_.guards = guards_.data();
  if (has_hash) set_hash();
}

void CProgram::number_values() {
  uint32_t next = 0;
  place_.assign(size_t(program_->n_values), kAbsent);
  for (const Program::Input& input : program_->inputs) place_[size_t(input.value)] = next++;
  for (const Program::Node& node : program_->nodes)
    for (uint32_t i = 0; i < node.n_out; ++i) place_[size_t(node.out) + i] = next++;
  for (const Program::Constant& c : program_->constants) place_[size_t(c.value)] = next++;
  for (const Program::Array& a : program_->arrays) place_[size_t(a.value)] = next++;
}

void CProgram::describe_values() {
  values_.resize(place_.size());
  info_.resize(
      place_.size(),
      {.flags = 0, .reserved0 = 0, .identity = 0, .number = -1, .reserved32 = 0, .name = nullptr, .reserved = {}});
  for (size_t v = 0; v < place_.size(); ++v) {
    SymbolicTypes::Type& type = types_.values[v];
    DLTensor& t = values_[place_[v]] = {};
    t.ndim = type.rank;
    t.dtype = type.dtype == DType::none ? DLDataType{DVT_ANY, 0, 1} : info(type.dtype).dl;
    t.shape = type.shape.data();
  }
  for (const Program::Input& input : program_->inputs) {
    dvt_value& value = info_[place_[size_t(input.value)]];
    value.name = name_or_null(input.name);
    if (input.is_scalar) value.flags = DVT_V_HOST_SCALAR;
  }
  for (const Program::Constant& c : program_->constants) {
    DLTensor& t = values_[place_[size_t(c.value)]];
    dvt_value& value = info_[place_[size_t(c.value)]];
    value.number = c.number;
    value.flags = c.number < 0 ? DVT_V_CONSTANT : DVT_V_NUMBER;
    if (c.number >= 0) continue;
    t.device = kHost;
    t.data = const_cast<std::byte*>(c.scalar.bits);  // DLPack's data is never const
  }
  for (const Program::Array& a : program_->arrays) {
    DLTensor& t = values_[place_[size_t(a.value)]];
    dvt_value& value = info_[place_[size_t(a.value)]];
    value.flags = DVT_V_CONSTANT | DVT_V_WEIGHT;
    value.name = name_or_null(a.name);
    t.device = kHost;
    t.data = const_cast<std::byte*>(a.elements.data);
  }
}

void CProgram::describe_symbols() {
  for (const SymbolicTypes::Symbol& s : types_.symbols)
    symbols_.push_back({.min = 0,
                        .max = std::numeric_limits<int64_t>::max(),
                        .multiple = 1,
                        .hint = s.hint,
                        .input = s.input,
                        .axis = s.axis,
                        .name = s.name.empty() ? nullptr : s.name.data(),
                        .reserved = {}});
}

void CProgram::describe_numbers() {
  for (const Number& n : program_->numbers) {
    dvt_number entry = {.op = n.op, .is_real = n.is_real, .a = n.a, .b = n.b, .value = {.i = n.i}, .reserved = {}};
    if (n.op == Number::size) entry.a = int32_t(place_[size_t(n.a)]);
    if (n.op == Number::real) entry.value.f = n.f;
    if (n.op == Number::integer) literals_.try_emplace(n.i, int64_t(numbers_.size()));
    numbers_.push_back(entry);
  }
}

int64_t CProgram::literal(int64_t i) {
  const auto [found, fresh] = literals_.try_emplace(i, int64_t(numbers_.size()));
  if (fresh)
    numbers_.push_back({.op = DVT_N_INTEGER, .is_real = 0, .a = -1, .b = -1, .value = {.i = i}, .reserved = {}});
  return found->second;
}

void CProgram::describe_guards() {
  for (const Guard& g : program_->guards)
    guards_.push_back({.compare = g.compare, .a = uint32_t(g.a), .b = uint32_t(g.b), .node = g.at, .reserved = {}});
}

void CProgram::describe_nodes() {
  nodes_.reserve(program_->nodes.size());
  for (const Program::Node& node : program_->nodes) {
    std::vector<dvt_attr>& attrs = attrs_.emplace_back();
    for (int i = 0; i < node.op->n_attr; ++i) attrs.push_back(attribute(node, i));
    std::vector<int> out;
    for (uint32_t i = 0; i < node.n_out; ++i) out.push_back(node.out + int(i));
    nodes_.push_back({.struct_size = sizeof(dvt_node),
                      .op_version = node.op->spec.version,
                      .op = node.op->kernel_name.c_str(),
                      .in = indices(node.in),
                      .out = indices(out),
                      .attr = attrs.data(),
                      .n_in = uint32_t(node.in.size()),
                      .n_out = uint32_t(out.size()),
                      .n_attr = uint32_t(attrs.size()),
                      .flags = 0,
                      .where = name_or_null(node.where)});
    node_list_.push_back(&nodes_.back());
  }
}

dvt_attr CProgram::attribute(const Program::Node& node, int i) {
  const dvt_attr& given = node.attrs.at[i];
  if (given.kind == DVT_A_PROGRAM) return {DVT_A_PROGRAM, 1, {.p = &parts_.at(&program_in(given))->view()}};
  std::vector<int64_t> entries;  // of a list; -1: a literal
  for (const Program::Slot& slot : node.slots) {
    if (slot.attr != i) continue;
    if (slot.element < 0)
      return {uint32_t(given.kind == DVT_A_F64 ? DVT_A_REAL : DVT_A_SIZE), 1, {.i = slot.number}};
    entries.resize(given.count, -1);
    entries[size_t(slot.element)] = slot.number;
  }
  if (entries.empty()) return given;
  for (size_t k = 0; k < entries.size(); ++k)
    if (entries[k] < 0) entries[k] = literal(given.v.is[k]);
  return {DVT_A_SIZES, given.count, {.is = int_lists_.emplace_back(std::move(entries)).data()}};
}

const uint32_t* CProgram::indices(const std::vector<int>& values) {
  std::vector<uint32_t>& made = indices_.emplace_back();
  for (const int v : values) made.push_back(v < 0 ? kAbsent : place_[size_t(v)]);
  return made.data();
}

void CProgram::set_hash() {
  Sha256::Digest digest = content_hash(to_json(*program_));
  if (types_.complete) {
    Sha256 typed;
    typed.update(digest.data(), digest.size());
    hash_numbers(typed, {view_.flags});
    for (const dvt_symbol& s : symbols_) hash_numbers(typed, {s.input, s.axis});
    for (size_t v = 0; v < values_.size(); ++v) {
      const DLTensor& t = values_[v];
      hash_numbers(typed, {info_[v].flags, t.dtype.code, t.dtype.bits, t.ndim});
      for (int axis = 0; axis < t.ndim; ++axis) hash_numbers(typed, {t.shape[axis]});
    }
    digest = typed.finish();
  }
  view_.hash[0] = big_endian(digest.data());
  view_.hash[1] = big_endian(digest.data() + 8);
}
}  // namespace dovetail
