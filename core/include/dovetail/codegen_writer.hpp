// dovetail/codegen_writer.hpp - prints the kernel of a group: the second part of codegen_source.hpp, which explains
// it.
#ifndef DOVETAIL_CODEGEN_WRITER_HPP
#define DOVETAIL_CODEGEN_WRITER_HPP

#include <tuple>

#include "dovetail/codegen_functions.hpp"

namespace dvt {
inline namespace DVT_CODE_NAMESPACE {
namespace codegen {
// Which text serves a call.
struct Form {
  uint32_t axes = 1;     // of the index space, merged; the last one is along rows
  uint32_t lanes = 0;    // that share a row; 0: a thread has whole elements, whatever their row
  bool wide = false;     // indices need 64 bits
  bool strided = false;  // the elements of some tensor's row are not side by side

  bool operator==(const Form& o) const { return tied() == o.tied(); }
  bool operator<(const Form& o) const { return tied() < o.tied(); }

 private:
  std::tuple<uint32_t, uint32_t, bool, bool> tied() const { return {axes, lanes, wide, strided}; }
};

// A tensor that the kernel reads or writes.
struct Access {
  uint32_t value, operand;  // which value of the loops, which input or output
  bool writes;
};

// Prints one kernel.
class Writer {
 public:
  Writer(const dvt_program& p, const Loops& loops, const std::vector<Access>& accesses,
         const std::vector<uint32_t>& scalars, const Dialect& dialect, const Form& form)
      : program_(p),
        loops_(loops),
        accesses_(accesses),
        scalars_(scalars),
        form_(form),
        d_(dialect),
        functions_(dialect) {}

  std::string run(const std::string& name) {
    index_ = form_.wide ? std::string("unsigned ") + d_.int64 : "unsigned int";
    depth_ = 1;
    for (uint32_t s : scalars_) line("const " + type(s) + " " + variable(s) + " = a." + variable(s) + "[0];");
    form_.lanes ? print_rows() : print_elements();
    return d_.head + functions_.declarations() + arguments() + signature(name) + " {\n" + text_ + "}\n";
  }

 private:
  // ---- small parts

  void line(const std::string& text) { text_ += std::string(2 * size_t(depth_), ' ') + text + "\n"; }
  void open(const std::string& text) { line(text + " {"), ++depth_; }
  void close() { --depth_, line("}"); }
  void barrier() {
    if (*d_.barrier) line(d_.barrier);
  }
  static std::string text(uint64_t n) { return std::to_string(n); }
  static std::string variable(uint32_t v) { return "v" + text(v); }
  DLDataType dtype(uint32_t v) const { return loops_.values[v].dtype; }
  std::string type(uint32_t v) const { return c_type(d_, computed(dtype(v))); }
  std::string memory_type(DLDataType t) const { return c_type(d_, is_narrow(t) ? types::unsigned_of(t) : t); }
  std::string pointer(const std::string& to) const {
    return (*d_.global ? std::string(d_.global) + " " : "") + to + "* ";
  }
  std::string index_variable(uint32_t axis) const { return "i" + text(axis); }
  uint32_t last() const { return form_.axes - 1; }

  std::string arguments() const {
    std::string text_of = std::string("typedef struct {\n  ") + d_.int64 + " count, size[" + text(form_.axes) + "]";
    if (!accesses_.empty()) text_of += ", stride[" + text(accesses_.size()) + "][" + text(form_.axes) + "]";
    text_of += ";\n";
    for (uint32_t s : scalars_)
      text_of += "  " + type(s) + " " + variable(s) + "[" + text(64 / computed(dtype(s)).bits) + "];\n";
    return text_of + "} dvt_arguments;\n";
  }

  std::string signature(const std::string& name) const {
    std::string parameters;
    std::vector<bool> has(program_.n_inputs, false);
    for (const Access& x : accesses_)
      if (!x.writes) has[x.operand] = true;
    for (uint32_t i = 0; i < program_.n_inputs; ++i)
      if (has[i])
        parameters +=
            "const " + pointer(memory_type(program_.values[program_.inputs[i]].dtype)) + "in" + text(i) + ", ";
    for (uint32_t i = 0; i < program_.n_outputs; ++i)
      parameters += pointer(memory_type(program_.values[program_.outputs[i]].dtype)) + "out" + text(i) + ", ";
    if (loops_.n_kept) parameters += pointer(d_.int64) + "workspace, ";
    return std::string(d_.kernel) + " " + name + "(" + parameters + "const dvt_arguments a)";
  }

  // i0, i1, ... of element or row number `of` of the axes below `end`.
  void print_indices(uint32_t end, std::string of) {
    if (end == 0) return;
    if (end > 1) {
      line(index_ + " rest = " + of + ";");
      of = "rest";
    }
    for (uint32_t axis = end; axis-- > 1;) {
      const std::string size = "(" + index_ + ")a.size[" + text(axis) + "]";
      line("const " + index_ + " " + index_variable(axis) + " = rest % " + size + ";");
      line("rest /= " + size + ";");
    }
    line("const " + index_ + " i0 = " + of + ";");
  }
  // The place of the current element in a tensor; of the axes below `end`.
  std::string place(size_t access, uint32_t end) const {
    std::string sum;
    for (uint32_t axis = 0; axis < end; ++axis) sum += offset(access, axis, index_variable(axis));
    return sum.empty() ? "0" : sum.substr(3);  // without the first plus sign
  }
  // Of rows whose elements are side by side, or one, the text says so: compilers for CPUs then make vectors of
  // them.
  std::string offset(size_t access, uint32_t axis, const std::string& index) const {
    if (axis != last() || form_.strided)
      return " + " + index + " * a.stride[" + text(access) + "][" + text(axis) + "]";
    return loops_.values[accesses_[access].value].varies ? " + " + index : "";
  }
  void print_load(const Access& x, const std::string& at) {
    const std::string element = "in" + text(x.operand) + "[" + at + "]";
    line("const " + type(x.value) + " " + variable(x.value) + " = " + functions_.load(dtype(x.value), element) +
         ";");
  }
  void print_store(const Access& x, const std::string& at) {
    line("out" + text(x.operand) + "[" + at + "] = " + functions_.store(dtype(x.value), variable(x.value)) + ";");
  }

  std::string value_of(const Step& s) {
    std::vector<std::string> operands;
    for (uint32_t v : s.operands) operands.push_back(v == none ? "" : variable(v));
    const DLDataType result = dtype(s.result);
    const std::string value = expression(functions_, program_, *s.node, operands);
    return rounds(s) ? functions_.round(result, value) : value;
  }
  bool reduces() const {
    return std::any_of(loops_.steps.begin(), loops_.steps.end(), [](const Step& s) { return s.reduces; });
  }
  bool rounds(const Step& s) const {
    return program_.flags & DVT_P_ROUND_EACH && is_narrow(dtype(s.result)) && !is_op(*s.node, "astype");
  }
  void print_step(const Step& s) {
    line("const " + type(s.result) + " " + variable(s.result) + " = " + value_of(s) + ";");
  }

  // ---- groups by elements

  void print_elements() {
    const std::string threads = text(d_.threads) + "u";
    open("for (" + index_ + " i = " + d_.block + " * " + threads + " + " + d_.thread + "; i < (" + index_ +
         ")a.count; i += " + d_.blocks + " * " + threads + ")");
    print_indices(form_.axes, "i");
    for (size_t x = 0; x < accesses_.size(); ++x)
      if (!accesses_[x].writes) print_load(accesses_[x], place(x, form_.axes));
    for (uint32_t s : loops_.passes[0].before) print_step(loops_.steps[s]);
    for (uint32_t s : loops_.passes[0].body) print_step(loops_.steps[s]);
    for (size_t x = 0; x < accesses_.size(); ++x) {
      if (!accesses_[x].writes) continue;
      const bool all = loops_.values[accesses_[x].value].varies;
      if (!all) open("if (" + is_first(x) + ")");  // one thread of those with the same element
      print_store(accesses_[x], place(x, form_.axes));
      if (!all) close();
    }
    close();
  }
  std::string is_first(size_t access) const {
    std::string all;
    for (uint32_t axis = 0; axis < form_.axes; ++axis)
      all += (axis ? " && " : "") + std::string("(a.stride[") + text(access) + "][" + text(axis) + "] != 0 || " +
             index_variable(axis) + " == 0)";
    return all;
  }

  // ---- groups by rows

  uint32_t teams() const { return std::max(d_.threads / form_.lanes, 1u); }
  uint32_t threads_of_team() const { return std::min(d_.threads, form_.lanes); }
  std::string slot(const std::string& lane) const {
    return teams() > 1 ? "team * " + text(form_.lanes) + " + " + lane : lane;
  }
  void open_lanes(uint32_t lanes) {
    open("for (unsigned int lane = first; lane < " + text(lanes) + "; lane += " + text(threads_of_team()) + ")");
  }

  void print_rows() {
    for (const Step& s : loops_.steps)
      if (s.reduces) print_shared(s);
    const std::string teams = text(this->teams()) + "u", thread = d_.thread, members = text(threads_of_team());
    if (this->teams() > 1) line("const unsigned int team = " + thread + " / " + members + ";");
    line("const unsigned int first = " + thread + " % " + members + ";");
    open("for (" + index_ + " base = " + d_.block + " * " + teams + "; base < (" + index_ +
         ")a.count; base += " + d_.blocks + " * " + teams + ")");
    // A team without a row of its own does the last one again, as all threads must come to each barrier.
    const std::string own = this->teams() > 1 ? "base + team" : "base";
    line("const int exists = " + own + " < (" + index_ + ")a.count;");
    line("const " + index_ + " row = exists ? " + own + " : (" + index_ + ")a.count - 1;");
    print_indices(last(), "row");
    for (size_t x = 0; x < accesses_.size(); ++x) print_row_access(x);
    for (uint32_t k = 0; k < loops_.n_kept; ++k) print_kept_row(k);
    for (uint32_t p = 0; p < loops_.passes.size(); ++p) print_pass(p);
    for (size_t x = 0; x < accesses_.size(); ++x)
      if (accesses_[x].writes && !loops_.values[accesses_[x].value].varies) {
        open("if (exists && first == 0)");
        print_store(accesses_[x], "at" + text(x));
        close();
      }
    if (reduces()) barrier();  // before the next rows' lanes are written
    close();
  }
  void print_row_access(size_t x) {
    line(std::string("const ") + d_.int64 + " at" + text(x) + " = " + place(x, last()) + ";");
    if (!accesses_[x].writes && !loops_.values[accesses_[x].value].varies) print_load(accesses_[x], "at" + text(x));
  }
  void print_kept_row(uint32_t k) {
    for (uint32_t v = 0; v < loops_.values.size(); ++v) {
      if (loops_.values[v].kept != k) continue;
      const std::string to = pointer(type(v));
      const std::string place = d_.blocks + std::string(" * ") + text(k) + " + " + d_.block;
      line(to + "const kept" + text(k) + " = (" + to + ")(workspace + ((" + place + ") * " + text(teams()) + "u" +
           (teams() > 1 ? " + team" : "") + ") * a.size[" + text(last()) + "]);");
    }
  }

  void print_pass(uint32_t p) {
    const Pass& pass = loops_.passes[p];
    for (uint32_t s : pass.before) print_step(loops_.steps[s]);
    if (pass.body.empty()) return;
    open_lanes(form_.lanes);
    for (uint32_t s : pass.body)
      if (loops_.steps[s].reduces) print_begin(loops_.steps[s]);
    open("for (" + index_ + " j = lane; j < (" + index_ + ")a.size[" + text(last()) +
         "]; j += " + text(form_.lanes) + ")");
    print_body(pass);
    for (size_t x = 0; x < accesses_.size(); ++x) print_column_store(x, p);
    close();
    for (uint32_t s : pass.body)
      if (loops_.steps[s].reduces) print_end(loops_.steps[s]);
    close();
    bool any = false;
    for (uint32_t s : pass.body) any = any || loops_.steps[s].reduces;
    if (!any) return;
    print_tree(pass);
    for (uint32_t s : pass.body)
      if (loops_.steps[s].reduces) print_result(loops_.steps[s]);
  }
  std::string column(size_t x) const { return "at" + text(x) + offset(x, last(), "j"); }
  void print_column_store(size_t x, uint32_t pass) {
    const Value& v = loops_.values[accesses_[x].value];
    if (!accesses_[x].writes || !v.varies || v.pass != pass) return;
    open("if (exists)");
    print_store(accesses_[x], column(x));
    close();
  }
  void print_body(const Pass& pass) {
    std::vector<bool> there(loops_.values.size(), false);
    for (uint32_t i : pass.body) {
      const Step& s = loops_.steps[i];
      for (uint32_t v : s.operands) {
        if (v == none || !loops_.values[v].varies || there[v]) continue;
        there[v] = true;
        if (loops_.values[v].source == Value::step)  // of an earlier pass
          line("const " + type(v) + " " + variable(v) + " = kept" + text(loops_.values[v].kept) + "[j];");
        for (size_t x = 0; x < accesses_.size(); ++x)
          if (accesses_[x].value == v && !accesses_[x].writes) print_load(accesses_[x], column(x));
      }
      if (s.reduces) {
        print_term(s);
        continue;
      }
      print_step(s);
      there[s.result] = true;
      if (loops_.values[s.result].kept != none)
        line("kept" + text(loops_.values[s.result].kept) + "[j] = " + variable(s.result) + ";");
    }
  }

  // ---- reductions
  //
  // Of a value v: sum_v, and lost_v for the rounding errors of sums of floats (dvt::CompensatedSum). In a lane they
  // are variables, between lanes arrays: all_sum_v, all_lost_v.

  bool is_compensated(const Step& s) const {
    return (is_op(*s.node, "sum") || is_op(*s.node, "mean")) && types::is_float(dtype(s.result));
  }
  bool is_extreme(const Step& s) const { return is_op(*s.node, "max") || is_op(*s.node, "min"); }
  // Integers wrap, as unsigned ones of at least 32 bits.
  std::string total_type(const Step& s) const {
    const DLDataType t = computed(dtype(s.result));
    if (types::is_float(t) || is_bool(t) || is_extreme(s)) return c_type(d_, t);
    return c_type(d_, {DVT_UINT, uint8_t(std::max<unsigned>(t.bits, 32)), 1});
  }
  std::string sum(const Step& s) const { return "sum_" + variable(s.result); }
  std::string lost(const Step& s) const { return "lost_" + variable(s.result); }

  void print_shared(const Step& s) {
    const std::string size = "[" + text(teams() * form_.lanes) + "];", begin = std::string(d_.shared) + " ";
    line(begin + total_type(s) + " all_" + sum(s) + size);
    if (is_compensated(s)) line(begin + total_type(s) + " all_" + lost(s) + size);
  }
  std::string least(DLDataType t) const {
    if (types::is_float(t)) return "-1.0f / 0.0f";
    if (t.code != DVT_INT) return "0";
    return t.bits == 64 ? "-9223372036854775807 - 1" : "-" + text((uint64_t(1) << (t.bits - 1)) - 1) + " - 1";
  }
  std::string most(DLDataType t) const {
    if (types::is_float(t)) return "1.0f / 0.0f";
    if (is_bool(t)) return "1";
    return t.code == DVT_INT ? text((uint64_t(1) << (t.bits - 1)) - 1) : "-1";
  }
  std::string nothing(const Step& s) const {
    const DLDataType t = computed(dtype(s.result));
    if (is_op(*s.node, "max")) return least(t);
    if (is_op(*s.node, "min")) return most(t);
    if (is_op(*s.node, "prod") || is_op(*s.node, "all")) return "1";
    return types::is_float(t) ? "-0.0f" : "0";  // -0 changes no number, not even -0
  }
  void print_begin(const Step& s) {
    line(total_type(s) + " " + sum(s) + " = (" + total_type(s) + ")(" + nothing(s) + ");");
    if (is_compensated(s)) line(total_type(s) + " " + lost(s) + " = 0;");
  }
  // x joins the sum `to`, and its rounding error `lost`.
  void print_join(const Step& s, const std::string& to, const std::string& lost, const std::string& x) {
    if (is_compensated(s)) {
      const std::string t = total_type(s);
      line("{"), ++depth_;
      line("const " + t + " total = " + to + " + " + x + ", part = total - " + to + ";");
      line(lost + " += (" + to + " - (total - part)) + (" + x + " - part);");
      line(to + " = total;");
      close();
    } else if (is_extreme(s)) {
      const char* const better = is_op(*s.node, "max") ? " > " : " < ";
      const std::string is_nan = types::is_float(dtype(s.result)) ? " || " + x + " != " + x : "";
      line(to + " = " + x + better + to + is_nan + " ? " + x + " : " + to + ";");
    } else {
      const char* const op = is_op(*s.node, "any")    ? " |= "
                             : is_op(*s.node, "all")  ? " &= "
                             : is_op(*s.node, "prod") ? " *= "
                                                      : " += ";
      line(to + op + x + ";");
    }
  }
  void print_term(const Step& s) {
    const DLDataType from = dtype(s.operands[0]), to = computed(dtype(s.result));
    const std::string x = "x_" + variable(s.result);
    const std::string term = functions_.convert(computed(from), to, variable(s.operands[0]));
    line("const " + total_type(s) + " " + x + " = (" + total_type(s) + ")(" + term + ");");
    print_join(s, sum(s), lost(s), x);
  }
  void print_end(const Step& s) {
    line("all_" + sum(s) + "[" + slot("lane") + "] = " + sum(s) + ";");
    if (is_compensated(s)) line("all_" + lost(s) + "[" + slot("lane") + "] = " + lost(s) + ";");
  }
  void print_tree(const Pass& pass) {
    barrier();
    open("for (unsigned int width = " + text(form_.lanes / 2) + "; width > 0; width /= 2)");
    open("for (unsigned int lane = first; lane < width; lane += " + text(threads_of_team()) + ")");
    for (uint32_t i : pass.body) {
      const Step& s = loops_.steps[i];
      if (!s.reduces) continue;
      const std::string here = "[" + slot("lane") + "]", other = "[" + slot("lane + width") + "]";
      const std::string x = "x_" + variable(s.result);
      line("const " + total_type(s) + " " + x + " = all_" + sum(s) + other + ";");
      print_join(s, "all_" + sum(s) + here, "all_" + lost(s) + here, x);
      if (is_compensated(s)) line("all_" + lost(s) + here + " += all_" + lost(s) + other + ";");
    }
    close();
    barrier();
    close();
  }
  void print_result(const Step& s) {
    const std::string at = "[" + slot("0") + "]", declares = "const " + total_type(s) + " ";
    const std::string total = "total_" + variable(s.result), rest = "rest_" + variable(s.result);
    line(declares + total + " = all_" + sum(s) + at + ";");
    std::string value = total;
    if (is_compensated(s)) {  // 0 of nothing; what is lost of infinities is NaN
      line(declares + rest + " = all_" + lost(s) + at + ";");
      value =
          "(" + rest + " == " + rest + " && " + rest + " != 0 ? " + total + " + " + rest + " : " + total + ") + 0";
    }
    if (is_op(*s.node, "mean")) value = "(" + value + ") / (" + type(s.result) + ")a.size[" + text(last()) + "]";
    value = "(" + type(s.result) + ")(" + value + ")";
    if (rounds(s)) value = functions_.round(dtype(s.result), value);
    line("const " + type(s.result) + " " + variable(s.result) + " = " + value + ";");
  }

  const dvt_program& program_;
  const Loops& loops_;
  const std::vector<Access>& accesses_;
  const std::vector<uint32_t>& scalars_;
  const Form form_;
  const Dialect d_;
  Functions functions_;
  std::string text_, index_;
  int depth_ = 0;
};
}  // namespace codegen
}  // namespace DVT_CODE_NAMESPACE
}  // namespace dvt
#endif  // DOVETAIL_CODEGEN_WRITER_HPP
