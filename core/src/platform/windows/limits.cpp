// The limits that a job object sets for this process: containers, batch systems.
#include <algorithm>

#include "platform/platform.hpp"
#include "platform/windows/windows.hpp"

namespace dovetail::platform {
namespace {
template <class T>
bool ask_job(int what, T& answer) {
  return QueryInformationJobObject(nullptr, JOBOBJECTINFOCLASS(what), &answer, sizeof answer, nullptr);
}

struct JobMemory {  // JOBOBJECT_MEMORY_USAGE_INFORMATION, which older headers lack
  ULONG64 now, peak;
};
constexpr int kJobMemory = 28;  // JobObjectMemoryUsageInformation

uint64_t used_by_process() {
  PROCESS_MEMORY_COUNTERS counters{};
  counters.cb = sizeof counters;
  return K32GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof counters) ? counters.PagefileUsage : 0;
}
}  // namespace

GroupMemory group_memory(const std::string&) {
  GroupMemory memory;
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  if (!ask_job(JobObjectExtendedLimitInformation, limits)) return memory;
  const DWORD set = limits.BasicLimitInformation.LimitFlags;
  if (set & JOB_OBJECT_LIMIT_PROCESS_MEMORY) memory = {limits.ProcessMemoryLimit, used_by_process()};
  if (set & JOB_OBJECT_LIMIT_JOB_MEMORY && limits.JobMemoryLimit < memory.limit) {
    JobMemory job{};
    memory = {limits.JobMemoryLimit, ask_job(kJobMemory, job) ? job.now : used_by_process()};
  }
  return memory;
}

uint32_t group_cpus(const std::string&) {
  JOBOBJECT_CPU_RATE_CONTROL_INFORMATION rate{};
  if (!ask_job(JobObjectCpuRateControlInformation, rate)) return UINT32_MAX;
  constexpr DWORD hard = JOB_OBJECT_CPU_RATE_CONTROL_ENABLE | JOB_OBJECT_CPU_RATE_CONTROL_HARD_CAP;
  if ((rate.ControlFlags & hard) != hard) return UINT32_MAX;
  const uint64_t cpus = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
  return uint32_t((cpus * rate.CpuRate + 9999) / 10000);  // in hundredths of a percent of all
}

uint64_t host_memory() {
  static const uint64_t bytes = [] {
    MEMORYSTATUSEX status{};
    status.dwLength = sizeof status;
    GlobalMemoryStatusEx(&status);
    return std::min<uint64_t>(status.ullTotalPhys, group_memory().limit);
  }();
  return bytes;
}

uint64_t free_in_group() {
  const GroupMemory group = group_memory();
  return group.limit == kNoLimit ? kNoLimit : group.limit - std::min(group.limit, group.used);
}

void trim_heap() {}  // the system's heap gives large blocks back at once
}  // namespace dovetail::platform
