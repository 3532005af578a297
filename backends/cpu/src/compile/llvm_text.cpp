#include "compile/llvm_text.hpp"

#include "compile/llvm_values.hpp"

namespace dovetail::cpu {
namespace {
using namespace llvm;
constexpr int elements_ahead = 512;  // of what is computed

struct Target {
  const char *name, *features;
  int elements;   // of a step: two vectors of float
  bool converts;  // float to fp16 and back, by instructions
};
Target target_of(Level level) {
#if defined(__x86_64__)
  constexpr const char* name = "x86_64-linux-gnu";
  if (level == Level::avx512) return {name, "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx2,+fma,+f16c", 32, true};
  if (level == Level::avx2) return {name, "+avx2,+fma,+f16c", 16, true};
  return {name, "+sse4.2", 8, false};
#else
  (void)level;
  return {"aarch64-linux-gnu", "+neon", 8, true};
#endif
}

// Prints the loop of one run, a step of vectors at a time. What is left of a row is a step on copies of its
// elements.
class LoopWriter : ValueWriter {
 public:
  LoopWriter(const Group& group, Target target) : ValueWriter(group, target.elements) {}

  void function(const GeneratedLoop& loop, const std::string& name) {
    loop_ = &loop;
    text_ += "define void @" + name + "(ptr %in, ptr %out, i64 %rows, i64 %columns) {\nentry:\n";
    for (size_t i = 0; i < loop.in.size(); ++i) pointer("%in", i, "%from", i);
    for (size_t i = 0; i < loop.calls.size(); ++i) pointer("%in", loop.in.size() + i, "%function", i);
    for (size_t i = 0; i < loop.out.size(); ++i) pointer("%out", i, "%to", i);
    for (size_t k = 0; k < loop.in.size(); ++k)
      if (is_dense(k)) line(name_of("%from.copy", k) + " = alloca " + vector_of(in_memory(loop.in[k])));
    for (size_t k = 0; k < loop.out.size(); ++k)
      line(name_of("%to.copy", k) + " = alloca " + vector_of(in_memory(loop.out[k])));
    line("%whole = and i64 %columns, -" + std::to_string(n_));
    line("%left = sub i64 %columns, %whole");
    line("%is.left = icmp ne i64 %left, 0");
    text_ += "  br label %row\nrow:\n";
    line("%r = phi i64 [0, %entry], [%r.next, %row.end]");
    line("%base = mul i64 %r, %columns");
    line("%rest = add i64 %base, %whole");
    repeat("wide", "row", "%whole", n_, [&] {
      line("%at = add i64 %base, %wide.i");
      if (!loop.calls.empty()) fetch_ahead("%at");
      step("", "%at");
    });
    text_ += "  br i1 %is.left, label %rest.begin, label %row.end\nrest.begin:\n";
    repeat("fill", "rest.begin", "%left", 1, [&] {
      line("%fill.at = add i64 %rest, %fill.i");
      for (size_t k = 0; k < loop.in.size(); ++k)
        if (is_dense(k)) copy(loop.in[k], name_of("%from", k), "%fill.at", name_of("%from.copy", k), "%fill.i");
    });
    step(".copy", "0");
    repeat("empty", "fill.end", "%left", 1, [&] {
      line("%empty.at = add i64 %rest, %empty.i");
      for (size_t k = 0; k < loop.out.size(); ++k)
        copy(loop.out[k], name_of("%to.copy", k), "%empty.i", name_of("%to", k), "%empty.at");
    });
    text_ += "  br label %row.end\nrow.end:\n";
    line("%r.next = add i64 %r, 1");
    line("%more = icmp slt i64 %r.next, %rows");
    text_ += "  br i1 %more, label %row, label %done\ndone:\n  ret void\n}\n";
  }
  std::string take() { return std::move(text_); }

 private:
  static std::string name_of(const char* name, size_t i) { return name + std::to_string(i); }
  void pointer(const char* array, size_t at, const char* name, size_t i) {
    const std::string made = name_of(name, i);
    line(made + ".at = getelementptr ptr, ptr " + array + ", i64 " + std::to_string(at));
    line(made + " = load ptr, ptr " + made + ".at");
  }
  // `body` for %label.i from 0 to `end`, in steps of `n`, after block `before`; block label.end goes on.
  template <class F>
  void repeat(const std::string& label, const char* before, const char* end, int n, F body) {
    const std::string i = "%" + label + ".i", next = "%" + label + ".next", is_in = "%" + label + ".in";
    text_ += "  br label %" + label + "\n" + label + ":\n";
    line(i + " = phi i64 [0, %" + before + "], [" + next + ", %" + label + ".body]");
    line(is_in + " = icmp slt i64 " + i + ", " + end);
    text_ += "  br i1 " + is_in + ", label %" + label + ".body, label %" + label + ".end\n" + label + ".body:\n";
    body();
    line(next + " = add i64 " + i + ", " + std::to_string(n));
    text_ += "  br label %" + label + "\n" + label + ".end:\n";
  }

  // Asks for memory that a later step will use: while functions compute, processors run less far ahead by
  // themselves.
  void fetch_ahead(const std::string& at) {
    const std::string ahead = made("add i64 " + at + ", " + std::to_string(elements_ahead));
    const auto fetch = [&](uint32_t v, const std::string& from, const char* writes) {
      const std::string first = place(in_memory(v), from, ahead);
      const int bytes = n_ * (loop_->is_half[v] ? 2 : group_.values[v].bytes);
      for (int i = 0; i < bytes; i += 64) {
        const std::string data = place("i8", first, std::to_string(i));
        line("call void @llvm.prefetch.p0(ptr " + data + ", i32 " + writes + ", i32 2, i32 1)");
      }
    };
    for (size_t k = 0; k < loop_->in.size(); ++k)
      if (is_dense(k)) fetch(loop_->in[k], name_of("%from", k), "0");
    for (size_t k = 0; k < loop_->out.size(); ++k) fetch(loop_->out[k], name_of("%to", k), "1");
  }
  bool is_dense(size_t k) const { return group_.values[loop_->in[k]].extent == Extent::all; }
  std::string in_memory(uint32_t v) const {
    const Operand& x = group_.values[v];
    return loop_->is_half[v] ? half_of(x.half) : type_of(x);
  }
  std::string place(const std::string& type, const std::string& from, const std::string& at) {
    return made("getelementptr " + type + ", ptr " + from + ", i64 " + at);
  }
  // One element.
  void copy(uint32_t v, const std::string& from, const char* at, const std::string& to, const char* there) {
    const std::string type = in_memory(v);
    const std::string x = made("load " + type + ", ptr " + place(type, from, at) + ", align 1");
    line("store " + type + " " + x + ", ptr " + place(type, to, there) + ", align 1");
  }

  // The elements from `at` on, of memory or of copies.
  void step(const std::string& which, const std::string& at) {
    names_.clear();
    for (size_t k = 0; k < loop_->in.size(); ++k) {
      const uint32_t v = loop_->in[k];
      const std::string x = load(k, which, at);
      names_[v] = loop_->is_half[v] ? widened(group_.values[v].half, x) : x;
    }
    for (const Instruction& s : loop_->steps) names_[s.result] = compute(s);
    for (size_t k = 0; k < loop_->out.size(); ++k) store(k, which, at);
  }

  std::string load(size_t k, const std::string& which, const std::string& at) {
    const std::string type = in_memory(loop_->in[k]);
    const Extent extent = group_.values[loop_->in[k]].extent;
    if (extent == Extent::all) {
      const std::string from = place(type, name_of(("%from" + which).c_str(), k), at);
      return made("load " + vector_of(type) + ", ptr " + from + ", align 1");
    }
    std::string from = name_of("%from", k);
    if (extent == Extent::rows) from = place(type, from, "%r");
    return all(type, made("load " + type + ", ptr " + from + ", align 1"));
  }
  void store(size_t k, const std::string& which, const std::string& at) {
    const uint32_t v = loop_->out[k];
    std::string value = names_[v];
    if (loop_->is_half[v]) {
      const bool is_rounded = std::any_of(loop_->steps.begin(), loop_->steps.end(),
                                          [v](const Instruction& s) { return s.result == v && s.rounds; });
      value = narrowed(group_.values[v].half, value, is_rounded);
    }
    const std::string type = in_memory(v), to = place(type, name_of(("%to" + which).c_str(), k), at);
    line("store " + vector_of(type) + " " + value + ", ptr " + to + ", align 1");
  }

  std::string compute(const Instruction& step) {
    const std::string value = is_called(group_, step) ? called(step) : written(step);
    return step.rounds ? rounded(group_.values[step.result].half, value) : value;
  }

  // A function of the device's, for the vectors of a step one by one.
  std::string called(const Instruction& s) {
    const auto& calls = loop_->calls;
    const auto call = std::find(calls.begin(), calls.end(), s.elementwise->vector_function());
    const std::string function = name_of("%function", size_t(call - calls.begin()));
    const int n = n_ / 2;
    const std::string whole = vector_of("float"), half = llvm::vector_of(n, "float");
    std::string results;
    for (int begin : {0, n}) {
      std::string given;
      for (uint32_t k = 0; k < s.n_in; ++k)
        given +=
            (k ? ", " : "") + half + " " +
            made("shufflevector " + whole + " " + names_[s.in[k]] + ", " + whole + " poison, " + lanes(begin, n));
      results += (begin ? ", " : "") + half + " " + made("call " + half + " " + function + "(" + given + ")");
    }
    return made("shufflevector " + results + ", " + lanes(0, n_));
  }

  const GeneratedLoop* loop_ = nullptr;
};
}  // namespace

bool has_half(Half half, Level level) {
  return half == Half::bf16 || (half == Half::f16 && target_of(level).converts);
}

bool is_called(const Group& g, const Instruction& step) {
  const Operand& x = g.values[step.in[0]];
  return step.elementwise->vector_function && is_float(x) && x.bytes == 4 && !is_written(step, Kind::floating);
}

bool has_text(const Group& g, const Instruction& step, Level level) {
  if (step.kind != Instruction::loop) return false;
  const Operand &x = g.values[step.in[0]], &y = g.values[step.result];
  const Kind kind = kind_of(x);
  if (kind == Kind::other || kind_of(y) == Kind::other) return false;
  if (step.rounds && !has_half(y.half, level)) return false;
  return is_written(step, kind) || is_called(g, step);
}

std::string request_to_llvm(const Group& g, Level level) {
  const Target target = target_of(level);
  std::string names, declarations;
  LoopWriter writer(g, target);
  for (size_t i = 0; i < g.loops.size(); ++i) {
    const std::string name = "loop" + std::to_string(i);
    names += (i ? ", \"" : "\"") + name + "\"";
    writer.function(g.loops[i], name);
  }
  for (const char* function : {"fabs", "sqrt", "floor", "ceil", "trunc", "roundeven"})
    for (const char* element : {"float", "double"}) {
      const std::string type = vector_of(target.elements, element);
      declarations += "declare " + type + " @llvm." + function + ".v" + std::to_string(target.elements) +
                      (*element == 'd' ? "f64" : "f32") + "(" + type + ")\n";
    }
  return std::string("{\"target\": \"") + target.name + "\", \"features\": \"" + target.features +
         "\", \"functions\": [" + names + "]}\n" + "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n" +
         declarations + writer.take();
}
}  // namespace dovetail::cpu
