/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls as C, one a line, after the sources of the heap model and of runtime.c.
 */
#include "repro/print.h"

#include <inttypes.h>
#include <string.h>

#include "base/install_path.h"
#include "python/python_sources.h"

enum { USUAL_SECONDS = 10, SECONDS_TO_GROW = 60, RIGHT = 96 };

/* As a string of C.  What is not printed as it is is in octal, which ends by itself; a question
 * mark could begin a trigraph. */
static void print_string(FILE *file, const char *string)
{
    putc('"', file);
    for (const unsigned char *p = (const unsigned char *)string; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\' || *p == '?')
            fprintf(file, "\\%c", *p);
        else if (*p < ' ' || *p >= 0x7f)
            fprintf(file, "\\%03o", *p);
        else
            putc(*p, file);
    }
    putc('"', file);
}

/* Words of a comment, in as many lines as they take; none of them ends it. */
static void print_comment(FILE *file, const char *words)
{
    int column = fprintf(file, " *");
    while (*words != '\0') {
        size_t length = strcspn(words, " ");
        if (column + 1 + (int)length > RIGHT)
            column = fprintf(file, "\n *") - 1;
        column += fprintf(file, " ");
        for (size_t i = 0; i < length; i++, column++)
            putc(words[i] == '/' && i > 0 && words[i - 1] == '*' ? '|' : words[i], file);
        words += length;
        words += strspn(words, " ");
    }
    putc('\n', file);
}

/* As NEP 49 has it, for a file that includes nothing of ours. */
static const char handler_struct[] =
    "#include <stddef.h>\n#include <stdint.h>\n\n"
    "typedef struct {\n"
    "    void *ctx;\n"
    "    void *(*malloc)(void *ctx, size_t size);\n"
    "    void *(*calloc)(void *ctx, size_t nelem, size_t elsize);\n"
    "    void *(*realloc)(void *ctx, void *p, size_t size);\n"
    "    void (*free)(void *ctx, void *p, size_t size);\n"
    "} PyDataMemAllocator;\n"
    "typedef struct {\n"
    "    char name[127];\n"
    "    uint8_t version;\n"
    "    PyDataMemAllocator allocator;\n"
    "} PyDataMem_Handler;\n\n";

/* The model and the runtime, each after what it includes. */
static const char *const sources[] = {
    "heap_rule.h",  "random_mix.h", "float_state.h", "fill.h", "fill.c",
    "live_table.h", "heap.h",       "sorted_map.c",  "heap.c", "runtime.c"};

/* Prints one of our files without its includes of others. */
static void print_source(FILE *file, const char *name)
{
    static const char include[] = "#include \"";
    for (const char *line = python_source_find(name)->text, *next; *line != '\0'; line = next) {
        next = line + strcspn(line, "\n") + 1;
        if (strncmp(line, include, sizeof include - 1) != 0)
            fwrite(line, 1, (size_t)(next - line), file);
    }
    putc('\n', file);
}

/* ---- numbers ------------------------------------------------------------------------------- */

/* As one would write it. */
static void print_size(FILE *file, uint64_t size)
{
    if (size > UINT64_MAX - (1 << 20) && size < UINT64_MAX)
        fprintf(file, "SIZE_MAX - %" PRIu64, UINT64_MAX - size);
    else if (size == UINT64_MAX)
        fputs("SIZE_MAX", file);
    else if (size > (uint64_t)INT64_MAX)
        fprintf(file, "%" PRIu64 "u", size);
    else
        fprintf(file, "%" PRIu64, size);
}

static void print_block(FILE *file, const struct step *step)
{
    if (step->times == 1)
        fprintf(file, "%" PRIu32, step->block);
    else if (step->block == 0)
        fputs("i", file);
    else
        fprintf(file, "%" PRIu32 " + i", step->block);
}

/* ---- calls --------------------------------------------------------------------------------- */

/* do_NAME(block, first) or do_NAME(block, first, second); where `block` is NULL, without one. */
static void print_do(FILE *file, int indent, const char *name, const struct step *step, bool block,
                     int numbers)
{
    fprintf(file, "%*sdo_%s(", indent, "", name);
    if (block)
        print_block(file, step);
    if (numbers > 0) {
        fputs(block ? ", " : "", file);
        print_size(file, step->first);
    }
    if (numbers > 1) {
        fputs(", ", file);
        print_size(file, step->second);
    }
    fputs(");\n", file);
}

/* A block that is made and freed at once, which is one block each time. */
static void print_pair(FILE *file, int indent, const struct step *step)
{
    bool by_calloc = step->kind == STEP_CALLOC_FREE;
    struct step make = *step, end = *step;
    make.times = end.times = 1;
    if (by_calloc)
        end.first = step->first * step->second;
    print_do(file, indent, by_calloc ? "calloc" : "malloc", &make, true, by_calloc ? 2 : 1);
    print_do(file, indent, "free", &end, true, 1);
}

static void print_once(FILE *file, int indent, const struct step *step)
{
    switch ((enum step_kind)step->kind) {
    case STEP_MALLOC:
        print_do(file, indent, "malloc", step, true, 1);
        break;
    case STEP_CALLOC:
        print_do(file, indent, "calloc", step, true, 2);
        break;
    case STEP_REALLOC:
        print_do(file, indent, "realloc", step, true, 1);
        break;
    case STEP_FREE:
        print_do(file, indent, "free", step, true, 1);
        break;
    case STEP_MALLOC_FREE:
    case STEP_CALLOC_FREE:
        print_pair(file, indent, step);
        break;
    case STEP_FREE_NULL:
        print_do(file, indent, "free_null", step, false, 1);
        break;
    case STEP_FILL:
        fprintf(file, "%*sdo_fill(", indent, "");
        print_block(file, step);
        fprintf(file, ", 0x%016" PRIx64 ");\n", step->first);
        break;
    case STEP_LIMIT:
        print_do(file, indent, "limit", step, false, 1);
        break;
    case STEP_PAUSE:
        print_do(file, indent, "pause", step, false, 1);
        break;
    case STEP_STOP: /* for no file */
        break;
    case STEP_FORK:
        print_do(file, indent, "fork", step, false, 1);
        break;
    case STEP_ASK_GETTER:
        print_do(file, indent, "ask_getter", step, false, 0);
        break;
    case STEP_LOOK_AT_NAME:
        print_do(file, indent, "look_at_name", step, false, 0);
        break;
    case STEP_LOOK_AT_VERSION:
        print_do(file, indent, "look_at_version", step, false, 0);
        break;
    case STEP_LOOK_AT_FUNCTIONS:
        print_do(file, indent, "look_at_functions", step, false, 0);
        break;
    }
}

static void print_step(FILE *file, const struct step *step)
{
    enum { INDENT = 4 };
    bool is_block =
        step->error != 0 || step->kind == STEP_MALLOC_FREE || step->kind == STEP_CALLOC_FREE;
    int indent = INDENT;
    if (step->times > 1) {
        fprintf(file, "%*sfor (size_t i = 0; i < %" PRIu32 "; i++)%s\n", indent, "", step->times,
                is_block ? " {" : "");
        indent += INDENT;
    }
    if (step->error != 0)
        fprintf(file, "%*serrno = %d; /* %s */\n", indent, "", step->error, strerror(step->error));
    print_once(file, indent, step);
    if (step->times > 1 && is_block)
        fprintf(file, "%*s}\n", INDENT, "");
}

/* Where the steps that one thread makes in a row end. */
static size_t end_of_row(const struct call_list *list, size_t from)
{
    size_t end = from;
    while (end < list->count && list->at[end].thread == list->at[from].thread)
        end++;
    return end;
}

static void print_steps(FILE *file, const struct call_list *list, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        print_step(file, &list->at[i]);
}

/* Those of other threads first, each row as a function of its own. */
static void print_threads(FILE *file, const struct call_list *list)
{
    for (size_t from = 0, end; from < list->count; from = end) {
        end = end_of_row(list, from);
        if (list->at[from].thread == 0)
            continue;
        fprintf(file, "static void *from_%zu(void *unused)\n{\n", from + 1);
        print_steps(file, list, from, end);
        fputs("    return unused;\n}\n\n", file);
    }
}

static void print_calls(FILE *file, const struct call_list *list)
{
    print_threads(file, list);
    fputs("static void calls(void)\n{\n", file);
    for (size_t from = 0, end; from < list->count; from = end) {
        end = end_of_row(list, from);
        if (list->at[from].thread == 0)
            print_steps(file, list, from, end);
        else
            fprintf(file, "    in_thread(from_%zu);\n", from + 1);
    }
    fputs("}\n", file);
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void print_head(FILE *file, const struct reproducer *r)
{
    const struct step_checks *checks = &r->list->checks;
    fprintf(file, "/* %s\n *\n", r->id);
    print_comment(file, r->clause);
    print_comment(file, r->seen);
    fprintf(
        file,
        " *\n"
        " *     cc -O2 -g -o reproducer %s.c -ldl -lm -pthread && ./reproducer [OBJECT.so]\n"
        " *\n"
        " * prints what is wrong and exits with 1, or with 0 where nothing is.  Each call of the\n"
        " * handler is a line of calls(), at the end, and what is looked at stands before it.  It "
        "is\n"
        " * done in a child of the process: \"set follow-fork-mode child\" is for gdb.\n"
        " * Made by conform %s, of which it needs nothing.\n"
        " */\n"
        "#define _GNU_SOURCE\n"
        "#define OBJECT ",
        r->id, program_version);
    print_string(file, r->path);
    fputs("\n#define ENTRY ", file);
    print_string(file, r->entry);
    fprintf(file,
            "\n#define IS_GETTER %d\n"
            "#define ALIGNMENT %zu /* that is claimed, or 0 */\n"
            "#define CHECKS_ERRNO %d\n"
            "#define MILLISECONDS %d /* until what is live in the end is looked at */\n"
            "#define PROGRAMS %d /* that are tried, one after the other */\n"
            "#define SECONDS %d /* until something hangs */\n\n",
            r->is_getter, checks->alignment, checks->of_errno, checks->milliseconds,
            checks->of_growth ? 1 : 4, checks->of_growth ? SECONDS_TO_GROW : USUAL_SECONDS);
}

static void print_main(FILE *file, const struct step_checks *checks)
{
    if (checks->of_growth)
        fputs("\nstatic void again_and_again(void)\n{\n    repeat(calls);\n}\n", file);
    fprintf(file,
            "\nint main(int argc, char **argv)\n{\n"
            "    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {\n"
            "        fprintf(stderr, \"usage: %%s [OBJECT.so]\\n\", argv[0]);\n"
            "        return 2;\n"
            "    }\n"
            "    begin_watched(argv);\n"
            "    if (load(argc == 2 ? argv[1] : OBJECT, ENTRY, IS_GETTER) != 0)\n"
            "        return 2;\n"
            "    run_calls(%s);\n"
            "}\n",
            checks->of_growth ? "again_and_again" : "calls");
}

void print_reproducer(FILE *file, const struct reproducer *reproducer)
{
    const struct step_checks *checks = &reproducer->list->checks;
    print_head(file, reproducer);
    fputs(handler_struct, file);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        print_source(file, sources[i]);
    fputs("\n/* ---- what led to it "
          "------------------------------------------------------------------------ */\n\n",
          file);
    print_calls(file, reproducer->list);
    print_main(file, checks);
}
