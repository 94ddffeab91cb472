/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finding a subject by what the command line says, and loading it.
 */
#include "subject/subject.h"

#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/install_path.h"
#include "base/object_file.h"
#include "base/reexec.h"
#include "base/text.h"

#ifndef PKGLIBDIR
#error "PKGLIBDIR is where make install puts the reference handlers"
#endif

/* The folders in which a reference handler can be, in the order of search: those of the build tree
 * that this program stands in, at its top or one folder below, and where they were installed,
 * beside the program or as configure was told. */
enum reference_folder { AT_THE_TOP, ONE_BELOW, BESIDE, INSTALLED, REFERENCE_FOLDERS };

/* Whether there is such a folder. */
static bool reference_folder(enum reference_folder which, char folder[PATH_MAX])
{
    if (which == BESIDE)
        return installed_path(PKGLIBDIR, folder);
    if (which == INSTALLED)
        return snprintf(folder, PATH_MAX, "%s", PKGLIBDIR) > 0 && access(folder, F_OK) == 0;
    static const char handlers[] = "/handlers";
    if (!place_of_program(folder))
        return false;
    char *end = which == ONE_BELOW ? strrchr(folder, '/') : folder + strlen(folder);
    if ((size_t)(end - folder) + sizeof handlers > PATH_MAX)
        return false;
    strcpy(end, handlers);
    return access(folder, F_OK) == 0;
}

static int is_shared_object(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 3 && strcmp(entry->d_name + length - 3, ".so") == 0;
}

void subject_each_reference(void (*each)(const char *name, void *data), void *data)
{
    for (enum reference_folder which = 0; which < REFERENCE_FOLDERS; which++) {
        char folder[PATH_MAX];
        struct dirent **entries;
        int count = reference_folder(which, folder)
                        ? scandir(folder, &entries, is_shared_object, alphasort)
                        : -1;
        if (count < 0)
            continue;
        for (int i = 0; i < count; i++) {
            entries[i]->d_name[strlen(entries[i]->d_name) - 3] = '\0';
            each(entries[i]->d_name, data);
            free(entries[i]);
        }
        free(entries);
        return; /* a build tree speaks for itself alone */
    }
}

static void append_name(const char *name, void *data)
{
    char *list = data;
    size_t used = strlen(list);
    if (used + strlen(name) + 3 < 256)
        snprintf(list + used, 256 - used, "%s%s", used > 0 ? ", " : "", name);
}

static char *find_reference(const char *name)
{
    for (enum reference_folder which = 0; which < REFERENCE_FOLDERS; which++) {
        char folder[PATH_MAX];
        if (!reference_folder(which, folder))
            continue;
        char *path;
        if (asprintf(&path, "%s/%s.so", folder, name) < 0)
            return NULL;
        if (access(path, F_OK) == 0)
            return path;
        free(path);
    }
    return NULL;
}

/* The colon before SYMBOL, or NULL: what follows it is a C identifier, and the whole is not
 * itself the name of a file. */
static const char *symbol_colon(const char *argument)
{
    const char *colon = strrchr(argument, ':');
    if (colon == NULL || colon == argument || access(argument, F_OK) == 0)
        return NULL;
    const char *p = colon + 1;
    if (*p == '\0' || (*p >= '0' && *p <= '9'))
        return NULL;
    for (; *p != '\0'; p++) {
        if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
              *p == '_'))
            return NULL;
    }
    return colon;
}

static bool looks_like_path(const char *word)
{
    size_t length = strlen(word);
    return strchr(word, '/') != NULL || (length > 3 && strcmp(word + length - 3, ".so") == 0);
}

static void consider(const char *name, void *suggestion)
{
    suggestion_consider(suggestion, name);
}

static const char *unknown_name(const char *argument)
{
    char known[256] = "";
    struct suggestion suggestion = suggestion_for(argument, strlen(argument));
    subject_each_reference(append_name, known);
    subject_each_reference(consider, &suggestion);
    return fmt("%s: there is no such file and no reference handler of that name%s%s%s",
               escape(argument), suggestion_words(&suggestion, ""),
               known[0] != '\0' ? "; the reference handlers are: " : ", nor any in " PKGLIBDIR,
               known);
}

/* python:MODULE:ATTR, both of which may be dotted, or python:MODULE; the default handler is had
 * from NumPy. */
static const char *find_in_python(const char *argument, struct subject_place *place)
{
    place->is_default = strcmp(argument, "default") == 0;
    const char *module = place->is_default ? "numpy" : argument + strlen("python:");
    size_t length = strcspn(module, ":");
    const char *attribute = module[length] == ':' ? module + length + 1 : NULL;
    if (length == 0 ||
        (attribute != NULL && (*attribute == '\0' || strchr(attribute, ':') != NULL)))
        return fmt("%s: say python:MODULE:ATTR or python:MODULE", escape(argument));
    place->argument = strdup(argument);
    place->path = strdup(argument);
    place->label = strdup(place->is_default ? argument : module);
    place->module = strndup(module, length);
    place->symbol = strdup(attribute != NULL ? attribute : "");
    if (place->argument != NULL && place->path != NULL && place->label != NULL &&
        place->module != NULL && place->symbol != NULL)
        return NULL;
    subject_place_free(place);
    return "out of memory";
}

const char *subject_find(const char *argument, struct subject_place *place)
{
    memset(place, 0, sizeof *place);
    if (*argument == '\0')
        return "--handler: the name is empty; name a shared object or a reference handler";
    if (strncmp(argument, "python:", 7) == 0 || strcmp(argument, "default") == 0)
        return find_in_python(argument, place);
    if (argument[strlen(argument) - 1] == ':' && access(argument, F_OK) != 0)
        return fmt("%s: no symbol stands behind the colon", escape(argument));
    const char *colon = symbol_colon(argument);
    char *file = colon != NULL ? strndup(argument, (size_t)(colon - argument)) : strdup(argument);
    if (file == NULL)
        return "out of memory";
    if (!looks_like_path(file))
        place->path = find_reference(file);
    if (place->path == NULL) {
        if (!looks_like_path(file) && access(file, F_OK) != 0) {
            free(file);
            return unknown_name(argument);
        }
        const char *wrong = object_file_wrong(file);
        if (wrong != NULL) {
            const char *line = fmt("%s: %s", escape(file), wrong);
            free(file);
            return line;
        }
        place->path = realpath(file, NULL);
    }
    place->argument = strdup(argument);
    place->symbol = colon != NULL ? strdup(colon + 1) : NULL;
    const char *slash = strrchr(file, '/');
    place->label = strdup(slash != NULL ? slash + 1 : file);
    free(file);
    if (place->path == NULL || place->argument == NULL || place->label == NULL ||
        (colon != NULL && place->symbol == NULL)) {
        subject_place_free(place);
        return "out of memory";
    }
    return NULL;
}

void subject_place_free(struct subject_place *place)
{
    free(place->argument);
    free(place->path);
    free(place->symbol);
    free(place->module);
    free(place->label);
    memset(place, 0, sizeof *place);
}

/* What a symbol is, by the object's own table: dlsym looks into those of its libraries, too. */
enum kind { KIND_ABSENT, KIND_DATA, KIND_FUNCTION, KIND_OTHER };
struct symbol {
    void *address;
    enum kind kind;
    size_t size;
};

static struct symbol look_up(void *object, const char *name)
{
    struct symbol symbol = {NULL, KIND_ABSENT, 0};
    Dl_info info;
    const ElfW(Sym) *entry = NULL;
    const struct link_map *own = NULL, *its = NULL;
    symbol.address = dlsym(object, name);
    if (symbol.address == NULL)
        return symbol;
    if (dlinfo(object, RTLD_DI_LINKMAP, &own) == 0 &&
        dladdr1(symbol.address, &info, (void **)&its, RTLD_DL_LINKMAP) != 0 && its != own)
        return symbol; /* that of a library that it is linked with */
    symbol.kind = KIND_OTHER;
    if (dladdr1(symbol.address, &info, (void **)&entry, RTLD_DL_SYMENT) == 0 || entry == NULL)
        return symbol;
    symbol.size = entry->st_size;
    switch (ELF64_ST_TYPE(entry->st_info)) {
    case STT_FUNC:
    case STT_GNU_IFUNC:
        symbol.kind = KIND_FUNCTION;
        break;
    case STT_OBJECT:
    case STT_COMMON:
        symbol.kind = KIND_DATA;
        break;
    }
    return symbol;
}

/* Takes the struct, or what the getter returns; `wanted` is KIND_OTHER if the symbol may be either.
 */
static enum load_state take_symbol(struct subject *subject, const char *name, enum kind wanted,
                                   char *why, size_t room)
{
    struct symbol symbol = look_up(subject->object, name);
    const char *reason = NULL;
    if (symbol.kind == KIND_ABSENT) {
        snprintf(why, room, "does not export %s; see nep49.h", escape(name));
    } else if (symbol.kind == KIND_OTHER || (wanted != KIND_OTHER && wanted != symbol.kind)) {
        snprintf(why, room,
                 "%s is %s; export a PyDataMem_Handler named nep49_handler, or a "
                 "function nep49_get_handler",
                 escape(name),
                 symbol.kind == KIND_DATA       ? "not a function"
                 : symbol.kind == KIND_FUNCTION ? "a function"
                                                : "not data, nor a function");
    } else if (symbol.kind == KIND_FUNCTION) {
        subject->getter = (PyDataMem_Handler * (*)(const char **)) symbol.address;
        subject->handler = subject->getter(&reason);
        if (subject->handler != NULL)
            return LOAD_DONE;
        snprintf(why, room, "%s",
                 reason != NULL ? escape(reason) : fmt("%s returned NULL and no reason", name));
        return LOAD_UNFIT;
    } else if (symbol.size < sizeof(PyDataMem_Handler)) {
        snprintf(why, room,
                 "%s has %zu bytes, and a PyDataMem_Handler has %zu; export the struct "
                 "itself, or a function nep49_get_handler that returns its address",
                 name, symbol.size, sizeof(PyDataMem_Handler));
    } else {
        subject->handler = symbol.address;
        return LOAD_DONE;
    }
    return LOAD_FAILED;
}

static enum load_state take_usual(struct subject *subject, char *why, size_t room)
{
    bool data = look_up(subject->object, "nep49_handler").kind != KIND_ABSENT;
    bool function = look_up(subject->object, "nep49_get_handler").kind != KIND_ABSENT;
    if (data != function)
        return data ? take_symbol(subject, "nep49_handler", KIND_DATA, why, room)
                    : take_symbol(subject, "nep49_get_handler", KIND_FUNCTION, why, room);
    snprintf(why, room,
             data ? "exports both nep49_handler and nep49_get_handler; say which with PATH:SYMBOL"
                  : "exports neither nep49_handler nor nep49_get_handler; see nep49.h, or say "
                    "PATH:SYMBOL");
    return LOAD_FAILED;
}

/* The claims are text with an end inside the object, whatever their type was. */
static enum load_state take_claims(struct subject *subject, char *why, size_t room)
{
    struct symbol symbol = look_up(subject->object, "nep49_claims");
    subject->claims = "";
    if (symbol.kind == KIND_ABSENT)
        return LOAD_DONE;
    if (symbol.kind != KIND_DATA || memchr(symbol.address, '\0', symbol.size) == NULL) {
        snprintf(why, room, "nep49_claims is not an array of char that ends in a NUL");
        return LOAD_FAILED;
    }
    subject->claims = symbol.address;
    return LOAD_DONE;
}

static enum load_state take_statistics(struct subject *subject, char *why, size_t room)
{
    struct symbol symbol = look_up(subject->object, "nep49_get_statistics");
    if (symbol.kind == KIND_ABSENT)
        return LOAD_DONE;
    if (symbol.kind != KIND_FUNCTION) {
        snprintf(why, room, "nep49_get_statistics is not a function");
        return LOAD_FAILED;
    }
    *(void **)&subject->get_statistics = symbol.address;
    return LOAD_DONE;
}

static enum load_state load_file(const char *path, const char *symbol, struct subject *subject,
                                 char *why, size_t room)
{
    memset(subject, 0, sizeof *subject);
    subject->claims = "";
    dlerror();
    subject->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (subject->object == NULL) {
        const char *error = dlerror();
        bool short_of_tls = error != NULL && strstr(error, "static TLS") != NULL;
        snprintf(why, room, "cannot be loaded: %s%s", error != NULL ? escape(error) : "no reason",
                 short_of_tls ? "; start the program with GLIBC_TUNABLES=" STATIC_TLS_TUNABLE : "");
        return LOAD_FAILED;
    }
    enum load_state state = symbol != NULL ? take_symbol(subject, symbol, KIND_OTHER, why, room)
                                           : take_usual(subject, why, room);
    if (state == LOAD_DONE)
        state = take_claims(subject, why, room);
    return state == LOAD_DONE ? take_statistics(subject, why, room) : state;
}

/* What its own claims contradict is nothing to hold it to.  abi.claims-known is for those that
 * cannot be read by themselves. */
static enum load_state join_claims(const struct subject_place *place, const struct subject *subject,
                                   char *why, size_t room)
{
    struct claims claims;
    if (place->claims == NULL || claims_parse(subject->claims, &claims) != NULL)
        return LOAD_DONE;
    const char *wrong = claims_add(place->claims, &claims);
    if (wrong == NULL)
        return LOAD_DONE;
    snprintf(why, room, "--claim: %s, which the handler claims itself", wrong);
    return LOAD_CONTRADICTED;
}

enum load_state subject_load(const struct subject_place *place, struct subject *subject, char *why,
                             size_t room)
{
    if (place->handler != NULL) {
        *subject = (struct subject){.handler = place->handler, .claims = ""};
        return LOAD_DONE;
    }
    if (place->module == NULL) {
        enum load_state state = load_file(place->path, place->symbol, subject, why, room);
        return state == LOAD_DONE ? join_claims(place, subject, why, room) : state;
    }
    snprintf(why, room, "a handler from a Python module is not taken here; name a shared object");
    return LOAD_FAILED;
}

struct claims subject_all_claims(const struct subject_place *place, const struct subject *subject)
{
    struct claims claims;
    claims_parse(place->claims != NULL ? place->claims : "", &claims);
    claims_add(subject->claims, &claims); /* behind them: no claim from outside weakens its own */
    return claims;
}

enum load_state subject_load_twin(const struct subject_place *place, struct subject *subject,
                                  char *why, size_t room)
{
    if (place->module != NULL || place->handler != NULL) {
        snprintf(why, room, "%s cannot be made twice",
                 place->module != NULL ? "a handler from a Python module"
                                       : "what is compiled into this program");
        return LOAD_FAILED;
    }
    int from = open(place->path, O_RDONLY | O_CLOEXEC);
    int to = memfd_create("conform-twin", MFD_CLOEXEC);
    struct stat status;
    enum load_state state = LOAD_FAILED;
    if (from < 0 || to < 0 || fstat(from, &status) != 0) {
        snprintf(why, room, "a copy of the object cannot be made: %s", strerror(errno));
    } else {
        size_t size = (size_t)status.st_size;
        if (sendfile(to, from, NULL, size) == (ssize_t)size)
            state = load_file(fmt("/proc/self/fd/%d", to), place->symbol, subject, why, room);
        else
            snprintf(why, room, "a copy of the object cannot be made: %s", strerror(errno));
    }
    if (from >= 0)
        close(from);
    if (to >= 0)
        close(to);
    return state;
}
