/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ELF header, read with care, and the hash of the whole file.
 */
#include "subject/object_file.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"

static const char *machine_name(unsigned machine)
{
    switch (machine) {
    case EM_386:
        return "32-bit x86";
    case EM_X86_64:
        return "x86-64";
    case EM_ARM:
        return "32-bit Arm";
    case EM_AARCH64:
        return "AArch64";
    case EM_PPC64:
        return "POWER";
    case EM_S390:
        return "S/390";
    case EM_RISCV:
        return "RISC-V";
    default:
        return text("machine %u", machine);
    }
}

/* The bytes that there are of the header at the beginning of the file; -1 with errno set. */
static int read_header(FILE *file, ElfW(Ehdr) * header)
{
    size_t got = file != NULL ? fread(header, 1, sizeof *header, file) : 0;
    return file == NULL || ferror(file) ? -1 : (int)got;
}

/* What this program itself was built for: read from its own file, which cannot lie. */
static bool read_own_header(ElfW(Ehdr) * header)
{
    FILE *file = fopen("/proc/self/exe", "rbe");
    bool got = read_header(file, header) == (int)sizeof *header;
    if (file != NULL)
        fclose(file);
    return got;
}

static const char *header_wrong(const ElfW(Ehdr) * header, int length)
{
    static const char build[] = "build a shared object with: cc -shared -fPIC";
    ElfW(Ehdr) own;
    if (length == 0)
        return text("is empty; %s", build);
    if (length < SELFMAG || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return text("is not a shared object (it has no ELF header); %s", build);
    if (length < (int)sizeof *header)
        return text("is cut short within its ELF header; %s", build);
    if (!read_own_header(&own))
        return NULL; /* nothing to compare with: let the loader judge */
    if (header->e_ident[EI_DATA] != own.e_ident[EI_DATA])
        return text("has the other byte order; build it for %s", machine_name(own.e_machine));
    bool same_machine = header->e_machine == own.e_machine;
    if (!same_machine || header->e_ident[EI_CLASS] != own.e_ident[EI_CLASS])
        return text("is built for %s%s, and this conform for %s; build it for that",
                    machine_name(header->e_machine),
                    !same_machine                             ? ""
                    : header->e_ident[EI_CLASS] == ELFCLASS32 ? " with 32-bit pointers"
                                                              : " with 64-bit pointers",
                    machine_name(own.e_machine));
    if (header->e_type == ET_REL)
        return text("is an object file that is not linked yet; %s", build);
    if (header->e_type != ET_DYN)
        return text("is a program or a core file, not a shared object; %s", build);
    return NULL;
}

/* The loader maps what the header promises, and whoever touches a page behind the end of the file
 * gets a SIGBUS. */
static const char *length_wrong(FILE *file, const ElfW(Ehdr) * header, size_t length)
{
    for (size_t i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;
        if (fseek(file, (long)(header->e_phoff + i * header->e_phentsize), SEEK_SET) != 0 ||
            fread(&segment, sizeof segment, 1, file) != 1)
            return text("is cut short: its table of segments lies behind its %zu bytes; copy it "
                        "again",
                        length);
        if (segment.p_type == PT_LOAD &&
            (segment.p_offset > length || segment.p_filesz > length - segment.p_offset))
            return text("is cut short: it has %zu bytes, and should have %zu; copy it again",
                        length, (size_t)(segment.p_offset + segment.p_filesz));
    }
    return NULL;
}

/* A section of the file with a NUL behind it, the caller's to free; NULL where there is none, and
 * the loader may judge. */
static void *read_section(FILE *file, const ElfW(Shdr) * section)
{
    enum { MOST = 64 << 20 };
    if (section->sh_type == SHT_NOBITS || section->sh_size > MOST)
        return NULL;
    char *bytes = calloc(1, section->sh_size + 1);
    if (bytes != NULL && (fseek(file, (long)section->sh_offset, SEEK_SET) != 0 ||
                          fread(bytes, 1, section->sh_size, file) != section->sh_size)) {
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

static bool read_section_header(FILE *file, const ElfW(Ehdr) * header, size_t i,
                                ElfW(Shdr) * section)
{
    return header->e_shentsize == sizeof *section && i < header->e_shnum &&
           fseek(file, (long)(header->e_shoff + i * sizeof *section), SEEK_SET) == 0 &&
           fread(section, sizeof *section, 1, file) == 1;
}

/* A runtime that has to be in the program before anything is allocated, known by the function that
 * each file which it looks after calls first. */
struct runtime {
    const char *name, *init, *library, *flag;
};
static const struct runtime runtimes[] = {
    {"AddressSanitizer", "__asan_init", "libasan.so", "address"},
    {"ThreadSanitizer", "__tsan_init", "libtsan.so", "thread"},
};

/* The name that an object has for the library of ThreadSanitizer, gcc's or clang's, among `length`
 * bytes of names; or NULL. */
static const char *tsan_library(const char *names, size_t length)
{
    for (const char *name = names; name < names + length; name += strlen(name) + 1) {
        if (strncmp(name, "libtsan.so", 10) == 0 || strncmp(name, "libclang_rt.tsan", 16) == 0)
            return name;
    }
    return NULL;
}

/* Which of them the symbols, `count` of them with names of `length` bytes, ask for; or NULL. */
static const struct runtime *wanted_runtime(const ElfW(Sym) * symbols, size_t count,
                                            const char *names, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (symbols[i].st_shndx != SHN_UNDEF || ELF64_ST_BIND(symbols[i].st_info) != STB_GLOBAL ||
            symbols[i].st_name >= length)
            continue;
        for (size_t k = 0; k < sizeof runtimes / sizeof *runtimes; k++) {
            if (strcmp(names + symbols[i].st_name, runtimes[k].init) == 0)
                return &runtimes[k];
        }
    }
    return NULL;
}

/* The symbols that the loader knows of, the caller's to free. */
struct symbols {
    ElfW(Sym) * at;
    size_t count;
    char *names;
    size_t length; /* of them */
};

static struct symbols read_symbols(FILE *file, const ElfW(Ehdr) * header)
{
    struct symbols symbols = {.at = NULL};
    ElfW(Shdr) table = {.sh_type = SHT_NULL}, names;
    for (size_t i = 0; table.sh_type != SHT_DYNSYM; i++) {
        if (!read_section_header(file, header, i, &table))
            return symbols; /* it has none */
    }
    if (!read_section_header(file, header, table.sh_link, &names))
        return symbols;
    symbols.at = read_section(file, &table);
    symbols.names = read_section(file, &names);
    if (symbols.at != NULL && symbols.names != NULL) {
        symbols.count = table.sh_size / sizeof *symbols.at;
        symbols.length = names.sh_size;
    }
    return symbols;
}

static void free_symbols(struct symbols *symbols)
{
    free(symbols->at);
    free(symbols->names);
}

/* The runtime that the object wants, or NULL; `library` receives what it calls that of
 * ThreadSanitizer, or "". */
static const struct runtime *runtime_of(FILE *file, const ElfW(Ehdr) * header,
                                        char library[OBJECT_NAME])
{
    struct symbols symbols = read_symbols(file, header);
    const char *named = tsan_library(symbols.names, symbols.length);
    const struct runtime *runtime =
        wanted_runtime(symbols.at, symbols.count, symbols.names, symbols.length);
    snprintf(library, OBJECT_NAME, "%s", named != NULL ? named : "");
    free_symbols(&symbols);
    return runtime;
}

static bool is_of_tsan(const struct runtime *runtime)
{
    return runtime != NULL && strcmp(runtime->flag, "thread") == 0;
}

/* Without its runtime the object ends the process as it is loaded, or cannot be loaded. */
static const char *runtime_wrong(FILE *file, const ElfW(Ehdr) * header, bool tsan_comes)
{
    char library[OBJECT_NAME];
    const struct runtime *runtime = runtime_of(file, header, library);
    if (runtime == NULL || dlsym(RTLD_DEFAULT, runtime->init) != NULL ||
        (tsan_comes && is_of_tsan(runtime)))
        return NULL;
    return text("is built with -fsanitize=%s, and %s is not in this program; begin the command "
                "with LD_PRELOAD=$(gcc -print-file-name=%s)",
                runtime->flag, runtime->name, runtime->library);
}

const char *object_file_wrong(const char *path, bool tsan_comes)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return errno == ENOENT ? "there is no such file" : text("%s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return "is a directory; name the shared object in it";
    if (!S_ISREG(status.st_mode))
        return "is not a regular file; name a shared object";
    ElfW(Ehdr) header;
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return text("cannot be read: %s", strerror(errno));
    int length = read_header(file, &header);
    const char *wrong =
        length < 0 ? text("cannot be read: %s", strerror(errno)) : header_wrong(&header, length);
    if (wrong == NULL)
        wrong = length_wrong(file, &header, (size_t)status.st_size);
    if (wrong == NULL)
        wrong = runtime_wrong(file, &header, tsan_comes);
    fclose(file);
    return wrong;
}

bool object_file_wants_tsan(const char *path, char library[OBJECT_NAME])
{
    ElfW(Ehdr) header;
    FILE *file = fopen(path, "rbe");
    bool wants = read_header(file, &header) == (int)sizeof header &&
                 is_of_tsan(runtime_of(file, &header, library));
    if (file != NULL)
        fclose(file);
    return wants;
}

/* The name of one of Python's functions, or of its library. */
static bool is_of_python(const char *name)
{
    return strncmp(name, "Py", 2) == 0 || strncmp(name, "_Py", 3) == 0 ||
           strncmp(name, "libpython", 9) == 0;
}

bool object_file_wants_python(const char *path)
{
    ElfW(Ehdr) header;
    bool wants = false;
    FILE *file = fopen(path, "rbe");
    if (read_header(file, &header) == (int)sizeof header) {
        struct symbols symbols = read_symbols(file, &header);
        for (size_t at = 0; at < symbols.length; at += strlen(symbols.names + at) + 1)
            wants = wants || is_of_python(symbols.names + at);
        free_symbols(&symbols);
    }
    if (file != NULL)
        fclose(file);
    return wants;
}

int object_file_sha256(const char *path, char hex[SHA256_HEX])
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return -1;
    struct sha256_ctx context;
    sha256_init(&context);
    unsigned char buffer[16384]; /* whoever has a small stack has room for it */
    size_t length;
    while ((length = fread(buffer, 1, sizeof buffer, file)) > 0)
        sha256_update(&context, length, buffer);
    int error = ferror(file) ? errno : 0;
    fclose(file);
    if (error != 0) {
        errno = error;
        return -1;
    }
    unsigned char digest[SHA256_DIGEST_SIZE];
    sha256_digest(&context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return 0;
}
