// Groups become convex by levels. A node's level is at least that of the nodes whose results it takes, and more
// where these are not of its group: along every edge that leaves a step the level grows, so no path returns to a
// step, and steps of any groups can be ordered. A part of a group that could as well run later joins the next part.
#include "graph/schedule.hpp"

#include <algorithm>
#include <limits>
#include <queue>
#include <unordered_map>

namespace dovetail {
namespace {
constexpr uint32_t kNever = std::numeric_limits<uint32_t>::max();

class Scheduler {
 public:
  Scheduler(const Program& program, std::span<const uint32_t> group)
      : program_(program),
        group_(group),
        n_(uint32_t(program.nodes.size())),
        producer_(size_t(program.n_values), -1) {
    for (uint32_t k = 0; k < n_; ++k)
      for (uint32_t i = 0; i < program_.nodes[k].n_out; ++i) producer_[size_t(program_.nodes[k].out) + i] = int(k);
  }

  Schedule run() {
    find_consumers();
    find_earliest();
    make_parts();
    join_later_parts();
    return in_order();
  }

 private:
  // A part of a group: its nodes of one level. Joined ones are left without nodes.
  struct Part {
    uint32_t level;
    std::vector<uint32_t> nodes;
  };

  bool together(uint32_t a, uint32_t b) const { return group_[a] && group_[a] == group_[b]; }

  template <class F>
  void for_each_producer(uint32_t k, F f) const {
    for (const int v : program_.nodes[k].in)
      if (v >= 0 && producer_[size_t(v)] >= 0) f(uint32_t(producer_[size_t(v)]));
  }

  void find_consumers() {
    consumers_.resize(n_);
    for (uint32_t k = 0; k < n_; ++k)
      for_each_producer(k, [&](uint32_t p) {
        if (consumers_[p].empty() || consumers_[p].back() != k) consumers_[p].push_back(k);
      });
  }

  void find_earliest() {
    level_.assign(n_, 0);
    for (uint32_t k = 0; k < n_; ++k)
      for_each_producer(k, [&](uint32_t p) { level_[k] = std::max(level_[k], level_[p] + !together(p, k)); });
  }

  void make_parts() {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> known;  // by group and level
    part_.resize(n_);
    for (uint32_t k = 0; k < n_; ++k) {
      uint32_t part = uint32_t(parts_.size());
      if (group_[k]) part = known.try_emplace({group_[k], level_[k]}, part).first->second;
      if (part == parts_.size()) parts_.push_back({level_[k], {}});
      parts_[part].nodes.push_back(k);
      part_[k] = part;
    }
  }

  // The level that the node's consumers in other steps allow.
  uint32_t latest(uint32_t k) const {
    uint32_t level = kNever;
    for (const uint32_t c : consumers_[k])
      if (!together(k, c)) level = std::min(level, level_[c] - 1);
    return level;
  }

  // From the last level back: what runs by itself is moved to its latest level, so that what it needs may move,
  // too.
  void join_later_parts() {
    std::vector<uint32_t> order(parts_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, std::greater(), [&](uint32_t i) { return parts_[i].level; });
    for (const uint32_t i : order) {
      Part& part = parts_[i];
      uint32_t allowed = kNever;
      for (const uint32_t k : part.nodes) allowed = std::min(allowed, latest(k));
      if (const uint32_t group = group_[part.nodes[0]]) {
        const auto [next, is_last] = next_part_.try_emplace(group, i);
        if (is_last) continue;
        if (parts_[next->second].level <= allowed) join(part, next->second);
        else next->second = i;
      } else if (allowed != kNever) {
        part.level = level_[part.nodes[0]] = allowed;
      }
    }
  }

  void join(Part& part, uint32_t into) {
    Part& other = parts_[into];
    for (const uint32_t k : part.nodes) level_[k] = other.level, part_[k] = into;
    std::vector<uint32_t> all;
    std::ranges::merge(part.nodes, other.nodes, std::back_inserter(all));
    other.nodes = std::move(all);
    part.nodes.clear();
  }

  // The step whose first node is the earliest goes first among those that may run.
  Schedule in_order() {
    std::vector<std::vector<uint32_t>> after(parts_.size());
    std::vector<uint32_t> waits(parts_.size(), 0);
    for (uint32_t k = 0; k < n_; ++k)
      for_each_producer(k, [&](uint32_t p) {
        if (part_[p] != part_[k]) after[part_[p]].push_back(part_[k]), ++waits[part_[k]];
      });
    std::priority_queue<std::pair<uint32_t, uint32_t>, std::vector<std::pair<uint32_t, uint32_t>>, std::greater<>>
        ready;
    const auto offer = [&](uint32_t part) { ready.emplace(parts_[part].nodes[0], part); };
    for (uint32_t i = 0; i < parts_.size(); ++i)
      if (!parts_[i].nodes.empty() && !waits[i]) offer(i);
    Schedule made;
    while (!ready.empty()) {
      const uint32_t part = ready.top().second;
      ready.pop();
      std::vector<uint32_t>& nodes = parts_[part].nodes;
      const bool is_group = nodes.size() > 1;
      made.steps.push_back({std::move(nodes), is_group, {}, {}});
      for (const uint32_t next : after[part])
        if (!--waits[next]) offer(next);
    }
    find_results(made);
    find_deaths(made);
    return made;
  }

  void find_results(Schedule& s) const {
    std::vector<bool> used(size_t(program_.n_values), false);
    for (const int v : program_.outputs) used[size_t(v)] = true;
    for (const Program::Node& node : program_.nodes)
      for (const int v : node.in)
        if (v >= 0 && producer_[size_t(v)] >= 0 &&
            part_[size_t(producer_[size_t(v)])] != part_[size_t(&node - program_.nodes.data())])
          used[size_t(v)] = true;
    for (Schedule::Step& step : s.steps)
      for (const uint32_t k : step.nodes)
        for (uint32_t i = 0; i < program_.nodes[k].n_out; ++i)
          if (const int v = program_.nodes[k].out + int(i); used[size_t(v)]) step.results.push_back(v);
  }

  void find_deaths(Schedule& s) const {
    std::vector<bool> needed(size_t(program_.n_values), false);
    for (const int v : program_.outputs) needed[size_t(v)] = true;
    for (const Program::Constant& c : program_.constants) needed[size_t(c.value)] = true;
    for (const Program::Array& a : program_.arrays) needed[size_t(a.value)] = true;
    for (auto step = s.steps.rbegin(); step != s.steps.rend(); ++step)
      for (auto k = step->nodes.rbegin(); k != step->nodes.rend(); ++k) {
        const Program::Node& node = program_.nodes[*k];
        for (const int v : node.in) {
          if (v < 0 || needed[size_t(v)]) continue;
          needed[size_t(v)] = true;
          step->dies.push_back(v);
        }
        for (uint32_t i = 0; i < node.n_out; ++i)
          if (!needed[size_t(node.out) + i]) step->dies.push_back(node.out + int(i));  // nothing uses it
      }
  }

  const Program& program_;
  const std::span<const uint32_t> group_;
  const uint32_t n_;
  std::vector<int> producer_;  // of each value the node that makes it; -1
  std::vector<std::vector<uint32_t>> consumers_;
  std::vector<uint32_t> level_, part_;  // of each node
  std::vector<Part> parts_;
  std::unordered_map<uint32_t, uint32_t> next_part_;  // of each group the part of the next higher level
};
}  // namespace

Schedule make_schedule(const Program& program, std::span<const uint32_t> group) {
  return Scheduler(program, group).run();
}
}  // namespace dovetail
