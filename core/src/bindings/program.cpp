// Programs: recorded by the builder, read from files, run.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include "bindings/engines.hpp"
#include "bindings/interchange.hpp"
#include "device/timeline.hpp"
#include "device/trusted_images.hpp"
#include "dispatch/artefact.hpp"
#include "dispatch/decompose.hpp"
#include "dispatch/host_memory.hpp"
#include "dispatch/lower.hpp"
#include "dispatch/packed.hpp"
#include "dispatch/run_program.hpp"
#include "graph/file.hpp"
#include "graph/text.hpp"

namespace dovetail::bindings {
namespace {
using Size = std::variant<std::monostate, int64_t, std::string>;  // any; one; any, with a name

int input(ProgramBuilder& b, const py::object& dtype, const std::vector<Size>& shape, const std::string& name,
          const std::optional<std::vector<int64_t>>& sizes) {
  Program::Input declared{-1, to_dtype(dtype.ptr()), {}, name};
  std::vector<int64_t> of_trace;
  for (const Size& n : shape) {
    const auto* fixed = std::get_if<int64_t>(&n);
    const auto* named = std::get_if<std::string>(&n);
    declared.shape.push_back(fixed ? *fixed : -1);
    declared.size_names.push_back(named ? *named : std::string());
    of_trace.push_back(fixed ? *fixed : kSizeOfTrace);
  }
  return b.input(std::move(declared), sizes ? *sizes : of_trace);
}

py::list inputs(const RunnableProgram& p) {
  py::list all;
  for (const Program::Input& input : p.program().inputs) {
    py::tuple shape(input.shape.size());
    for (size_t axis = 0; axis < input.shape.size(); ++axis)
      if (const auto name = input.size_name(axis); !name.empty()) shape[axis] = py::str(std::string(name));
      else shape[axis] = input.shape[axis] < 0 ? py::object(py::none()) : py::int_(input.shape[axis]);
    const bool any = input.dtype == DType::none;
    all.append(py::make_tuple(input.name, any ? py::object(py::none()) : py::str(info(input.dtype).name), shape));
  }
  return all;
}

py::list outputs(const RunnableProgram& p) {
  py::list all;
  for (const RunnableProgram::Output& output : p.outputs()) {
    py::tuple shape(output.shape.size());
    for (size_t axis = 0; axis < output.shape.size(); ++axis)
      shape[axis] = output.shape[axis] < 0 ? py::object(py::none()) : py::int_(output.shape[axis]);
    all.append(py::make_tuple(info(output.dtype).name, shape));
  }
  return all;
}

// What inputs of these shapes are.
std::vector<TensorType> types_of_inputs(const Program& program, const std::vector<std::vector<int64_t>>& shapes) {
  if (shapes.size() != program.inputs.size())
    throw Error(ErrorKind::value, "[program] got shapes of " + std::to_string(shapes.size()) +
                                      " inputs: expected " + std::to_string(program.inputs.size()));
  std::vector<TensorType> inputs(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    inputs[i].dtype = program.inputs[i].dtype;
    inputs[i].set_shape(shapes[i]);
  }
  return inputs;
}

// In the order in which the text of a program numbers its values.
py::list types(const RunnableProgram& p, const std::vector<std::vector<int64_t>>& shapes,
               const std::vector<int64_t>& integers, const std::vector<double>& reals) {
  const Program& program = p.program();
  const std::vector<TensorType> inputs = types_of_inputs(program, shapes);
  std::vector<const TensorType*> in;
  for (const TensorType& t : inputs) in.push_back(&t);
  std::string why;
  const Attrs arguments = arguments_of_program(integers, reals);
  const auto bound = bind_program(p.shared(), in.data(), &arguments, nullptr, &why);
  if (!bound) throw Error(ErrorKind::value, "[program] " + why);
  py::list all;
  const auto add = [&](int value) {
    const TensorType& t = bound->values[size_t(value)];
    py::tuple shape(t.rank());
    for (int axis = 0; axis < t.rank(); ++axis) shape[axis] = t.size(axis);
    all.append(py::make_tuple(info(t.dtype).name, shape));
  };
  for (const Program::Input& input : program.inputs) add(input.value);
  for (const Program::Node& node : program.nodes)
    for (uint32_t k = 0; k < node.n_out; ++k) add(node.out + int(k));
  return all;
}

// (how, the kernel's engine, the message of what is missing) of each node.
py::list ways(const RunnableProgram& p, const py::object& device,
              const std::optional<std::vector<std::vector<int64_t>>>& shapes) {
  static constexpr const char* names[] = {"missing", "kernel", "decomposition", "core", "control"};
  Device& d = to_device(device.ptr());
  std::vector<NodeWay> found;
  {
    const GilRelease others_run;
    std::vector<TensorType> in;
    if (shapes) in = types_of_inputs(p.program(), *shapes);
    found = p.ways(d, shapes ? &in : nullptr);
  }
  py::list all;
  for (const NodeWay& way : found) all.append(py::make_tuple(names[way.how], way.engine, way.missing));
  return all;
}

// As dovetail.compile rewrites it.
std::shared_ptr<RunnableProgram> lowered(const RunnableProgram& p, const py::object& device,
                                         const std::vector<std::vector<int64_t>>& shapes, bool raise, bool eager) {
  Device& d = to_device(device.ptr());
  const GilRelease others_run;
  const std::vector<TensorType> inputs = types_of_inputs(p.program(), shapes);
  std::vector<const TensorType*> in;
  for (const TensorType& t : inputs) in.push_back(&t);
  const BroughtDecompositions brought(p.program());
  const LowerOptions options{.raise = raise && !eager, .fold = true, .never_grow = true};
  return std::make_shared<RunnableProgram>(
      lower(p.shared(), in.data(), Attrs(), d, options).program,
      eager ? RunnableProgram::Fuse::rounding_each : RunnableProgram::Fuse::yes);
}

void prepare(RunnableProgram& p, const py::object& device, const std::vector<std::vector<int64_t>>& shapes) {
  Device& d = to_device(device.ptr());
  const GilRelease others_run;
  p.prepare(d, types_of_inputs(p.program(), shapes));
}

// A donated array is left without elements.
std::vector<Tensor> take(const py::sequence& arrays, const std::vector<size_t>& donated) {
  std::vector<Tensor> operands;
  for (const py::handle x : arrays) {
    if (!is_array(x.ptr()))
      throw Error(ErrorKind::type, "[program] got " + shown(x.ptr()) + ": expected dovetail arrays");
    operands.push_back(tensor_of(x.ptr()));
  }
  for (const size_t i : donated) {
    if (i >= operands.size())
      throw Error(ErrorKind::index, "[program] donate " + std::to_string(i) + ": expected less than " +
                                        std::to_string(operands.size()) + ", the number of arrays");
    const Tensor& given = operands[i];
    constexpr int64_t none[] = {0};
    if (given.storage) tensor_of(py::object(arrays[i]).ptr()) = empty_tensor(given.dtype, none, *given.device);
  }
  return operands;
}

py::list run(RunnableProgram& p, const py::object& device, const py::sequence& arrays,
             const std::vector<size_t>& donated) {
  refuse_reentry();
  const ContextEngines engines;
  Device* const d = device.is_none() ? nullptr : &to_device(device.ptr());
  if (recording()) name_recorded_thread();
  std::vector<Tensor> operands = take(arrays, donated), made;
  {
    const GilRelease others_run;
    made = p.run(d, std::move(operands));
  }
  py::list results;
  for (Tensor& t : made) results.append(wrap(std::move(t)));
  return results;
}

std::shared_ptr<RunnableProgram> runnable(std::shared_ptr<const Program> program) {
  return std::make_shared<RunnableProgram>(std::move(program));
}
}  // namespace

void make_programs(py::module_& m) {
  py::class_<RunnableProgram, std::shared_ptr<RunnableProgram>>(
      m, "Program", "A graph of ops that runs on any device and for any sizes that it was made for.")
      .def("run", run, py::arg("device"), py::arg("arrays"), py::arg("donate") = std::vector<size_t>(),
           "The results for these arrays, on `device` (None: where they are). The memory of the arrays at the "
           "positions `donate` may become a result's; they are left without elements.")
      .def(
          "missing",
          [](RunnableProgram& p, const py::object& device) {
            Device& d = to_device(device.ptr());
            const GilRelease others_run;
            return p.missing(d);
          },
          "The message of the kernel that the device lacks; empty where the program runs on it.")
      .def("lowered", lowered, py::arg("device"), py::arg("shapes"), py::arg("raise_") = true,
           py::arg("eager") = false,
           "The program as the device runs it best, for inputs of all sizes for which it holds: calls of constants "
           "have run, where that makes nothing larger. raise: forms of ops become ops. eager: narrow floats are "
           "rounded "
           "after every op.")
      .def("prepare", prepare, py::arg("device"), py::arg("shapes"), "Looks up all that such runs need.")
      .def(
          "write_packs",
          [](RunnableProgram& p, const py::object& device, const std::filesystem::path& folder) {
            const PacksWritten written = write_packs(p, to_device(device.ptr()), folder.string());
            return py::make_tuple(written.count, written.bytes);
          },
          "(how many, their bytes) of the packed weights, which are a file of the folder then.")
      .def("ways", ways, py::arg("device"), py::arg("shapes") = py::none(),
           "How the device runs each node: (\"kernel\", \"decomposition\", \"core\", \"control\" or \"missing\", "
           "the "
           "kernel's engine, what is missing). None: for sizes that the program takes.")
      .def(
          "text", [](const RunnableProgram& p) { return to_json(p.program()).dump(); }, "The canonical JSON.")
      .def(
          "save",
          [](const RunnableProgram& p, const std::filesystem::path& path, bool portable,
             const std::vector<std::string>& weights) {
            const GilRelease others_run;  // the front end takes it to trace decompositions
            Program::Decompositions decompositions;
            if (portable) decompositions = collect_decompositions(p.shared());
            save_program(p.program(), path.string(), {weights, portable ? &decompositions : nullptr});
          },
          py::arg("path"), py::arg("portable") = false, py::arg("weights") = std::vector<std::string>(),
          "Writes a .dvt file; portable: with the decompositions of its calls. `weights`: safetensors files in its "
          "folder, whose tensors it names.")
      .def_property_readonly("inputs", inputs, "(name, dtype, shape) of each; a size is a number, a name or None.")
      .def_property_readonly(
          "has_arrays", [](const RunnableProgram& p) { return !p.program().arrays.empty(); },
          "Whether arrays are parts of it.")
      .def_property_readonly("outputs", outputs,
                             "(dtype, shape) of each; None: a size that depends on the inputs'.")
      .def_property_readonly(
          "arguments", [](const RunnableProgram& p) { return p.program().arguments; },
          "Names of the numbers that a call gives.")
      .def("types", types, py::arg("shapes"), py::arg("integers") = py::tuple(), py::arg("reals") = py::tuple(),
           "(dtype, shape) of each value, inputs first, then nodes' results, for inputs of these shapes.")
      .def_property_readonly("signature", [](const RunnableProgram& p) { return p.program().signature; });
  make_with_new(m.attr("Program"));
  m.def(
      "load_program",
      [](const std::filesystem::path& path) {
        const GilRelease others_run;
        return runnable(load_program(path.string()));
      },
      "Opens a .dvt file. Its arrays are read from the file when they are first used: the file must stay as it is. "
      "Where it is cut off later, the process ends by the signal SIGBUS.");
  m.def(
      "open_artefact",
      [](const std::filesystem::path& path, const py::object& device, bool trust_code) {
        Device& d = to_device(device.ptr());
        const GilRelease others_run;
        return std::shared_ptr<RunnableProgram>(open_artefact(path.string(), d, trust_code));
      },
      py::arg("path"), py::arg("device"), py::arg("trust_code") = false,
      "A folder that dovetail build made, or a .dvt file, to run on the device.");
  m.def("record_images", record_images, "Keeps the machine code that compilers get from now on, for write_code.");
  m.def(
      "write_code",
      [](const std::filesystem::path& folder) {
        const CodeWritten written = write_code(folder.string());
        return py::make_tuple(written.count, written.bytes);
      },
      "(how many, their bytes) of the images, which are files of the folder's subfolder then.");
  m.def(
      "saved_packs",
      [] {
        const SavedPackCounts counts = saved_pack_counts();
        return py::make_tuple(counts.taken, counts.stale, counts.damaged);
      },
      "(taken, stale, damaged): packed weights of files that kernels of this process took, or that were packed "
      "anew, "
      "as they are of other kernels, or not the bytes that were saved.");
  m.def(
      "verify_program",
      [](const std::filesystem::path& path) {
        VerifiedFile found;
        {
          const GilRelease others_run;
          found = verify_program_file(path.string());
        }
        return py::make_tuple(found.tensors, found.bytes, found.without_hash, found.wrong);
      },
      "Reads all tensors of a .dvt file: (how many were compared with their hashes, their bytes, names of those "
      "that "
      "have none, names of those that differ).");
  m.def(
      "program_from_text", [](const std::string& text) { return runnable(program_of(parse_json(text))); },
      "A program without arrays from its JSON.");
  auto builder =
      py::reinterpret_borrow<py::class_<ProgramBuilder, std::shared_ptr<ProgramBuilder>>>(m.attr("ProgramBuilder"));
  builder
      .def("input", input, py::arg("dtype"), py::arg("shape"), py::arg("name") = "", py::arg("sizes") = py::none(),
           "An input's number. A size is a number, None (any) or a name; `sizes`: those of the trace.")
      .def(
          "array_constant",
          [](ProgramBuilder& b, const Tensor& x, const std::string& name) { return b.array(elements_of(x), name); },
          py::arg("array"), py::arg("name") = "", "An array as a part of the program.")
      .def(
          "arrays_of",
          [](ProgramBuilder& b, const RunnableProgram& p) {
            std::vector<int> values;
            for (const Program::Array& a : p.program().arrays) values.push_back(b.array(a.elements, a.name));
            return values;
          },
          "The arrays of a program as parts of this one.")
      .def(
          "inline",
          [](ProgramBuilder& b, const RunnableProgram& p, const std::vector<int>& operands,
             const std::vector<int>& arrays) { return p.record_in(b, operands, &arrays); },
          py::arg("program"), py::arg("operands"), py::arg("arrays"),
          "Records the calls of a program on these values; returns its outputs' numbers. `arrays`: from arrays_of, "
          "perhaps of the builder around this one.")
      .def(
          "finish",
          [](ProgramBuilder& b, const std::vector<int>& outputs, std::string signature) {
            return runnable(b.finish(outputs, std::move(signature)));
          },
          py::arg("outputs"), py::arg("signature") = "", "The program; the builder is at its end.");
  make_with_new(builder, py::cpp_function([] { return std::make_shared<ProgramBuilder>(); }));
}
}  // namespace dovetail::bindings
