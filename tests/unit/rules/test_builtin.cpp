// The schema's ops match the rules: names, views, and the attributes that a rule reads.
#include <algorithm>
#include <map>

#include "call.hpp"

namespace dovetail {
namespace {
const std::map<std::string, std::vector<const char*>> attributes = {
    {"from_shape", {"shape"}},
    {"iota", {"size"}},
    {"linspace", {"num"}},
    {"arange", {"start", "stop", "step"}},
    {"eye", {"n_rows", "n_cols"}},
    {"reduce", {"axis", "keepdims"}},
    {"arg_reduce", {"axis", "keepdims"}},
    {"along_axis", {"axis"}},
    {"top_k", {"k", "axis", "mode"}},
    {"scan", {"axis", "include_initial"}},
    {"flip", {"axis"}},
    {"roll", {"shift", "axis"}},
    {"diff", {"axis", "n"}},
    {"take", {"axis"}},
    {"take_along_axis", {"axis"}},
    {"scatter", {"axis", "mode"}},
    {"segment_sum", {"num_segments"}},
    {"dynamic_slice", {"sizes", "axis"}},
    {"dynamic_slice_axis", {"size", "axis"}},
    {"dynamic_update_slice", {"axis"}},
    {"one_hot", {"num_classes"}},
    {"concat", {"axis"}},
    {"stack", {"axis"}},
    {"repeat", {"repeats", "axis"}},
    {"tile", {"repetitions"}},
    {"pad", {"pad_width"}},
    {"reshape", {"shape"}},
    {"permute_dims", {"axes"}},
    {"expand_dims", {"axis"}},
    {"squeeze", {"axis"}},
    {"broadcast_to", {"shape"}},
    {"moveaxis", {"source", "destination"}},
    {"bitcast", {"dtype"}},
    {"slice", {"start", "stop", "step"}},
    {"set_slice", {"start", "stop", "step"}},
    {"diagonal", {"offset"}},
    {"vecdot", {"axis"}},
    {"layer_norm", {"normalized_shape", "eps"}},
    {"batch_norm", {"eps"}},
    {"cross_entropy", {"reduction"}},
    {"attention", {"is_causal", "scale", "enable_gqa"}},
    {"conv", {"stride", "padding", "dilation", "groups"}},
    {"pool", {"kernel_size", "stride", "padding"}},
};

TEST(every_builtin_op_has_its_rules) {
  CHECK(all_ops().size() > 100);
  for (const Op* registered : all_ops()) {
    const OpSpec& op = registered->spec;
    CHECK_EQ(std::string(rules::shape_rule(op.shape).name), op.shape);
    CHECK_EQ(std::string(rules::dtype_rule(op.dtype).name), op.dtype);
    if (op.flags & op_view) CHECK(rules::view(op.shape) != nullptr);
    const auto needed = attributes.find(op.shape);
    if (needed == attributes.end()) continue;
    for (const std::string name : needed->second) {
      const auto has = [&](const ParamSpec& p) { return !is_operand(p.kind) && p.name == name; };
      check::that(std::any_of(op.params.begin(), op.params.end(), has), __FILE__, __LINE__,
                  op.name + " lacks " + name);
    }
  }
}
}  // namespace
}  // namespace dovetail
CHECK_MAIN
