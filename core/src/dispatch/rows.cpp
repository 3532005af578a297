// Kernel rows by device and name.
#include "dispatch/rows.hpp"

#include <map>
#include <mutex>
#include <set>
#include <unordered_map>

#include "dispatch/plan.hpp"
#include "text.hpp"

namespace dovetail {
namespace {
struct Rows {
  std::mutex mutex;
  // By device and kernel name; those added at run time come first.
  std::map<std::pair<int, std::string>, std::vector<const dvt_kernel*>> added;
  std::unordered_map<const Backend*, std::unordered_map<std::string, std::vector<const dvt_kernel*>>> tables;
};

Rows& all_rows() {
  static Rows* const rows = [] {  // never destroyed: plans are used until the process ends
    auto* made = new Rows;
    survive_forks();
    return made;
  }();
  return *rows;
}

// Rows of ops that are not Dovetail's may wait for an op that is registered later. Users write "nn.softmax" for
// dvt.softmax, so that name is none of another's.
std::vector<std::string> note_unknown_ops(std::span<const dvt_kernel* const> rows) {
  static constexpr std::string_view own = "dvt.";
  const std::vector<const Op*> ops = all_ops();
  std::set<std::string, std::less<>> prefixes{std::string(own)};
  for (const Op* op : ops)
    if (op->kernel_name.starts_with(own)) prefixes.insert(op->spec.space + ".");
  std::set<std::string> unknown;
  for (const dvt_kernel* row : rows) {
    const std::string_view name = row->op;
    if (prefixes.contains(name.substr(0, name.find('.') + 1)) &&
        !find_op(std::string(name.starts_with(own) ? name.substr(own.size()) : name)))
      unknown.emplace(name);
  }
  std::vector<std::string> known, notes;
  if (unknown.empty()) return notes;
  for (const Op* op : ops) known.push_back(op->kernel_name);
  for (const std::string& name : unknown)
    notes.push_back("its row \"" + name + "\" is never used: there is no such op" +
                    did_you_mean(std::string(own) + name.substr(name.rfind('.') + 1), known));
  return notes;
}

const bool hooked = [] { return row_hooks = {check_row, add_kernels, note_unknown_ops}, true; }();
}  // namespace

void lock_rows() { all_rows().mutex.lock(); }
void unlock_rows() { all_rows().mutex.unlock(); }

std::vector<const dvt_kernel*> kernel_rows(const Device& device, const std::string& name) {
  Rows& r = all_rows();
  std::lock_guard lock(r.mutex);
  auto [entry, fresh] = r.tables.try_emplace(device.backend);
  if (fresh)
    for (uint64_t i = 0; i < device.backend->table->n_kernels; ++i) {
      const dvt_kernel* row = device.backend->table->kernels[i];
      entry->second[row->op].push_back(row);
    }
  std::vector<const dvt_kernel*> rows;
  if (auto own = r.added.find({device.index, name}); own != r.added.end()) rows = own->second;
  if (auto own = entry->second.find(name); own != entry->second.end())
    rows.insert(rows.end(), own->second.begin(), own->second.end());
  return rows;
}

void check_row(const dvt_kernel& row, const Device& device) {
  const auto refuse = [&](const std::string& why) {
    const std::string name = row.op, prefix = "dvt.";
    throw Error(
        ErrorKind::runtime,
        "[" + (name.rfind(prefix, 0) ? name : name.substr(prefix.size())) + "] " + device.name + "'s kernel " + why,
        "this is an error in the plugin: report it to its author");
  };
  for (uint32_t i = 0; i < row.n_in + row.n_out; ++i)
    if (const uint64_t bytes = uint64_t{1} << row.operands[i].align_log2; bytes > device.props.alloc_align)
      refuse("wants operands aligned to " + std::to_string(bytes) + " bytes: expected at most alloc_align, " +
             std::to_string(device.props.alloc_align));
  if (row.op != std::string_view("dvt.copy")) return;  // by which the host makes operands compact and aligned
  if (!(row.operands[0].flags & DVT_O_STRIDED)) refuse("does not take strided operands: expected DVT_O_STRIDED");
  if (row.operands[0].align_log2) refuse("wants an aligned operand: expected it to take any");
}

void add_kernels(Device& device, std::span<const dvt_kernel* const> added) {
  {
    Rows& r = all_rows();
    std::lock_guard lock(r.mutex);
    for (size_t i = added.size(); i-- > 0;) {
      auto& rows = r.added[{device.index, added[i]->op}];
      rows.insert(rows.begin(), added[i]);
    }
  }
  forget_plans();
}

std::vector<const dvt_kernel*> kernel_table(const Device& device) {
  std::vector<const dvt_kernel*> table;
  {
    Rows& r = all_rows();
    std::lock_guard lock(r.mutex);
    for (const auto& [key, rows] : r.added)
      if (key.first == device.index) table.insert(table.end(), rows.begin(), rows.end());
  }
  const dvt_backend& own = *device.backend->table;
  table.insert(table.end(), own.kernels, own.kernels + own.n_kernels);
  return table;
}
}  // namespace dovetail
