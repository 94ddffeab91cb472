/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Function, file and line of the handler's code in which a failure showed.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "report/present.h"
#include "report/report.h"
#include "supervise/child.h"

/* "mine_realloc in libmine.so", or "libmine.so+0x1139" without a symbol. */
static const char *place_words(const struct code_place *place)
{
    const char *object = CLEAN(place->object), *slash = strrchr(object, '/');
    object = slash != NULL ? slash + 1 : object;
    return place->symbol[0] != '\0' ? fmt("%s in %s", CLEAN(place->symbol), object)
                                    : fmt("%s+%#zx", object, (size_t)place->offset);
}

static bool has_place(const struct run *run, size_t i)
{
    const struct verdict_facts *facts = &verdict_facts[run->outcomes[i].verdict];
    return facts->against && run->outcomes[i].cause == NULL &&
           run->records[i]->place.object[0] != '\0';
}

#ifdef HAVE_ELFUTILS_LIBDWFL_H
#include <elfutils/libdwfl.h>

/* Loaded when a failure is reported: a run without one, and the handler's process, do without. */
#define LIBDW "libdw.so.1"
#define FUNCTIONS(FUNCTION)                                                                        \
    FUNCTION(dwfl_begin)                                                                           \
    FUNCTION(dwfl_report_elf)                                                                      \
    FUNCTION(dwfl_report_end)                                                                      \
    FUNCTION(dwfl_module_addrname)                                                                 \
    FUNCTION(dwfl_module_getsrc)                                                                   \
    FUNCTION(dwfl_lineinfo)                                                                        \
    FUNCTION(dwfl_build_id_find_elf)                                                               \
    FUNCTION(dwfl_standard_find_debuginfo)                                                         \
    FUNCTION(dwfl_offline_section_address)

#define POINTER(name) __typeof__(name) *name;
static struct {
    FUNCTIONS(POINTER)
} dw;

static bool load_libdw(void)
{
    void *library = dlopen(LIBDW, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        return false;
#define FIND(name)                                                                                 \
    if ((dw.name = (__typeof__(dw.name))dlsym(library, #name)) == NULL)                            \
        return false;
    FUNCTIONS(FIND)
#undef FIND
    return true;
}

/* The path as one would type it in the working directory. */
static const char *short_path(const char *path)
{
    char here[PATH_MAX];
    size_t length = getcwd(here, sizeof here) != NULL ? strlen(here) : 0;
    bool is_below = length > 1 && strncmp(path, here, length) == 0 && path[length] == '/';
    return is_below ? path + length + 1 : path;
}

/* Returns the words for a file with debug information or symbols, else NULL. */
static const char *words_of_debug_information(const struct code_place *place)
{
    enum { BASE = 0x10000 };
    const Dwfl_Callbacks callbacks = {.find_elf = dw.dwfl_build_id_find_elf,
                                      .find_debuginfo = dw.dwfl_standard_find_debuginfo,
                                      .section_address = dw.dwfl_offline_section_address};
    struct stat status;
    int number = 0;
    Dwfl *dwfl = dw.dwfl_begin(&callbacks);
    if (dwfl == NULL || stat(place->object, &status) != 0 || !S_ISREG(status.st_mode))
        return NULL;
    Dwfl_Module *module = dw.dwfl_report_elf(dwfl, "handler", place->object, -1, BASE, false);
    if (module == NULL || dw.dwfl_report_end(dwfl, NULL, NULL) != 0)
        return NULL;
    const char *function = dw.dwfl_module_addrname(module, BASE + place->offset);
    Dwfl_Line *line = dw.dwfl_module_getsrc(module, BASE + place->offset);
    const char *file =
        line != NULL ? dw.dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL) : NULL;
    if (function == NULL)
        return NULL;
    if (file != NULL)
        return fmt("%s at %s:%d", escape(function), escape(short_path(file)), number);
    const char *slash = strrchr(place->object, '/');
    return fmt("%s in %s", escape(function), escape(slash != NULL ? slash + 1 : place->object));
}

/* In a child: a damaged file may crash libdw or keep it busy. */
static _Noreturn void print_words(const struct run *run, int fd)
{
    FILE *file = fdopen(fd, "w");
    unsetenv("DEBUGINFOD_URLS"); /* nothing is downloaded */
    if (file == NULL || !load_libdw())
        _exit(1);
    for (size_t i = 0; i < run->count; i++) {
        const char *words =
            has_place(run, i) ? words_of_debug_information(&run->records[i]->place) : NULL;
        if (words != NULL)
            fprintf(file, "%zu %s\n", i, words);
        fflush(file);
    }
    _exit(0);
}

static bool is_too_slow(void *begin)
{
    enum { MOST_SECONDS = 5 };
    return clock_since(*(uint64_t *)begin) > MOST_SECONDS;
}

static void read_debug_information(struct run *run)
{
    uint64_t begin = clock_now();
    int status, fd = present_memory();
    size_t length;
    child_prepare();
    pid_t pid = child_fork(false);
    if (pid == 0)
        print_words(run, fd);
    if (pid > 0)
        child_wait(pid, is_too_slow, &begin, &status);
    char *lines = present_read(fd, &length), *rest = lines, *line;
    while ((line = strsep(&rest, "\n")) != NULL && rest != NULL) {
        char *words;
        size_t i = strtoul(line, &words, 10);
        if (i < run->count && *words == ' ') {
            free(run->places[i]);
            run->places[i] = strdup(words + 1);
        }
    }
    free(lines);
}
#endif

void run_symbolize(struct run *run)
{
    bool any = false;
    run->places = allocate(run->count, sizeof *run->places);
    for (size_t i = 0; i < run->count; i++) {
        if (!has_place(run, i))
            continue;
        any = true;
        run->places[i] = strdup(place_words(&run->records[i]->place));
    }
#ifdef HAVE_ELFUTILS_LIBDWFL_H
    if (any)
        read_debug_information(run);
#else
    (void)any;
#endif
}
