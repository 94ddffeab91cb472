/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ELF header, read with care, and the hash of the whole file.
 */
#include "base/object_file.h"

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

/* The header of this program, which the linker defines. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

static const char *machine_name(unsigned machine)
{
    static const struct {
        unsigned number;
        const char *name;
    } machines[] = {{EM_386, "32-bit x86"},  {EM_X86_64, "x86-64"}, {EM_ARM, "32-bit Arm"},
                    {EM_AARCH64, "AArch64"}, {EM_PPC64, "POWER"},   {EM_S390, "S/390"},
                    {EM_RISCV, "RISC-V"}};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        if (machines[i].number == machine)
            return machines[i].name;
    }
    return fmt("machine %u", machine);
}

/* Returns the number of bytes of the header that the file has, or -1 with errno set. */
static int read_header(FILE *file, ElfW(Ehdr) * header)
{
    size_t got = file != NULL ? fread(header, 1, sizeof *header, file) : 0;
    return file == NULL || ferror(file) ? -1 : (int)got;
}

static const char *header_wrong(const ElfW(Ehdr) * header, int length)
{
    static const char build[] = "build a shared object with: cc -shared -fPIC";
    const ElfW(Ehdr) *own = &__ehdr_start;
    if (length == 0)
        return fmt("is empty; %s", build);
    if (length < SELFMAG || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
        return fmt("is not a shared object (it has no ELF header); %s", build);
    if (length < (int)sizeof *header)
        return fmt("is cut short within its ELF header; %s", build);
    if (header->e_ident[EI_DATA] != own->e_ident[EI_DATA])
        return fmt("has the other byte order; build it for %s", machine_name(own->e_machine));
    bool same_machine = header->e_machine == own->e_machine;
    if (!same_machine || header->e_ident[EI_CLASS] != own->e_ident[EI_CLASS])
        return fmt("is built for %s%s, and this conform for %s; build it for that",
                   machine_name(header->e_machine),
                   !same_machine                             ? ""
                   : header->e_ident[EI_CLASS] == ELFCLASS32 ? " with 32-bit pointers"
                                                             : " with 64-bit pointers",
                   machine_name(own->e_machine));
    if (header->e_type == ET_REL)
        return fmt("is an object file that is not linked yet; %s", build);
    if (header->e_type != ET_DYN)
        return fmt("is a program or a core file, not a shared object; %s", build);
    return NULL;
}

/* The loader maps all segments, and an access to a page after the end of the file is a SIGBUS. */
static const char *length_wrong(FILE *file, const ElfW(Ehdr) * header, size_t length)
{
    for (size_t i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;
        if (fseek(file, (long)(header->e_phoff + i * header->e_phentsize), SEEK_SET) != 0 ||
            fread(&segment, sizeof segment, 1, file) != 1)
            return fmt("is cut short: its table of segments lies behind its %zu bytes; copy it "
                       "again",
                       length);
        if (segment.p_type == PT_LOAD &&
            (segment.p_offset > length || segment.p_filesz > length - segment.p_offset))
            return fmt("is cut short: it has %zu bytes, and should have %zu; copy it again", length,
                       (size_t)(segment.p_offset + segment.p_filesz));
    }
    return NULL;
}

/* Returns a section of the file with a NUL after it, which the caller frees, or NULL. */
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

/* The sanitizers, the one whose runtime has those of others in it first.  The symbols that a file
 * asks for begin with what it calls of the runtime. */
static const struct sanitizer sanitizers[] = {
    {"AddressSanitizer", "address", "__asan_init", "__asan_init", "libasan.so", "libclang_rt.asan"},
    {"ThreadSanitizer", "thread", "__tsan_init", "__tsan_init", "libtsan.so", "libclang_rt.tsan"},
    {"MemorySanitizer", "memory", "__msan_init", "__msan_init", NULL, NULL},
    {"HWAddressSanitizer", "hwaddress", "__hwasan_init", "__hwasan_init", NULL, NULL},
    {"LeakSanitizer", "leak", NULL, "__lsan_do_leak_check", "liblsan.so", NULL},
    {"UndefinedBehaviorSanitizer", "undefined", "__ubsan_handle_", "__ubsan_handle_add_overflow",
     "libubsan.so", "libclang_rt.ubsan_standalone"},
};
enum { SANITIZERS = sizeof sanitizers / sizeof *sanitizers };

static bool matches(const char *word, const char *beginning)
{
    return beginning != NULL && begins_with(word, beginning);
}

/* The name among `length` bytes of names that is of the sanitizer's library, or NULL. */
static const char *library_among(const char *names, size_t length,
                                 const struct sanitizer *sanitizer)
{
    for (const char *name = names; name < names + length; name += strlen(name) + 1) {
        if (matches(name, sanitizer->gcc) || matches(name, sanitizer->clang))
            return name;
    }
    return NULL;
}

/* Whether one of the symbols, `count` of them with names of `length` bytes, asks for it. */
static bool is_asked_for(const struct sanitizer *sanitizer, const ElfW(Sym) * symbols, size_t count,
                         const char *names, size_t length)
{
    for (size_t i = 0; i < count; i++) {
        if (symbols[i].st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbols[i].st_info) == STB_GLOBAL &&
            symbols[i].st_name < length && matches(names + symbols[i].st_name, sanitizer->symbol))
            return true;
    }
    return false;
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

/* By the dynamic symbols, and for the one that has none by its library. */
static void find_sanitizer(FILE *file, const ElfW(Ehdr) * header, struct object_sanitizer *found)
{
    struct symbols symbols = read_symbols(file, header);
    for (size_t k = 0; k < SANITIZERS && symbols.count > 0 && found->sanitizer == NULL; k++) {
        const char *library = library_among(symbols.names, symbols.length, &sanitizers[k]);
        bool is_named = sanitizers[k].symbol == NULL && library != NULL;
        if (!is_named &&
            !is_asked_for(&sanitizers[k], symbols.at, symbols.count, symbols.names, symbols.length))
            continue;
        found->sanitizer = &sanitizers[k];
        snprintf(found->library, sizeof found->library, "%s", library != NULL ? library : "");
    }
    free_symbols(&symbols);
}

/* The version of clang that has left its name in the object, or 0.  The section for that, .comment,
 * has strings, and is not loaded. */
static int find_clang(FILE *file, const ElfW(Ehdr) * header)
{
    static const char name[] = "clang version ";
    ElfW(Shdr) section;
    int version = 0;
    for (size_t i = 0; version == 0 && read_section_header(file, header, i, &section); i++) {
        bool is_text = (section.sh_flags & (SHF_ALLOC | SHF_STRINGS)) == SHF_STRINGS &&
                       section.sh_type == SHT_PROGBITS;
        char *words = is_text ? read_section(file, &section) : NULL;
        char *found = words != NULL ? memmem(words, section.sh_size, name, strlen(name)) : NULL;
        version = found != NULL ? atoi(found + strlen(name)) : 0;
        free(words);
    }
    return version;
}

const char *object_file_wrong(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return errno == ENOENT ? "there is no such file" : fmt("%s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return "is a directory; name the shared object in it";
    if (!S_ISREG(status.st_mode))
        return "is not a regular file; name a shared object";
    ElfW(Ehdr) header;
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return fmt("cannot be read: %s", strerror(errno));
    int length = read_header(file, &header);
    const char *wrong =
        length < 0 ? fmt("cannot be read: %s", strerror(errno)) : header_wrong(&header, length);
    if (wrong == NULL)
        wrong = length_wrong(file, &header, (size_t)status.st_size);
    fclose(file);
    return wrong;
}

bool object_file_sanitizer(const char *path, struct object_sanitizer *found)
{
    ElfW(Ehdr) header;
    FILE *file = fopen(path, "rbe");
    *found = (struct object_sanitizer){NULL, "", 0};
    if (read_header(file, &header) == (int)sizeof header) {
        find_sanitizer(file, &header, found);
        found->clang = found->sanitizer != NULL ? find_clang(file, &header) : 0;
    }
    if (file != NULL)
        fclose(file);
    return found->sanitizer != NULL;
}

void object_file_each_name(const char *path, void (*see)(const char *name, void *data), void *data)
{
    ElfW(Ehdr) header;
    FILE *file = fopen(path, "rbe");
    if (read_header(file, &header) == (int)sizeof header &&
        memcmp(header.e_ident, ELFMAG, SELFMAG) == 0) {
        struct symbols symbols = read_symbols(file, &header);
        for (size_t at = 0; at < symbols.length; at += strlen(symbols.names + at) + 1)
            see(symbols.names + at, data);
        free_symbols(&symbols);
    }
    if (file != NULL)
        fclose(file);
}

static void see_python(const char *name, void *wants)
{
    if (begins_with(name, "Py") || begins_with(name, "_Py") || begins_with(name, "libpython"))
        *(bool *)wants = true;
}

bool object_file_wants_python(const char *path)
{
    bool wants = false;
    object_file_each_name(path, see_python, &wants);
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
