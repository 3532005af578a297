// What a program is, as one number: equal programs have equal content, wherever their nodes were written.
#pragma once
#include "graph/json.hpp"
#include "sha256.hpp"

namespace dovetail {
// The SHA-256 of the canonical text without files and lines. Tensors enter by name, dtype and shape, not by
// their elements. In a file it stands as to_hex writes it; dvt_program.hash is its first 128 bits.
Sha256::Digest content_hash(Json program);
}  // namespace dovetail
