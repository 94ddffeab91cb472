/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A reproducer: the calls as a table, then the sources of the heap model, of the executor and of
 * runtime.c.
 */
#include "search/show.h"

#include <inttypes.h>
#include <string.h>

#include "base/install_path.h"
#include "python/python_sources.h"
#include "repro/call_log.h"

enum { USUAL_SECONDS = 10, SECONDS_TO_GROW = 60, RIGHT = 96 };

/* As a string of C.  What is not printed as it is is in octal, which ends by itself; a question
 * mark could begin a trigraph. */
static void print_string(FILE *file, const char *name, const char *string)
{
    fprintf(file, "#define %s \"", name);
    for (const unsigned char *p = (const unsigned char *)string; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\' || *p == '?')
            fprintf(file, "\\%c", *p);
        else if (*p < ' ' || *p >= 0x7f)
            fprintf(file, "\\%03o", *p);
        else
            putc(*p, file);
    }
    fputs("\"\n", file);
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

/* The model, the executor and the runtime, each after what it includes; step.h and the calls come
 * before them. */
static const char *const sources[] = {
    "clock.h",   "heap_rule.h",    "random.h",       "float_state.h", "fill.h",
    "fill.c",    "interval_map.h", "interval_map.c", "heap.h",        "heap.c",
    "execute.h", "steps.c",        "execute.c",      "runtime.c"};

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

static void print_number(FILE *file, const char *member, uint64_t number)
{
    if (number != 0)
        fprintf(file, ", .%s = %" PRIu64 "%s", member, number,
                number > (uint64_t)INT64_MAX ? "u" : "");
}

static void print_step(FILE *file, const struct step *step)
{
    static const char *const kinds[] = {
        [STEP_MALLOC] = "MALLOC",
        [STEP_CALLOC] = "CALLOC",
        [STEP_REALLOC] = "REALLOC",
        [STEP_FREE] = "FREE",
        [STEP_MALLOC_FREE] = "MALLOC_FREE",
        [STEP_CALLOC_FREE] = "CALLOC_FREE",
        [STEP_FREE_NULL] = "FREE_NULL",
        [STEP_FILL] = "FILL",
        [STEP_LIMIT] = "LIMIT",
        [STEP_PAUSE] = "PAUSE",
        [STEP_STOP] = "STOP",
        [STEP_FORK] = "FORK",
        [STEP_ASK_GETTER] = "ASK_GETTER",
        [STEP_LOOK_AT_STRUCT] = "LOOK_AT_STRUCT",
        [STEP_LOCK] = "LOCK",
        [STEP_REFUSE] = "REFUSE",
    };
    fprintf(file, "    {STEP_%s, .times = %" PRIu32, kinds[step->kind], step->times);
    print_number(file, "block", step->block);
    print_number(file, "first", step->first);
    print_number(file, "second", step->second);
    print_number(file, "thread", step->thread);
    print_number(file, "error", step->error);
    fputs("}, /* ", file);
}

void reproducer_print(FILE *file, const struct reproducer *r)
{
    fprintf(file, "/* %s\n *\n", r->id);
    print_comment(file, r->clause);
    print_comment(file, r->seen);
    fprintf(
        file,
        " *\n"
        " *     cc -O2 -g -o reproducer %s.c -ldl -lm -pthread && ./reproducer [OBJECT.so]\n"
        " *\n"
        " * prints what is wrong and exits with 1, or with 0 if nothing is.  It makes the calls "
        "of\n"
        " * the table below, in a child of the process: \"set follow-fork-mode child\" is for "
        "gdb,\n"
        " * and \"break steps_do if step == &steps[0]\" stops before the first of them.  The rest\n"
        " * checks each call.  Made by conform %s, of which it needs nothing.\n"
        " */\n"
        "#define _GNU_SOURCE\n"
        "#define REPRODUCER\n",
        r->id, program_version);
    print_string(file, "OBJECT", r->path);
    print_string(file, "ENTRY", r->entry);
    fprintf(file,
            "#define IS_GETTER %d\n"
            "#define ALIGNMENT %zu /* that is claimed, or 0 */\n"
            "#define CHECKS_ERRNO %d\n"
            "#define BLOCKS %zu\n"
            "#define PROGRAMS %d /* that are tried, one after the other */\n"
            "#define SECONDS %d /* until something hangs */\n\n",
            r->is_getter, r->alignment, r->checks_errno, call_list_blocks(r->list),
            r->list->of_growth ? 1 : 4, r->list->of_growth ? SECONDS_TO_GROW : USUAL_SECONDS);
    print_source(file, "step.h");
    fputs("/* ---- the calls ---- */\n\nstatic struct step steps[] = {\n", file);
    show_steps(file, r->list, print_step, " */\n");
    fprintf(file,
            "};\n"
            "static const struct call_list calls = {\n"
            "    .at = steps, .count = sizeof steps / sizeof *steps, .of_growth = %d};\n\n",
            r->list->of_growth);
    fputs(handler_struct, file);
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        print_source(file, sources[i]);
}
