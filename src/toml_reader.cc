// SPDX-License-Identifier: BSD-3-Clause
//
// conform-toml: what is TOML on stdin becomes JSON on stdout, with the place of each value.
//
// A program of its own, because toml++ is C++: libstdc++ stays out of every process in which a
// handler runs, and whatever a file does to its reader, conform is told how that ended.
#define TOML_EXCEPTIONS 0
// What toml++ takes for granted, and is not so, conform tells in its own words.
#define TOML_ASSERT(expression) (static_cast<bool>(expression) ? void(0) : std::_Exit(1))
#define TOML_ENABLE_FORMATTERS 0
#include <cstdlib>
#include <toml++/toml.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <string>

#include <jansson.h>
#include <unistd.h>

namespace
{

json_t *string(std::string_view words)
{
    return json_stringn(words.data(), words.size());
}

json_t *date(const toml::date &day)
{
    char words[32];
    snprintf(words, sizeof words, "%04u-%02u-%02u", unsigned{day.year}, unsigned{day.month},
             unsigned{day.day});
    return json_string(words);
}

json_t *placed(const toml::source_position &place, const char *kind, json_t *value)
{
    return json_pack("{s:I, s:I, s:o}", "line", static_cast<json_int_t>(place.line), "column",
                     static_cast<json_int_t>(place.column), kind, value);
}

// One member says what kind of value it is: a table is an array of such, each with its "key".  What
// lies deeper than the values of a list of tables is of another kind.
json_t *object(const toml::node &node, int depth = 0)
{
    const int deepest = 4;
    const toml::source_position &place = node.source().begin;
    if (depth > deepest)
        return placed(place, "other", json_null());
    if (const toml::table *table = node.as_table()) {
        json_t *members = json_array();
        for (auto &&[key, value] : *table) {
            json_t *member = object(value, depth + 1);
            json_object_set_new(member, "key", string(key.str()));
            json_array_append_new(members, member);
        }
        return placed(place, "table", members);
    }
    if (const toml::array *array = node.as_array()) {
        json_t *members = json_array();
        for (const toml::node &member : *array)
            json_array_append_new(members, object(member, depth + 1));
        return placed(place, "array", members);
    }
    if (const toml::value<std::string> *words = node.as_string())
        return placed(place, "string", string(words->get()));
    if (const toml::value<toml::date> *day = node.as_date())
        return placed(place, "date", date(day->get()));
    return placed(place, "other", json_null());
}

// TOML has none anywhere, and toml++ 3.3 stumbles over one where it looks for a key.
bool is_control(char letter)
{
    return (letter >= 0 && letter < ' ' && std::strchr("\t\n\r", letter) == nullptr) ||
           letter == '\0' || letter == '\x7f';
}

json_t *read(const std::string &text)
{
    auto found = std::find_if(text.begin(), text.end(), is_control);
    if (found != text.end()) {
        auto line = std::count(text.begin(), found, '\n') + 1;
        auto begin = std::find(std::make_reverse_iterator(found), text.rend(), '\n').base();
        return placed({static_cast<toml::source_index>(line),
                       static_cast<toml::source_index>(found - begin + 1)},
                      "error", string("a control character"));
    }
    toml::parse_result result = toml::parse(text);
    return result ? object(result.table())
                  : placed(result.error().source().begin, "error",
                           string(result.error().description()));
}

} // namespace

int main()
{
    json_t *root = read({std::istreambuf_iterator<char>(std::cin), {}});
    bool written = root != nullptr && json_dumpf(root, stdout, 0) == 0 && std::fflush(stdout) == 0;
    _exit(written ? 0 : 1);
}
