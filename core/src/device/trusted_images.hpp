// Images of machine code in folders that the user trusts: they are run in place of what a toolchain makes, also
// where there is none. And the record of what compilers were given, of which such folders are made.
#pragma once
#include <map>
#include <memory>
#include <string>

#include "device/image.hpp"

namespace dovetail {
// A file with the image for requests of this key: the SHA-256 of the tool's name and the request. It is opened when
// a compiler asks for it; a file that is no sound image for this machine, or whose own SHA-256 is not `sha256`, is
// left out, with a line of the log.
void trust_image(const std::string& key, const std::string& path, const std::string& sha256);
std::shared_ptr<const Code> trusted_image(const std::string& tool, const std::string& request);  // nullptr: none

void record_images();                                  // what note_image() is given from now on is kept
std::map<std::string, std::string> recorded_images();  // by key
void note_image(const std::string& tool, const std::string& request, std::shared_ptr<const Code>);
}  // namespace dovetail
