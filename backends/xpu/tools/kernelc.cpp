// kernelc SOURCE OUT FAMILY [OPTION...]: compiles a family of kernels to SPIR-V, at build time, with the compiler
// in Intel's SYCL runtime. Reads OUT.names, the preprocessed source with the names of its kernels; writes OUT.spv,
// one module after the other, and OUT.cpp, which embeds them and lists each kernel's module. One module per
// kernel: a device's driver compiles a module as a whole, and a program uses few of the kernels.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <sycl/sycl.hpp>
#include <vector>

#include "spirv.hpp"

namespace {
namespace syclex = sycl::ext::oneapi::experimental;
constexpr std::string_view prefix = "__sycl_kernel_";  // what SYCL puts before an extern "C" kernel's name
constexpr uint64_t most_local_bytes = 64 << 10;

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << content)) throw std::runtime_error("cannot write " + path);
}

std::set<std::string> declared_kernels(const std::string& preprocessed) {
  static const std::regex declaration("@kernel\\s+(\\w+)");
  std::set<std::string> names;
  for (std::sregex_iterator it(preprocessed.begin(), preprocessed.end(), declaration), end; it != end; ++it)
    if (!names.insert((*it)[1]).second) throw std::runtime_error("two kernels are called " + (*it)[1].str());
  return names;
}

std::vector<std::byte> compile(const std::string& source, std::vector<std::string> options) {
  options.push_back("-fsycl-device-code-split=per_kernel");
  sycl::queue queue;
  std::string log;
  try {
    auto bundle =
        syclex::create_kernel_bundle_from_source(queue.get_context(), syclex::source_language::sycl, source);
    const auto compiled =
        syclex::compile(bundle, syclex::properties{syclex::build_options{options}, syclex::save_log{&log}});
    std::fputs(log.c_str(), stderr);
    const auto content = compiled.ext_oneapi_get_content();
    const auto* bytes = reinterpret_cast<const std::byte*>(content.data());
    return {bytes, bytes + content.size()};
  } catch (const sycl::exception& error) {
    throw std::runtime_error(log.empty() ? error.what() : log);
  }
}

// The SPIR-V modules of a SYCLBIN, version 1 (llvm/Object/SYCLBIN.h): a header of 56 bytes; headers of abstract, IR
// and native modules of 32 bytes each; a table of metadata and one of binaries, both aligned to 8 bytes.
std::vector<std::string> spirv_modules(const std::vector<std::byte>& content) {
  const std::string_view all(reinterpret_cast<const char*>(content.data()), content.size());
  const size_t begin = all.find("IBYS");
  if (begin == all.npos) throw std::runtime_error("the compiler's output is no SYCLBIN");
  const auto load = [&](size_t at, auto& to) {
    if (begin + at + sizeof to > all.size()) throw std::runtime_error("a SYCLBIN that ends early");
    std::memcpy(&to, &all[begin + at], sizeof to);
  };
  const auto aligned = [](size_t x) { return (x + 7) & ~size_t{7}; };
  uint32_t head[6];      // magic, version, and the numbers of abstract, IR and native modules
  uint64_t metadata[1];  // bytes of the table
  load(0, head), load(24, metadata);
  const size_t ir = 56 + 32 * size_t{head[2]};
  const size_t binaries = aligned(ir + 32 * (size_t{head[3]} + head[4])) + aligned(metadata[0]);
  std::vector<std::string> modules;
  for (uint32_t i = 0; i < head[3]; ++i) {
    uint64_t entry[4];  // metadata offset and size, binary offset and size
    load(ir + 32 * i, entry);
    modules.emplace_back(all.substr(begin + binaries + entry[2], entry[3]));
  }
  return modules;
}

spirv::Module parse(const std::string& module) {
  std::vector<uint32_t> words(module.size() / 4);
  std::memcpy(words.data(), module.data(), 4 * words.size());
  return spirv::parse(words);
}

// Both files, of the modules that have kernels. Every declared kernel must be there: the compiler drops in silence
// what the build's device cannot run.
void emit(const std::vector<std::string>& modules, std::set<std::string> declared, const std::string& out,
          const std::string& family) {
  std::string binary, table;
  for (const std::string& module : modules) {
    const spirv::Module parsed = parse(module);
    if (parsed.local_bytes > most_local_bytes)
      throw std::runtime_error(parsed.kernels.at(0) + " takes " + std::to_string(parsed.local_bytes) +
                               " bytes of local memory: expected at most 65536, which every GPU has");
    for (const std::string& kernel : parsed.kernels) {
      const std::string name = kernel.substr(kernel.find(prefix) == 0 ? prefix.size() : 0);
      if (!declared.erase(name)) throw std::runtime_error("undeclared kernel " + name);
      table += "    {\"" + name + "\", " + std::to_string(binary.size()) + ", " + std::to_string(module.size()) +
               ", " + (parsed.fp16 ? "true" : "false") + ", " + (parsed.fp64 ? "true" : "false") + "},\n";
    }
    if (!parsed.kernels.empty()) binary += module;
  }
  if (!declared.empty()) throw std::runtime_error("the kernel " + *declared.begin() + " was not compiled");
  write(out + ".spv", binary);
  const std::string symbol = "dovetail_xpu_" + family;
  write(out + ".cpp",
        "// Generated by tools/kernelc.cpp.\n#include \"modules.hpp\"\n\n"
        "asm(\".section .rodata\\n.balign 16\\n.global " +
            symbol + "\\n.hidden " + symbol + "\\n" + symbol + ":\\n.incbin \\\"" + out +
            ".spv\\\"\\n.previous\\n\");\n"
            "extern \"C\" __attribute__((visibility(\"hidden\"))) const std::byte " +
            symbol +
            "[];\n\n"
            "namespace gpu::families {\nnamespace {\nconstexpr KernelCode kernels[] = {\n" +
            table +
            "};\n}  // namespace\n"
            "extern const Family " +
            family +
            ";\n"
            "const Family " +
            family + "{\"" + family + "\", " + symbol +
            ", kernels};\n"
            "}  // namespace gpu::families\n");
}
}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) throw std::runtime_error("usage: kernelc SOURCE OUT FAMILY [OPTION...]");
  const std::string source = argv[1], out = argv[2], family = argv[3];
  const std::set<std::string> declared = declared_kernels(read(out + ".names"));
  if (declared.empty()) throw std::runtime_error("no KERNEL in it");
  emit(spirv_modules(compile(read(source), {argv + 4, argv + argc})), declared, out, family);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s: error: %s\n", argc > 1 ? argv[1] : "kernelc", error.what());
  return 1;
}
