#include "device/handshake.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "types/op_spec.hpp"

#ifndef DOVETAIL_VERSION
#error "the build defines DOVETAIL_VERSION from the file VERSION"
#endif

namespace dovetail {
namespace {
constexpr uint64_t kMaxKernels = 1 << 20;  // more is memory that was never written
constexpr uint64_t kMaxAlign = 1 << 30;

// A plugin's text, shortened to one line for a message.
std::string quoted(const char* text) {
  std::string shown(text, strnlen(text, 64));
  if (text[shown.size()]) shown += "...";
  for (char& c : shown)
    if (std::iscntrl(static_cast<unsigned char>(c))) c = '?';
  return "'" + shown + "'";
}

bool is_line(const char* text, size_t most) {
  const size_t size = strnlen(text, most + 1);
  return size <= most && std::none_of(text, text + size, [](unsigned char c) { return std::iscntrl(c); });
}
bool is_word(const char* text) { return *text && is_line(text, 128) && !std::strchr(text, ' '); }

template <class Table>
void check_versions(const Table& table, const std::string& name) {
  if (table.abi_major != DVT_ABI_MAJOR)
    refuse("built for version " + std::to_string(table.abi_major) +
               " of the device protocol, this dovetail speaks version " + std::to_string(DVT_ABI_MAJOR),
           cure_for_versions(name));
  if (table.abi_draft)
    refuse("built for draft " + std::to_string(table.abi_draft) +
               " of the device protocol, this dovetail speaks its final version " + std::to_string(DVT_ABI_MAJOR),
           cure_for_versions(name));
}

void check_name(const char* name) {
  const bool sane = name && *name && !std::isdigit(static_cast<unsigned char>(*name)) && strnlen(name, 64) < 64 &&
                    std::all_of(
                        name, name + std::strlen(name),
                        [](unsigned char c) { return std::islower(c) || std::isdigit(c) || c == '_'; });
  if (!sane)
    refuse(std::string("its name is ") + (name ? quoted(name) : "missing") +
           ": expected at most 63 lower-case letters, digits and _");
}

template <class Table>
void check_texts(const Table& table) {
  const auto require_line = [](const char* member, const char* text, size_t most) {
    if (text && !is_line(text, most))
      refuse(std::string("its ") + member + " is " + quoted(text) + ": expected one line of at most " +
             std::to_string(most) + " bytes");
  };
  require_line("version", table.version, 64);
  require_line("build_info", table.build_info, 4096);
}

void check_members(const dvt_backend& table) {
  const auto require = [](const char* member, auto* function) {
    if (!function) refuse(std::string("its table has no ") + member);
  };
  require("device_count", table.device_count);
  require("device_open", table.device_open);
  require("device_close", table.device_close);
  require("device_props", table.device_props);
  require("alloc", table.alloc);
  require("dealloc", table.dealloc);
  require("copy", table.copy);
  if (!DVT_HAS(&table, dvt_backend, streams)) return;
  const dvt_streams* s = table.streams;
  if (!DVT_HAS(s, dvt_streams, create) || !DVT_HAS(s, dvt_streams, destroy) || !DVT_HAS(s, dvt_streams, sync) ||
      !DVT_HAS(s, dvt_streams, ev_create) || !DVT_HAS(s, dvt_streams, ev_destroy) ||
      !DVT_HAS(s, dvt_streams, ev_record) || !DVT_HAS(s, dvt_streams, ev_wait) ||
      !DVT_HAS(s, dvt_streams, ev_sync) || !DVT_HAS(s, dvt_streams, ev_query))
    refuse("its streams lack a function: expected all from create to ev_query");
}

// The error in a row; empty if there is none. `newer`: reserved members may have a meaning that this host lacks.
std::string fault_of(const dvt_kernel& row, bool newer) {
  if (row.struct_size < offsetof(dvt_kernel, query)) return "its struct_size ends before run";
  if (!row.op || !is_word(row.op) || !std::strchr(row.op, '.'))
    return "op: expected a name with a prefix, as \"dvt.add\"";
  if (row.engine && !is_word(row.engine))
    return "its engine is " + quoted(row.engine) + ": expected NULL or a name";
  if (row.engine && row.engine == kMathEngine)
    return "its engine is 'math', which is what the op's decomposition is called: expected another name";
  if (!row.run) return "run is missing";
  if (!row.op_version) return "op_version: expected 1 or more";
  if (row.n_in > kMaxInputs || row.n_out < 1 || row.n_out > kMaxOutputs)
    return std::to_string(row.n_in) + " inputs and " + std::to_string(row.n_out) + " outputs: expected at most " +
           std::to_string(kMaxInputs) + " and 1 to " + std::to_string(kMaxOutputs);
  if (!row.operands) return "operands are missing";
  const bool packs = DVT_HAS(&row, dvt_kernel, pack);
  if (packs != bool(DVT_HAS(&row, dvt_kernel, pack_size))) return "pack and pack_size: expected both or neither";
  bool packable = false;
  for (uint32_t i = 0; i < row.n_in + row.n_out; ++i) {
    const dvt_operand& o = row.operands[i];
    const std::string which = "operand " + std::to_string(i) + ": ";
    if (o.dtype.lanes != 1 || (o.dtype.code != DVT_ANY && !o.dtype.bits)) return which + "its dtype is none";
    if ((o.flags & DVT_O_VARIADIC) && i + 1 != row.n_in) return which + "only the last input may be variadic";
    if ((o.flags & (DVT_O_HOST_SCALAR | DVT_O_ALIAS | DVT_O_PACKABLE)) && i >= row.n_in)
      return which + "an output with a flag of inputs";
    if (o.align_log2 > 20) return which + "an alignment of 2 to the " + std::to_string(o.align_log2);
    if (o.reserved && !newer) return which + "reserved is " + std::to_string(o.reserved) + ": expected 0";
    packable |= o.flags & DVT_O_PACKABLE;
  }
  if (packs != packable)
    return packs ? "pack without an operand that is DVT_O_PACKABLE" : "DVT_O_PACKABLE without pack";
  return {};
}

template <class Table>
void check_rows(const Table& table) {
  if (table.n_kernels > kMaxKernels)
    refuse("its table declares " + std::to_string(table.n_kernels) + " kernels: expected at most " +
           std::to_string(kMaxKernels));
  if (table.n_kernels && !table.kernels)
    refuse("its table declares " + std::to_string(table.n_kernels) + " kernels and has none");
  for (uint64_t i = 0; i < table.n_kernels; ++i) {
    const dvt_kernel* row = table.kernels[i];
    const std::string fault = row ? fault_of(*row, table.abi_minor > DVT_ABI_MINOR) : "it is missing";
    if (fault.empty()) continue;
    const bool named = row && row->struct_size >= offsetof(dvt_kernel, engine) && row->op;
    refuse("row " + std::to_string(i) + " of its kernel table" + (named ? " " + quoted(row->op) : "") + ": " +
           fault);
  }
}

// Checks the common beginning of backends' and kernel packs' tables. `required`: the size of the required part.
template <class Table>
void check_opening(const Table* table, const std::string& name, const char* entry, size_t required) {
  if (!table) refuse(std::string(entry) + " gives no table");
  if (table->struct_size < offsetof(Table, name))
    refuse("its table has a struct_size of " + std::to_string(table->struct_size));
  check_versions(*table, name);
  if (table->struct_size < required)
    refuse("its table ends before its required members: struct_size is " + std::to_string(table->struct_size));
  check_name(table->name);
  if (!name.empty() && name != table->name)
    refuse("it is registered as '" + name + "' and calls itself '" + table->name + "'");
  check_texts(*table);
}
}  // namespace

void refuse(const std::string& cause, const std::string& cure) { throw Error(ErrorKind::runtime, cause, cure); }

std::string cure_for_versions(const std::string& name) {
  const std::string package = name.empty() ? "the plugin" : "the dovetail-" + name;
  return "install " + package + " built for dovetail " DOVETAIL_VERSION ", or rebuild it";
}

std::string check_table(const dvt_backend* table, const std::string& name) {
  check_opening(table, name, "dvt_backend_v1", offsetof(dvt_backend, mem_info));
  check_members(*table);
  check_rows(*table);
  return table->name;
}

std::string check_pack(const dvt_kernel_pack* pack, const std::string& name) {
  check_opening(pack, name, "dvt_kernels_v1", offsetof(dvt_kernel_pack, n_kernels) + sizeof pack->n_kernels);
  check_rows(*pack);
  return pack->name;
}

void check_props(dvt_props& props) {
  props.name[sizeof props.name - 1] = props.arch[sizeof props.arch - 1] = '\0';
  props.uuid[sizeof props.uuid - 1] = props.pci[sizeof props.pci - 1] = '\0';
  for (char* text : {props.name, props.arch, props.uuid, props.pci})
    for (; *text; ++text)
      if (std::iscntrl(static_cast<unsigned char>(*text))) *text = ' ';
  if (props.alloc_align < 64 || props.alloc_align > kMaxAlign || props.alloc_align & (props.alloc_align - 1))
    refuse("device_props: alloc_align is " + std::to_string(props.alloc_align) +
           ": expected a power of two from 64 to 2^30");
  if (props.dl_device_type <= 0)
    refuse("device_props: dl_device_type is " + std::to_string(props.dl_device_type) +
           ": expected DLPack's number for this kind of device, or 12 (kDLExtDev)");
  props.n_peaks = std::min<uint32_t>(props.n_peaks, std::size(props.peaks));
}
}  // namespace dovetail
