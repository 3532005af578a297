// SHA-256 against the examples of FIPS 180-4, and what the hash of a program depends on.
#include "check.hpp"
#include "graph/content_hash.hpp"
#include "graph/text.hpp"

using namespace dovetail;

TEST(examples_of_the_standard) {
  const auto hex = [](std::string_view text) { return to_hex(sha256(text)); };
  CHECK_EQ(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK_EQ(hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK_EQ(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
           "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  const std::string million(1'000'000, 'a');
  CHECK_EQ(hex(million), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  for (const size_t chunk : {1, 55, 56, 63, 64, 65, 1000}) {
    Sha256 hash;
    for (size_t i = 0; i < million.size(); i += chunk)
      hash.update(million.data() + i, std::min(chunk, million.size() - i));
    CHECK_EQ(to_hex(hash.finish()), hex(million));
  }
}

TEST(a_program_by_its_content) {
  const auto hash = [](const std::string& at, const std::string& where, const std::string& guard = "") {
    const Json read = parse_json(
        R"({"dovetail":1,"inputs":[{"dtype":"float32","shape":[null]}],"numbers":[["size",0,0],2],)"
        R"("guards":[["less",1,0,0)" +
        guard + R"(]],"nodes":[{"op":"sum","in":[0],"at":{"axis":)" + at + "}" + where + R"(}],"outputs":[1]})");
    const std::string hex = to_hex(content_hash(read));
    CHECK_EQ(to_hex(content_hash(to_json(*program_of(read)))), hex);
    return hex;
  };
  CHECK_EQ(hash("[0]", ""), hash("[0]", R"(,"where":"model.py:84")"));
  CHECK_EQ(hash("[0]", ""), hash("[0]", "", R"(,"model.py:83")"));
  CHECK(hash("[0]", "") != hash("[-1]", ""));
}

CHECK_MAIN
