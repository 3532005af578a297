// The limits that control groups set for this process: containers, systemd slices, batch systems.
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <mutex>
#include <sstream>

#include "platform/platform.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace dovetail::platform {
namespace {
std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}
bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// The number that a file begins with; kNoLimit for "max", -1 and anything else.
uint64_t number(const std::string& text) {
  uint64_t value = kNoLimit;
  std::from_chars(text.data(), text.data() + text.size(), value);
  // Version 1 writes "no limit" as the largest multiple of a page.
  return value >= uint64_t{1} << 62 ? kNoLimit : value;
}

// The line "name value" of a file such as memory.stat.
uint64_t entry(const std::string& content, const std::string& name) {
  for (const std::string& line : split(content, '\n'))
    if (line.starts_with(name + " ")) return number(line.substr(name.size() + 1));
  return kNoLimit;
}

// A mounted hierarchy of groups, as a line of /proc/self/mountinfo describes it.
struct Mount {
  std::string point;  // where it is mounted
  std::string top;    // the group that is seen there
};

// The mount of the hierarchy of `controller`; of version 2 for "". An empty point: there is none.
Mount mount_of(const std::string& mountinfo, const std::string& controller) {
  for (const std::string& line : split(mountinfo, '\n')) {
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> front = split(line.substr(0, dash), ' '),
                                   back = split(line.substr(dash + 3), ' ');
    if (front.size() < 5 || back.size() < 3) continue;
    const bool version_2 = controller.empty() && back[0] == "cgroup2";
    const bool version_1 =
        !controller.empty() && back[0] == "cgroup" && contains(split(back.back(), ','), controller);
    if (version_1 || version_2) return {front[4], front[3]};
  }
  return {};
}

// The group of this process in that hierarchy, from /proc/self/cgroup: lines "number:controllers:path".
std::string group_of(const std::string& groups, const std::string& controller) {
  for (const std::string& line : split(groups, '\n')) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controller.empty() ? controllers.empty() : contains(split(controllers, ','), controller))
      return line.substr(second + 1);
  }
  return {};
}

// The folders of this process's group and of the groups around it, the innermost first.
std::vector<std::string> folders(const std::string& root, const std::string& controller) {
  const Mount mount = mount_of(read_file(root + "/proc/self/mountinfo"), controller);
  if (mount.point.empty()) return {};
  std::string group = group_of(read_file(root + "/proc/self/cgroup"), controller);
  // A container may see its own group as the top of the hierarchy, under the name that it has outside.
  if (mount.top != "/" && (group + "/").starts_with(mount.top + "/")) group.erase(0, mount.top.size());
  // A group outside of the process's namespace is not visible; the top is the nearest that is.
  if (group.find("..") != std::string::npos || !is_folder(root + mount.point + group)) group.clear();
  std::vector<std::string> found;
  for (;; group.erase(group.rfind('/'))) {
    while (group.ends_with('/')) group.pop_back();
    found.push_back(root + mount.point + group);
    if (group.empty()) return found;
  }
}

void lower(uint64_t& limit, uint64_t to) { limit = std::min(limit, to); }

// Bytes that the group uses, without file cache that the kernel can drop.
uint64_t used_in(const std::string& folder, bool version_2) {
  const uint64_t usage = number(read_file(folder + (version_2 ? "/memory.current" : "/memory.usage_in_bytes")));
  const std::string stat = read_file(folder + "/memory.stat");
  const uint64_t cache = entry(stat, version_2 ? "inactive_file" : "total_inactive_file");
  if (usage == kNoLimit) return 0;
  return cache == kNoLimit ? usage : usage - std::min(usage, cache);
}
}  // namespace

GroupMemory group_memory(const std::string& root) {
  GroupMemory memory;
  for (const bool version_2 : {false, true})
    for (const std::string& folder : folders(root, version_2 ? "" : "memory")) {
      uint64_t limit = kNoLimit;
      if (version_2) {
        lower(limit, number(read_file(folder + "/memory.max")));
        lower(limit, number(read_file(folder + "/memory.high")));
      } else {
        lower(limit, number(read_file(folder + "/memory.limit_in_bytes")));
        // Includes groups that this process cannot see.
        lower(limit, entry(read_file(folder + "/memory.stat"), "hierarchical_memory_limit"));
      }
      if (limit < memory.limit) memory = {limit, used_in(folder, version_2)};
    }
  return memory;
}

uint32_t group_cpus(const std::string& root) {
  uint64_t cpus = kNoLimit;
  const auto limit = [&](uint64_t quota, uint64_t period) {
    if (quota != kNoLimit && quota && period != kNoLimit && period) lower(cpus, (quota + period - 1) / period);
  };
  for (const std::string& folder : folders(root, "")) {
    const std::string line = read_file(folder + "/cpu.max");  // "quota period" or "max period"
    const size_t space = line.find(' ');
    if (space != std::string::npos) limit(number(line), number(line.substr(space + 1)));
  }
  for (const std::string& folder : folders(root, "cpu"))
    limit(number(read_file(folder + "/cpu.cfs_quota_us")), number(read_file(folder + "/cpu.cfs_period_us")));
  return uint32_t(std::min<uint64_t>(cpus, UINT32_MAX));
}

uint64_t host_memory() {
  static const uint64_t bytes =
      std::min(uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE)), group_memory().limit);
  return bytes;
}

uint64_t free_in_group() {
  const GroupMemory group = group_memory();
  return group.limit == kNoLimit ? kNoLimit : group.limit - std::min(group.limit, group.used);
}

void trim_heap() {
#if defined(__GLIBC__)
  // If the process uses another allocator, this call initialises glibc's, which two threads must not do at once.
  static std::mutex mutex;
  if (const std::unique_lock lock(mutex, std::try_to_lock); lock) malloc_trim(0);
#endif
}
}  // namespace dovetail::platform
