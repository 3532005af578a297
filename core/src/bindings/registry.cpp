// The registry's functions for Python: ops, kernel rows, fallback.
#include <pybind11/stl.h>

#include "bindings/array.hpp"
#include "dispatch/execute.hpp"
#include "dispatch/rows.hpp"
#include "rules/rules.hpp"

namespace dovetail::bindings {
namespace {
constexpr std::pair<const char*, ParamKind> param_kinds[] = {
    {"value", ParamKind::value},     {"mask", ParamKind::mask},     {"index", ParamKind::index},
    {"raw", ParamKind::raw},         {"i64", ParamKind::i64},       {"f64", ParamKind::f64},
    {"boolean", ParamKind::boolean}, {"str", ParamKind::str},       {"i64s", ParamKind::i64s},
    {"dtype", ParamKind::dtype},     {"scalar", ParamKind::scalar}, {"program", ParamKind::program}};
constexpr std::pair<const char*, uint32_t> op_flags[] = {{"half_in_f32", op_half_in_f32},
                                                         {"decomposition", op_has_decomposition},
                                                         {"complex_decomposition", op_complex_decomposition},
                                                         {"stored_decomposition", op_stored_decomposition},
                                                         {"must", op_must},
                                                         {"private", op_private},
                                                         {"view", op_view},
                                                         {"set_slice", op_set_slice},
                                                         {"converts", op_converts},
                                                         {"identity_on_ints", op_identity_on_ints},
                                                         {"integer_exponent", op_integer_exponent},
                                                         {"loop", op_loop},
                                                         {"branch", op_branch},
                                                         {"while", op_while},
                                                         {"scan", op_scan},
                                                         {"autocast_lower", op_autocast_lower},
                                                         {"autocast_float32", op_autocast_float32}};

ParamKind param_kind(const std::string& name) {
  for (auto& [known, kind] : param_kinds)
    if (name == known) return kind;
  throw Error(ErrorKind::value, "[register_op] there is no parameter kind '" + name + "'");
}
const char* name_of(ParamKind kind) {
  for (auto& [known, k] : param_kinds)
    if (kind == k) return known;
  return "?";
}

// A default from dovetail.schema: the class of the Python value decides its kind; Ellipsis means no default.
AttrDefault default_from(const py::object& o) {
  AttrDefault d;
  if (o.is(py::ellipsis())) return d;
  if (o.is_none()) d.kind = AttrDefault::none;
  else if (PyBool_Check(o.ptr())) d.kind = AttrDefault::boolean, d.i = o.cast<bool>();
  else if (PyLong_Check(o.ptr())) d.kind = AttrDefault::i64, d.i = o.cast<int64_t>();
  else if (PyFloat_Check(o.ptr())) d.kind = AttrDefault::f64, d.f = o.cast<double>();
  else if (PyUnicode_Check(o.ptr())) d.kind = AttrDefault::str, d.s = o.cast<std::string>();
  else d.kind = AttrDefault::i64s, d.is = o.cast<std::vector<int64_t>>();
  return d;
}
py::object register_from(const py::dict& d) {
  OpSpec spec;
  spec.name = d["name"].cast<std::string>();
  spec.version = d["version"].cast<uint32_t>();
  spec.space = d["space"].cast<std::string>();
  spec.shape = d["shape"].cast<std::string>();
  spec.dtype = d["dtype"].cast<std::string>();
  spec.n_out = d["n_out"].cast<uint32_t>();
  spec.tol = d["tol"].cast<float>();
  spec.doc = d["doc"].cast<std::string>();
  for (const py::handle flag : d["flags"])
    for (auto& [name, bit] : op_flags)
      if (flag.cast<std::string>() == name) spec.flags |= bit;
  for (const py::handle h : d["params"]) {
    const auto p = py::reinterpret_borrow<py::dict>(h);
    spec.params.push_back({.name = p["name"].cast<std::string>(),
                           .kind = param_kind(p["kind"].cast<std::string>()),
                           .optional = p["optional"].cast<bool>(),
                           .variadic = p["variadic"].cast<bool>(),
                           .keyword_only = p["keyword_only"].cast<bool>(),
                           .fallback = default_from(p["default"]),
                           .since = p["since"].cast<uint32_t>()});
  }
  return op_function(register_op(std::move(spec)));
}

py::dict describe(const Op& o) {
  const OpSpec& s = o.spec;
  py::list params;
  for (const ParamSpec& p : s.params)
    params.append(py::dict(py::arg("name") = p.name, py::arg("kind") = name_of(p.kind),
                           py::arg("optional") = p.optional, py::arg("variadic") = p.variadic,
                           py::arg("keyword_only") = p.keyword_only, py::arg("since") = p.since,
                           py::arg("default") = default_object(p.fallback)));
  py::dict d(py::arg("name") = s.name, py::arg("version") = s.version, py::arg("space") = s.space,
             py::arg("shape") = s.shape, py::arg("dtype") = s.dtype, py::arg("params") = params,
             py::arg("n_in") = o.n_in, py::arg("n_out") = s.n_out, py::arg("tol") = s.tol, py::arg("doc") = s.doc);
  for (auto& [name, bit] : op_flags) d[name] = bool(s.flags & bit);
  return d;
}

std::string brief(DLDataType dl) {
  if (dl.code == DVT_ANY) return dl.bits ? "any" + std::to_string(dl.bits) : "any";
  const auto t = dtype_of(dl);
  return t ? info(*t).brief : "code" + std::to_string(dl.code) + "x" + std::to_string(dl.bits);
}

py::list rows_of(const std::string& name) {
  const Device* device = find_device(name);
  if (!device) throw Error(ErrorKind::value, "there is no device '" + name + "'");
  py::list rows;
  for (const dvt_kernel* row : kernel_table(*device)) {
    const dvt_kernel& k = *row;
    py::list inputs, outputs, flags;
    for (uint32_t j = 0; j < k.n_in + k.n_out; ++j)
      (j < k.n_in ? inputs : outputs).append(brief(k.operands[j].dtype));
    if (k.flags & DVT_K_CAPTURE_SAFE) flags.append("capture_safe");
    if (k.flags & DVT_K_BITWISE_DETERMINISTIC) flags.append("deterministic");
    if (k.flags & DVT_K_FLUSHES_SUBNORMALS) flags.append("flushes_subnormals");
    const std::string op = k.op;
    rows.append(py::dict(py::arg("op") = str_of(op.rfind("dvt.", 0) == 0 ? op.substr(4) : op),
                         py::arg("op_version") = k.op_version,
                         py::arg("engine") = k.engine ? py::object(str_of(k.engine)) : py::none(),
                         py::arg("inputs") = inputs, py::arg("outputs") = outputs, py::arg("flags") = flags,
                         py::arg("max_ulp") = k.max_ulp, py::arg("queries") = bool(DVT_HAS(row, dvt_kernel, query)),
                         py::arg("packs") = bool(DVT_HAS(row, dvt_kernel, pack))));
  }
  return rows;
}

// For each dtype, how the op runs on the device: "native", "decomposition", "f32" (in float32), "core" or "none";
// and whether it casts first. A dtype that the op's rule refuses is absent.
py::dict support_of(const std::string& device, const std::string& name) {
  static constexpr const char* words[] = {"native",        "core", "core", "core",
                                          "decomposition", "f32",  "none"};  // by Plan::Mode
  const Device* d = find_device(device);
  if (!d) throw Error(ErrorKind::value, "there is no device '" + device + "'");
  py::dict found;
  for (int t = 0; t < kDTypes; ++t)
    if (const auto s = support(op(name), *d, DType(t)))
      found[info(DType(t)).brief] = py::make_tuple(words[s->mode], s->cast);
  return found;
}

// Adds a kernel row to one device, from the address of a dvt_kernel that lives as long as the process.
void add_kernel_at(const std::string& device, uintptr_t address) {
  Device* d = find_device(device);
  if (!d) throw Error(ErrorKind::value, "there is no device '" + device + "'");
  add_kernel(*d, reinterpret_cast<const dvt_kernel*>(address));
}
}  // namespace

py::object default_object(const AttrDefault& d) {
  switch (d.kind) {
    case AttrDefault::required: return py::ellipsis();
    case AttrDefault::none: return py::none();
    case AttrDefault::i64: return py::int_(d.i);
    case AttrDefault::f64: return py::float_(d.f);
    case AttrDefault::boolean: return py::bool_(d.i != 0);
    case AttrDefault::str: return py::str(d.s);
    default: return py::tuple(py::cast(d.is));
  }
}

void make_registry(py::module_& m) {
  m.def("register_op", register_from,
        "Registers an op from its description; returns the function. dovetail.schema calls it.");
  m.def("ops", [] {
    py::list ops;
    for (const Op* o : all_ops()) ops.append(describe(*o));
    return ops;
  });
  m.def("describe_op", [](const py::str& name) { return describe(op(utf8(name.ptr()))); });
  m.def("op_function", [](const py::str& name) { return op_function(op(utf8(name.ptr()))); });
  m.def(
      "op_names",
      [](const std::string& space) {
        std::vector<std::string> names;
        for (const Op* o : all_ops())
          if (o->spec.space == space && !(o->spec.flags & op_private)) names.push_back(o->spec.name);
        return names;
      },
      "Names of the public ops of a namespace.");
  m.def("kernel_table", rows_of);
  m.def("support", support_of);
  m.def("add_kernel", add_kernel_at);
  m.def("declined_calls", [](const py::str& name) { return declined_calls(op(utf8(name.ptr()))); });
  m.def("serve_declined", serve_declined);
  m.def("set_fallback", [](const py::str& given) {
    const std::string mode = utf8(given.ptr());
    static constexpr const char* modes[] = {"error", "warn", "allow"};
    for (int i = 0; i < 3; ++i)
      if (mode == modes[i]) return set_fallback(Fallback(i));
    throw Error(ErrorKind::value,
                "[fallback] there is no mode '" + mode + "': expected 'error', 'warn' or 'allow'");
  });
  m.def("fallback", [] {
    return std::string(fallback() == Fallback::error ? "error" : fallback() == Fallback::warn ? "warn" : "allow");
  });
  m.def(
      "fallback_report",
      [](bool reset) {
        py::list report;
        for (const FallbackCount& c : fallback_report(reset))
          report.append(py::dict(py::arg("op") = c.op, py::arg("device") = c.device, py::arg("calls") = c.calls));
        return report;
      },
      py::arg("reset") = false);
}
}  // namespace dovetail::bindings
