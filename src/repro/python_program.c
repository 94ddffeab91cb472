/* SPDX-License-Identifier: BSD-3-Clause
 *
 * extract.py puts the program together, in an interpreter of its own, as nothing here runs Python.
 */
#include "repro/python_program.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/program_version.h"
#include "base/text.h"
#include "python/python_sources.h"

enum { SECONDS = 25 }; /* more than the program itself gives the property */

static json_t *all_sources(void)
{
    json_t *sources = json_object();
    for (const struct python_source *source = python_sources; source->name != NULL; source++)
        json_object_set_new(sources, source->name, json_string(source->text));
    return sources;
}

static json_t *all_calls(const struct call_log *log)
{
    json_t *calls = json_array();
    for (uint32_t i = 0; i < log->python_count && i < MOST_PYTHON_CALLS; i++)
        json_array_append_new(calls,
                              json_pack("[s, s]", log->python[i].module, log->python[i].function));
    return calls;
}

/* What extract.py reads, as a file without a name; -1 with errno set. */
static int input_of(const struct python_program *program)
{
    int file = memfd_create("property", MFD_CLOEXEC);
    json_t *value = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o}", "id", program->id, "clause",
                              program->clause, "seen", program->seen, "version", program_version,
                              "sources", all_sources(), "calls", all_calls(program->log));
    bool written = file >= 0 && json_dumpfd(value, file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0;
    json_decref(value);
    if (written)
        return file;
    close(file);
    return -1;
}

/* All that is in the file, to the other. */
static bool copy(int from, FILE *to)
{
    char bytes[4096];
    ssize_t length = lseek(from, 0, SEEK_SET) == 0 ? 0 : -1;
    while (length >= 0 && (length = read(from, bytes, sizeof bytes)) > 0)
        fwrite(bytes, 1, (size_t)length, to);
    return length == 0 && fflush(to) == 0;
}

const char *python_program_print(FILE *file, const struct python_program *program)
{
    const struct subject_place *place = program->place;
    bool is_module = place != NULL && place->module != NULL;
    const char *object = place == NULL ? "-" : is_module ? "" : place->path;
    const char *entry = is_module ? place->symbol : program->entry;
    const char *words[] = {
        program->python,
        "-I",
        "-c",
        python_source_find("extract")->text,
        object,
        entry != NULL ? entry : "",
        is_module ? place->module : "",
        program->is_getter ? "getter" : "struct",
        text("%llu", (unsigned long long)program->seed),
        NULL,
    };
    int input = input_of(program), output = -1;
    struct attempt made = {.outcome = NOT_TRIED};
    if (input >= 0)
        made = attempt_command(words, input, SECONDS, &output);
    const char *why = made.outcome != NOT_REPRODUCED ? text("%s", made.line) : NULL;
    if (why == NULL && !copy(output, file))
        why = strerror(errno);
    close(input);
    close(output);
    return why;
}

const char *python_program_shorten(FILE *file, const struct python_program *program,
                                   const char *path, double seconds)
{
    const char *source = python_source_find("shorten")->text, *why = NULL;
    int input = memfd_create("shorten", MFD_CLOEXEC), output = -1;
    ssize_t length = (ssize_t)strlen(source);
    struct attempt made = {.outcome = NOT_TRIED};
    struct subject_place sound;
    const char *without = subject_find("aligned", &sound);
    /* No -c: NumPy may be there by PYTHONPATH, and nothing that lies in this folder is to be. */
    const char *words[] = {program->python,
                           "/dev/stdin",
                           path,
                           text("%g", seconds),
                           without == NULL ? sound.path : NULL,
                           NULL};
    if (input >= 0 && write(input, source, (size_t)length) == length &&
        lseek(input, 0, SEEK_SET) == 0)
        made = attempt_command(words, input, SECONDS + (int)(2 * seconds), &output);
    if (made.outcome != NOT_REPRODUCED)
        why = text("%s", made.line);
    else if (!copy(output, file))
        why = strerror(errno);
    close(input);
    close(output);
    subject_place_free(&sound);
    return why;
}

struct attempt python_program_try(const struct python_program *program, const char *path,
                                  bool plain)
{
    const char *words[] = {program->python, path, plain ? "-" : NULL, NULL};
    return attempt_command(words, -1, SECONDS, NULL);
}
