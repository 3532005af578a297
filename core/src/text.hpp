// Small helpers for messages.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace dovetail {
// ", did you mean 'softmax'?" or, where nothing is near, "; known: a, b, c".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);
std::string to_string(std::span<const int64_t> shape);  // "(2, 3)"
std::string to_string(double value);                    // "0.1": the shortest text that means it
std::string human_bytes(uint64_t bytes);                // "1.5 GiB"
}  // namespace dovetail
