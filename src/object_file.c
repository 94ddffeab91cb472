/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ELF header, read with care, and the hash of the whole file.
 */
#include "object_file.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "text.h"

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

/* What this program itself was built for: read from its own file, which cannot lie. */
static int read_header(const char *path, ElfW(Ehdr) * header)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return -1;
    size_t got = fread(header, 1, sizeof *header, file);
    int error = ferror(file) ? errno : 0;
    fclose(file);
    errno = error;
    return error != 0 ? -1 : (int)got;
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
    if (read_header("/proc/self/exe", &own) < (int)sizeof own)
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

const char *object_file_wrong(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return errno == ENOENT ? "there is no such file" : text("%s", strerror(errno));
    if (S_ISDIR(status.st_mode))
        return "is a directory; name the shared object in it";
    if (!S_ISREG(status.st_mode))
        return "is not a regular file; name a shared object";
    ElfW(Ehdr) header;
    int length = read_header(path, &header);
    if (length < 0)
        return text("cannot be read: %s", strerror(errno));
    return header_wrong(&header, length);
}

int object_file_sha256(const char *path, char hex[SHA256_HEX])
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return -1;
    struct sha256_ctx context;
    sha256_init(&context);
    unsigned char buffer[65536];
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
