// What the fuzzer does with one program.
#pragma once
#include <string>
#include <vector>

#include "device/device.hpp"
#include "mutate.hpp"

namespace fuzz {
struct Counts {
  uint64_t read = 0, bound = 0, run = 0;
};

// A program and the dtypes that its inputs have (rank -1: any); none for one that declares them.
struct Seed {
  dovetail::Json document;
  struct Input {
    dovetail::DType dtype;
    int rank;
  };
  std::vector<Input> inputs;
};
// Of the lines of decompositions.json, some of each op, and of the *.json files of a folder. A document with the
// member "__metadata__" is the header of a .dvt file, whose "program" may be an object.
std::vector<Seed> read_seeds(const std::string& decompositions, const std::string& folder);

// Reads the text, or a file that has it as its header, writes and reads it again, binds it for random sizes and
// runs it on the device, if there is one. Throws std::logic_error where the text changes on the way, and whatever
// else is no dovetail::Error. `folder`: for files.
void run_program(const std::string& text, const std::vector<Seed::Input>& inputs, dovetail::Device*,
                 const std::string& folder, Rng&, Counts&);
}  // namespace fuzz
