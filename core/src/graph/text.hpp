// The canonical form of programs: JSON. What follows from other parts, as the shapes of intermediate values, is not
// in it.
//
//   {"dovetail": 1,
//    "inputs": [{"dtype": "float32", "shape": [null, 16]}],   null: any size; {}: whatever the nodes take
//    "numbers": [["size", 0, 1], 2, ["multiply", 0, 1]],      of value 0 the size of axis 1; 2; their product
//    "guards": [["less", 1, 0, 0]],                           number 1 < number 0, looked at before node 0;
//                                                          then perhaps "file:line" that compared them
//    "nodes": [{"op": "add", "v": 2, "in": [0, {"n": 0.5, "dtype": "float32"}, null], "at": {"axis": {"number":
//    2}}}], "outputs": [1],
//    "tensors": {"w0": {"dtype": "float32", "shape": [384, 384]}},    arrays: an operand {"tensor": "w0"}
//    "signature": {"arguments": TREE, "results": TREE}}       of a front end; kept as it is
//
// An element of an input's shape may be a string: any size, with that name; sizes of one name are equal. The
// elements of tensors are the tensors of these names in the file that the text is in.
//
// A control node holds programs: an attribute {"program": 1} is element 1 of the list "programs" of the program
// that the node is in, in the same form without "dovetail". Only control nodes have "out", the number of their
// results:
//   {"op": "loop", "in": [0, 1], "out": 2, "at": {"count": {"number": 3}, "numbers": [2], "body": {"program": 0}}}
// In the body of a loop ["attribute", 0] is the round, counted from 0, and ["attribute", 1, k] is element k of the
// node's numbers. core/schema/ops/control.py describes the ops.
//
// A file may bring decompositions, for libraries that have none for the dtypes, ranks and attributes of a call (its
// pattern); "v" is the version of the op that they are of:
//   "decompositions": {"conv2d": {"v": 1, "patterns": {"f32.4,f32.4,-;i2,i2": [0]}, "programs": [{...}]}}
//
// Values are the inputs and, after them, the outputs of the nodes in their order. "v" is the op's version, 1 where
// it is not given; attributes at their defaults are not written. An operand {"number": 2, "dtype": ...} is a number
// as an array.
//
// text_writer.cpp writes it, text_reader.cpp reads and checks it.
#pragma once
#include <functional>

#include "graph/json.hpp"
#include "graph/program.hpp"

namespace dovetail {
constexpr int kTextFormat = 1;                            // the member "dovetail"
constexpr const char* kRealAttribute = "real_attribute";  // in numbers: ["attribute", ...] of a real attribute

// `decompositions`: in place of the program's own.
Json to_json(const Program&, const Program::Decompositions* decompositions = nullptr);
// The elements of a tensor of the program, which has this dtype and shape. `entry`: what the text has of it.
using ReadTensor =
    std::function<HostArray(const std::string& name, const Json& entry, DType, std::vector<int64_t> shape)>;
// Throws Error(value) with the place in the program where it is not sound, or needs an op or a version of one that
// this library does not have. Without `read`: of a program without tensors.
std::shared_ptr<const Program> program_of(const Json&, const ReadTensor& read = {});
}  // namespace dovetail
