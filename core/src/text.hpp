// Small helpers for messages.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dovetail {
// ", did you mean 'softmax'?" or, where nothing is near, "; known: a, b, c".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);
// A text from outside, fit for a terminal: control characters but line ends and tabs, and bytes that are no
// UTF-8, become '?'; what is longer than `most` bytes ends in "...".
std::string cleaned(std::string_view text, size_t most = 4096);
std::string to_string(std::span<const int64_t> shape);  // "(2, 3)"
std::string to_string(double value);                    // "0.1": the shortest text that means it
std::string human_bytes(uint64_t bytes);                // "1.5 GiB"
}  // namespace dovetail
