// Programs in the form of abi.h by hand, for tests of what reads them.
#pragma once
#include <deque>
#include <initializer_list>
#include <limits>
#include <vector>

#include "dovetail/abi.h"
#include "dovetail/backend.hpp"

// The values of a built program are numbered in the order in which they are added. A size below 0 is the symbol -1
// - size.
class ProgramBuilder {
 public:
  using Sizes = std::vector<int64_t>;

  uint32_t input(DLDataType type, Sizes shape) {
    inputs_.push_back(value(type, std::move(shape), 0));
    return inputs_.back();
  }
  template <class T>
  uint32_t constant(T x) {
    auto& bytes = bytes_.emplace_back(sizeof x);
    std::memcpy(bytes.data(), &x, sizeof x);
    const uint32_t v = value(dvt::dtype_of<T>(), {}, DVT_V_CONSTANT);
    values_[v].data = bytes.data(), values_[v].device = {1, 0};
    return v;
  }
  uint32_t number(DLDataType type, int32_t entry) {
    const uint32_t v = value(type, {}, DVT_V_NUMBER);
    info_[v].number = entry;
    return v;
  }
  uint32_t node(const char* op, std::initializer_list<uint32_t> in, DLDataType type, Sizes shape,
                std::initializer_list<dvt_attr> attrs = {}) {
    const uint32_t out = value(type, std::move(shape), 0);
    const auto& its_in = indices_.emplace_back(in);
    const auto& its_out = indices_.emplace_back(std::vector<uint32_t>{out});
    const auto& its_attrs = attrs_.emplace_back(attrs);
    nodes_.push_back({sizeof(dvt_node), 1, op, its_in.data(), its_out.data(), its_attrs.data(),
                      uint32_t(its_in.size()), 1, uint32_t(its_attrs.size()), 0, nullptr});
    return out;
  }
  // sum, mean, max or min along an axis.
  uint32_t reduce(const char* op, uint32_t x, bool keepdims = true, int64_t axis = -1) {
    Sizes shape = shapes_[x];
    const auto at = shape.begin() + (axis < 0 ? axis + int64_t(shape.size()) : axis);
    if (keepdims) *at = 1;
    else shape.erase(at);
    dvt_attr axes{DVT_A_I64S, 1, {}};
    axes.v.is = &axes_.emplace_back(axis);
    dvt_attr keep{DVT_A_BOOL, 1, {}}, none{};
    keep.v.i = keepdims;
    if (!std::strcmp(op, "dvt.sum")) return node(op, {x}, values_[x].dtype, shape, {axes, none, keep});
    return node(op, {x}, values_[x].dtype, shape, {axes, keep});
  }
  void output(uint32_t v) { outputs_.push_back(v); }
  uint32_t symbol(int64_t hint) {
    symbols_.push_back({0, std::numeric_limits<int64_t>::max(), 1, hint, -1, -1, nullptr, {}});
    return uint32_t(symbols_.size() - 1);
  }
  uint32_t flags = DVT_P_TYPED;

  // Valid until the builder changes.
  const dvt_program& view() {
    list_.clear();
    for (const dvt_node& n : nodes_) list_.push_back(&n);
    program_ = {};
    program_.struct_size = sizeof program_, program_.flags = flags;
    program_.n_values = uint32_t(values_.size()), program_.values = values_.data(), program_.info = info_.data();
    program_.n_nodes = uint32_t(list_.size()), program_.nodes = list_.data();
    program_.n_inputs = uint32_t(inputs_.size()), program_.inputs = inputs_.data();
    program_.n_outputs = uint32_t(outputs_.size()), program_.outputs = outputs_.data();
    program_.n_symbols = uint32_t(symbols_.size()), program_.symbols = symbols_.data();
    return program_;
  }

 private:
  uint32_t value(DLDataType type, Sizes shape, uint32_t flags_of_it) {
    shapes_.push_back(std::move(shape));
    Sizes& its = shapes_.back();
    values_.push_back({nullptr, {1, 0}, int32_t(its.size()), type, its.data(), nullptr, 0});
    info_.push_back({flags_of_it, 0, 0, -1, 0, nullptr, {}});
    return uint32_t(values_.size() - 1);
  }
  std::deque<Sizes> shapes_;
  std::deque<std::vector<char>> bytes_;
  std::deque<std::vector<uint32_t>> indices_;
  std::deque<std::vector<dvt_attr>> attrs_;
  std::deque<int64_t> axes_;
  std::deque<dvt_node> nodes_;
  std::vector<DLTensor> values_;
  std::vector<dvt_value> info_;
  std::vector<const dvt_node*> list_;
  std::vector<uint32_t> inputs_, outputs_;
  std::vector<dvt_symbol> symbols_;
  dvt_program program_{};
};
