// NVIDIA's libraries, opened when they are first needed: none is linked. Those of another package in the process
// are shared with it.
#pragma once
#include <span>
#include <string>

namespace gpu {
// A library as NVIDIA's wheels bring it.
struct WheelLibrary {
  const char* title;  // as messages call it
  const char* soname;
  const char* folder;  // in the wheels' package `nvidia`
  const char* extra;   // of dovetail-cuda, that brings it
};
inline constexpr WheelLibrary cublaslt_library{"cuBLASLt", "libcublasLt.so.13", "cu13/lib", "cu13"};
inline constexpr WheelLibrary cudart_library{"CUDA's runtime", "libcudart.so.13", "cu13/lib", "cu13"};
inline constexpr WheelLibrary nvrtc_library{"NVRTC", "libnvrtc.so.13", "cu13/lib", "cu13"};
inline constexpr WheelLibrary cudnn_library{"cuDNN", "libcudnn.so.9", "cudnn/lib", "cu13"};
inline constexpr WheelLibrary nccl_library{"NCCL", "libnccl.so.2", "nccl/lib", "nccl"};

// A symbol of emulated drivers, and of libraries that work with them.
inline constexpr char emulation_marker[] = "dovetail_cuda_emulator";
inline constexpr char libraries_variable[] = "DOVETAIL_CUDA_LIBS";  // folders, as in PATH

// An opened one; it stays open, as libraries of NVIDIA's keep threads and state.
class Library {
 public:
  // Looks for the library in this order: among those that are loaded; in each folder of DOVETAIL_CUDA_LIBS, of the
  // entry point's `search`, and in `nvidia` next to this package, as the wheels lay it out or flat; where the
  // system looks.
  explicit Library(const WheelLibrary&);
  // After the libraries that it opens by their names alone, and cannot do without.
  Library(const WheelLibrary&, std::span<const WheelLibrary> needs);

  explicit operator bool() const { return missing_.empty(); }
  void* handle() const { return handle_; }
  // Why it cannot be used, and the cure; empty if it can.
  const std::string& missing() const { return missing_; }
  std::string cure() const;
  bool has(const char* name) const;  // something of that name
  // Its function of that name; without it the library counts as missing.
  template <class F>
  void find(const char* name, F*& function) {
    function = reinterpret_cast<F*>(symbol(name));
  }

 private:
  void open();
  void* symbol(const char* name);

  const WheelLibrary& library_;
  void* handle_ = nullptr;
  std::string missing_;
};

// A library's functions, which a macro lists as GPU_X_FUNCTIONS(X): a table with a member for each.
#define GPU_LIBRARY_MEMBER(f) decltype(&::f) f = nullptr;
#define GPU_LIBRARY_FIND(f) library.find(#f, f);
#define GPU_LIBRARY_TABLE(FUNCTIONS) \
  FUNCTIONS(GPU_LIBRARY_MEMBER)      \
  void find(::gpu::Library& library) { FUNCTIONS(GPU_LIBRARY_FIND) }

// A library with the table of its functions, opened when it is first needed. Table: find(Library&) and open(),
// which returns the library; optionally check(Library&), which returns why a library that has all functions cannot
// be used and is empty if it can.
template <class Table>
struct OpenedLibrary {
  Table functions;
  bool works_with_emulator;
  std::string missing;  // why it cannot be used, and the cure; empty if it can

  static const OpenedLibrary& get() {
    static const OpenedLibrary& once = *new OpenedLibrary(Table::open());
    return once;
  }

 private:
  explicit OpenedLibrary(Library library) {
    functions.find(library);
    missing = library.missing();
    works_with_emulator = library && library.has(emulation_marker);
    if constexpr (requires { functions.check(library); })
      if (library) missing = functions.check(library);
  }
};

// Is nothing missing? If something is, it is logged as a warning: kernels of our own do the work instead.
bool is_usable(const std::string& missing);
}  // namespace gpu
