// A program that was built for one device: a folder with the program, its weights in the layouts of the device's
// kernels, machine code, and a manifest. docs/ship_c.md describes it.
#pragma once
#include "device/packs.hpp"
#include "dispatch/run_program.hpp"

namespace dovetail {
// ---- files of a folder ------------------------------------------------------------------------------------------
constexpr const char *kArtefactProgram = "program.dvt", *kArtefactPacks = "packs.safetensors",
                     *kArtefactManifest = "manifest.json", *kArtefactCode = "code";

// Weights in the layouts of the device's kernels, as runs of the program have made them. `folder`: of the artefact.
struct PacksWritten {
  uint64_t count = 0, bytes = 0;
};
PacksWritten write_packs(RunnableProgram&, Device&, const std::string& folder);
// The machine code that compilers got since record_images(true), each in a file of its own.
struct CodeWritten {
  uint64_t count = 0, bytes = 0;
};
CodeWritten write_code(const std::string& folder);

// ---- opening ----------------------------------------------------------------------------------------------------
// A folder that was built, or a .dvt file, to run on the device; on a file the last two do nothing. `trust_code`:
// run the machine code in the folder. Everything is looked up now: kernels, decompositions, code, for the sizes
// that it was built for. Throws Error(value) where a file is not sound or is for another backend,
// Error(not_implemented) where the device lacks a kernel, Error(no_file).
std::unique_ptr<RunnableProgram> open_artefact(const std::string& path, Device&, bool trust_code);
}  // namespace dovetail
