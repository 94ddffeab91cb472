/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/base/text.c: formatting without ownership, and the cleaning of untrusted bytes.
 */
#include "unit.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/text.h"

/* ---- text --------------------------------------------------------------------------------- */

START_TEST(text_is_good_for_fifteen_more_calls)
{
    const char *first = fmt("%d", -1);
    for (int i = 0; i < 15; i++)
        fmt("%d", i);
    ck_assert_str_eq(first, "-1");
}
END_TEST

/* Words, and how many of their bytes are left of them behind `before` spaces. */
static const struct {
    int before;
    const char *words;
    size_t left;
} cuts[] = {
    {0, "whole", 5},          {506, "whole", 5},      {507, "whole", 4},
    {511, "gone", 0},         {509, "\u00e9", 2},     /* two bytes, and room for both */
    {510, "\u00e9", 0},                               /* room for one: no half of a letter stays */
    {509, "\u20ac", 0},                               /* two of three */
    {508, "\u20ac", 3},       {508, "\U0001f40d", 0}, /* three of four */
    {507, "\U0001f40d", 4},   {510, "\xff\xfe", 1},   /* not UTF-8 to begin with: nothing to keep
                                                         together */
    {509, "\xa9\xa9\xa9", 2},
};

START_TEST(text_is_cut_between_letters)
{
    const char *whole = fmt("%*s%s", cuts[_i].before, "", cuts[_i].words);
    size_t before = (size_t)cuts[_i].before;
    ck_assert_uint_eq(strlen(whole), before + cuts[_i].left);
    ck_assert_int_eq(memcmp(whole + before, cuts[_i].words, cuts[_i].left), 0);
}
END_TEST

/* ---- sanitize --------------------------------------------------------------------------- */

static const struct {
    const char *from;
    size_t length;
    int keep_lines;
    const char *to;
} cleaned[] = {
    {"plain words", 11, 0, "plain words"},
    {"", 0, 0, ""},
    {"a\nb", 3, 0, "a\\x0ab"},
    {"a\nb", 3, 1, "a\nb"},
    {"a\r\tb", 4, 1, "a\\x0d\\x09b"},
    {"a\0b", 3, 0, "a\\x00b"},
    {"\x1b[31mred", 8, 0, "\\x1b[31mred"},
    {"\x7f", 1, 0, "\\x7f"},
    {"\u00e9\u20ac\U0001f40d", 9, 0, "\u00e9\u20ac\U0001f40d"},
    {"\u00a0", 2, 0, "\u00a0"},
    {"\xc2\x85", 2, 0, "\\xc2\\x85"}, /* NEL, a C1 control */
    {"\xc3", 1, 0, "\\xc3"},          /* cut short */
    {"\x80", 1, 0, "\\x80"},          /* begins with a continuation */
    {"\xc0\xaf", 2, 0, "\\xc0\\xaf"}, /* overlong "/" */
    {"\xe0\x80\xaf", 3, 0, "\\xe0\\x80\\xaf"},
    {"\xed\xa0\x80", 3, 0, "\\xed\\xa0\\x80"},          /* a surrogate */
    {"\xf4\x90\x80\x80", 4, 0, "\\xf4\\x90\\x80\\x80"}, /* past U+10FFFF */
    {"\xff", 1, 0, "\\xff"},
    {"\xe2\x80\xae", 3, 0, "\\xe2\\x80\\xae"},          /* U+202E turns the line round */
    {"\xe2\x80\x8b", 3, 0, "\\xe2\\x80\\x8b"},          /* zero width */
    {"\xe2\x80\xa8", 3, 0, "\\xe2\\x80\\xa8"},          /* line separator */
    {"\xe2\x81\xa6", 3, 0, "\\xe2\\x81\\xa6"},          /* U+2066 isolates */
    {"\xef\xbb\xbf", 3, 0, "\\xef\\xbb\\xbf"},          /* byte order mark */
    {"\xef\xbf\xbe", 3, 0, "\\xef\\xbf\\xbe"},          /* U+FFFE: XML has no place for it */
    {"\xef\xb7\x90", 3, 0, "\\xef\\xb7\\x90"},          /* U+FDD0, a noncharacter */
    {"\xf0\x9f\xbf\xbf", 4, 0, "\\xf0\\x9f\\xbf\\xbf"}, /* U+1FFFF, another */
    {"\\x41", 4, 0, "\\x41"},
};

START_TEST(clean_gives_what_the_table_says)
{
    char to[256];
    const char *from = cleaned[_i].from;
    ck_assert_ptr_eq(sanitize(to, sizeof to, from, cleaned[_i].length, cleaned[_i].keep_lines), to);
    ck_assert_str_eq(to, cleaned[_i].to);
}
END_TEST

/* True of text that can go into every format: valid UTF-8, as jansson checks it, and no control
 * character. */
static void assert_presentable(const char *words, int keep_lines)
{
    json_t *string = json_string(words);
    assert_in_loop(string != NULL);
    json_decref(string);
    for (const unsigned char *p = (const unsigned char *)words; *p != '\0'; p++) {
        assert_in_loop(*p >= 0x20 || (*p == '\n' && keep_lines));
        assert_in_loop(*p != 0x7f);
        assert_in_loop(!(p[0] == 0xc2 && p[1] < 0xa0));
    }
}

/* Bytes that begin, continue and break sequences turn up often. */
static void random_bytes(struct random *random, char *bytes, size_t length)
{
    static const unsigned char likely[] = {0xc2, 0xe0, 0xe2, 0xed, 0xef, 0xf0, 0xf4, 0x80,
                                           0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0x0a, 0x00, 0x41};
    for (size_t i = 0; i < length; i++) {
        uint64_t dice = random_next(random);
        bytes[i] = (char)(dice & 256 ? likely[dice % sizeof likely] : (unsigned char)dice);
    }
}

START_TEST(clean_keeps_to_its_room)
{
    struct random random = random_for(1, "text");
    for (int round = 0; round < 20000; round++) {
        char from[24], to[64];
        size_t length = random_below(&random, sizeof from + 1);
        size_t room = random_below(&random, sizeof to - 1);
        int keep_lines = (int)random_below(&random, 2);
        random_bytes(&random, from, length);
        memset(to, '!', sizeof to);
        sanitize(to, room, from, length, keep_lines);
        assert_in_loop(to[room] == '!');
        if (room == 0)
            continue;
        assert_in_loop(strnlen(to, room) < room);
        assert_presentable(to, keep_lines);
    }
}
END_TEST

static const struct {
    size_t room;
    const char *from, *to;
} roomy[] = {
    {16, "twelve bytes", "twelve bytes"},
    {13, "twelve bytes", "twelve bytes"},
    {12, "twelve bytes", "twelve b..."},
    {8, "twelve bytes", "twel..."},
    {4, "twelve bytes", "..."},
    {3, "twelve bytes", ""},
    {1, "twelve bytes", ""},
    {5, "", ""},
    {8, "abc\u20acd", "abc\u20acd"},
    {7, "abc\u20acd", "abc..."}, /* never a part of a letter */
    {8, "\x01\x01", "\\x01..."},
};

START_TEST(clean_says_where_it_cut)
{
    char to[32];
    sanitize(to, roomy[_i].room, roomy[_i].from, strlen(roomy[_i].from), 0);
    ck_assert_str_eq(to, roomy[_i].to);
}
END_TEST

START_TEST(safe_is_clean_within_511_bytes)
{
    char longest[700];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    const char *cut = escape(longest);
    ck_assert_uint_le(strlen(cut), 511);
    ck_assert_str_eq(cut + strlen(cut) - 4, "x...");
    ck_assert_str_eq(escape("a\nb"), "a\\x0ab");
}
END_TEST

/* ---- shell_quote --------------------------------------------------------------------------- */

static const struct {
    const char *word, *quoted;
} shell_words[] = {
    {"plain", "plain"},
    {"./a-b_c+d=e:f,g@h%i.so", "./a-b_c+d=e:f,g@h%i.so"},
    {"", "''"},
    {"two words", "'two words'"},
    {"it's", "'it'\\''s'"},
    {"$HOME `id` \"x\" \\ * ~ # ! & | ; < > ( )", "'$HOME `id` \"x\" \\ * ~ # ! & | ; < > ( )'"},
    {"caf\u00e9", "'caf\u00e9'"},
    {"a\nb", "$'a\\012b'"},
    {"a'\\\nb", "$'a\\'\\\\\\012b'"},
    {"\033[1m", "$'\\033[1m'"},
    {"\xff", "$'\\377'"},
    {"\0011", "$'\\0011'"},
};

START_TEST(shell_quotes_as_the_table_says)
{
    ck_assert_str_eq(shell_quote(shell_words[_i].word), shell_words[_i].quoted);
}
END_TEST

/* ---- did you mean ------------------------------------------------------------------------- */

static const char *const known[] = {"handler", "help", "json", "malloc.alignment",
                                    "calloc.alignment"};

static const struct {
    const char *word, *meant; /* "": none */
} suggestions[] = {
    {"hanlder", "handler"},                  /* swapped */
    {"handlr", "handler"},                   /* left out */
    {"handdler", "handler"},                 /* put in */
    {"jsan", "json"},                        /* another */
    {"hnaldre", ""},                         /* three, of seven letters */
    {"malloc.algnmnt", "malloc.alignment"},  /* two, of fourteen */
    {"calloc.aligment", "calloc.alignment"}, /* the nearer of two */
    {"halp", "help"},
    {"yaml", ""},
    {"", ""},
};

START_TEST(what_was_meant)
{
    struct suggestion suggestion =
        suggestion_for(suggestions[_i].word, strlen(suggestions[_i].word));
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        suggestion_consider(&suggestion, known[k]);
    char expected[64] = "";
    if (suggestions[_i].meant[0] != '\0')
        snprintf(expected, sizeof expected, " (did you mean --%s?)", suggestions[_i].meant);
    ck_assert_str_eq(suggestion_words(&suggestion, "--"), expected);
}
END_TEST

START_TEST(long_words_and_none)
{
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    struct suggestion suggestion = suggestion_for(longest, strlen(longest));
    suggestion_consider(&suggestion, "x");
    ck_assert_str_eq(suggestion_words(&suggestion, ""), "");
    suggestion = suggestion_for("x", 1);
    ck_assert_str_eq(suggestion_words(&suggestion, ""), "");
    suggestion_consider(&suggestion, longest);
    ck_assert_str_eq(suggestion_words(&suggestion, ""), "");
    suggestion = suggestion_for("xy=1", 2);
    suggestion_consider(&suggestion, "yx");
    ck_assert_str_eq(suggestion_words(&suggestion, ""), " (did you mean yx?)");
}
END_TEST

TCase *case_text(void)
{
    TCase *tcase = tcase_create("text");
    tcase_add_test(tcase, text_is_good_for_fifteen_more_calls);
    tcase_add_loop_test(tcase, text_is_cut_between_letters, 0, ROWS(cuts));
    tcase_add_loop_test(tcase, clean_gives_what_the_table_says, 0, ROWS(cleaned));
    tcase_add_test(tcase, clean_keeps_to_its_room);
    tcase_add_loop_test(tcase, clean_says_where_it_cut, 0, ROWS(roomy));
    tcase_add_test(tcase, safe_is_clean_within_511_bytes);
    tcase_add_loop_test(tcase, shell_quotes_as_the_table_says, 0, ROWS(shell_words));
    tcase_add_loop_test(tcase, what_was_meant, 0, ROWS(suggestions));
    tcase_add_test(tcase, long_words_and_none);
    return tcase;
}
