// SPDX-License-Identifier: BSD-3-Clause
//
// libFuzzer's entry for lists of waivers: whatever is in one that conform hands to conform-toml, it
// becomes JSON.  Where toml++ finds that it took something for granted which is not so,
// conform-toml ends with 1, and here the input ends.
#include <csetjmp>
#include <cstdint>

namespace
{
std::jmp_buf stumbled;
}
#define TOML_ASSERT(expression)                                                                    \
    (static_cast<bool>(expression) ? void(0) : std::longjmp(stumbled, 1))
#define main reader_main
#include "../src/toml_reader.cc"
#undef main

namespace
{

// As open_file() of src/report/expectations.c lets none of them through.
bool has_long_line(const std::string &text)
{
    const std::size_t longest = 2000;
    std::size_t begin = 0, end;
    while ((end = text.find('\n', begin)) != std::string::npos) {
        if (end - begin > longest)
            return true;
        begin = end + 1;
    }
    return text.size() - begin > longest;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *bytes, std::size_t length)
{
    static std::string text; // not on the stack: longjmp() destroys nothing
    text.assign(reinterpret_cast<const char *>(bytes), length);
    if (has_long_line(text) || setjmp(stumbled) != 0)
        return 0;
    json_t *root = read(text);
    if (root == nullptr)
        std::abort();
    json_decref(root);
    return 0;
}
