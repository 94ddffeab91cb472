/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/base/object_file.c: what is said about a file that is not a shared object for this
 * machine.
 */
#include "unit.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/object_file.h"

static char folder[] = "unit-object-XXXXXX", path[sizeof folder + 8];

/* Once for all tests, and in the process that outlives those that fail. */
static void make_folder(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static void remove_folder(void)
{
    remove(path);
    rmdir(folder);
}

static void write_file(const void *bytes, size_t length)
{
    remove(path);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, length, file), length);
    ck_assert_int_eq(fclose(file), 0);
}

static ElfW(Ehdr) own_header(void)
{
    ElfW(Ehdr) header;
    FILE *file = fopen("/proc/self/exe", "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fread(&header, sizeof header, 1, file), 1);
    fclose(file);
    header.e_type = ET_DYN;
    header.e_phnum = 0; /* nothing follows */
    return header;
}

static void assert_wrong(const char *words)
{
    const char *wrong = object_file_wrong(path);
    if (words == NULL) {
        ck_assert_pstr_eq(wrong, NULL);
        return;
    }
    ck_assert_ptr_nonnull(wrong);
    ck_assert_msg(strstr(wrong, words) != NULL, "\"%s\" does not say \"%s\"", wrong, words);
    ck_assert_msg(strstr(wrong, path) == NULL, "\"%s\" repeats the path", wrong);
}

/* ---- no ELF header ------------------------------------------------------------------------ */

static const struct {
    const char *bytes;
    size_t length;
    const char *wrong;
} rows[] = {
    {"", 0, "is empty"},
    {"x", 1, "no ELF header"},
    {"\x7f"
     "EL",
     3, "no ELF header"},
    {"\x7f"
     "ELF",
     4, "cut short within its ELF header"},
    {"\x7f"
     "ELF\2\1\1",
     7, "cut short within its ELF header"},
    {"#!/bin/sh\nexit 0\n", 17, "no ELF header"},
    {"!<arch>\nhandler.o/", 18, "no ELF header"},
    {"int main(void) { return 0; } /* longer than any ELF header, which has 64 bytes */", 80,
     "no ELF header"},
};

START_TEST(bytes_that_are_no_object)
{
    write_file(rows[_i].bytes, rows[_i].length);
    assert_wrong(rows[_i].wrong);
}
END_TEST

START_TEST(not_a_regular_file)
{
    remove(path);
    assert_wrong("there is no such file");
    ck_assert_int_eq(mkdir(path, 0700), 0);
    assert_wrong("is a directory");
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    assert_wrong("is not a regular file"); /* and does not wait for a writer */
    remove(path);
    ck_assert_int_eq(symlink("nowhere", path), 0);
    assert_wrong("there is no such file");
    remove(path);
    ck_assert_int_eq(symlink("file", path), 0);
    assert_wrong("symbolic links");
}
END_TEST

/* ---- an ELF header ------------------------------------------------------------------------ */

START_TEST(own_kind_is_fine)
{
    ElfW(Ehdr) header = own_header();
    write_file(&header, sizeof header);
    assert_wrong(NULL);
    write_file(&header, sizeof header - 1);
    assert_wrong("cut short within its ELF header");
}
END_TEST

enum { TABLE = sizeof(ElfW(Ehdr)) };

/* A header, one segment, and the bytes that it promises, or some of them. */
static const struct {
    size_t table, offset, size; /* where the table of segments is, and what the segment wants */
    size_t length;              /* of the file */
    const char *wrong;
} segments[] = {
    {TABLE, 0, 200, 200, NULL},
    {TABLE, 0, 200, 199, "is cut short: it has 199 bytes, and should have 200; copy it again"},
    {TABLE, 100, 100, 200, NULL},
    {TABLE, 101, 100, 200, "is cut short: it has 200 bytes, and should have 201"},
    {TABLE, SIZE_MAX - 10, 100, 200, "is cut short"},
    {TABLE, 100, SIZE_MAX - 50, 200, "is cut short"},
    {TABLE, 0, 10, TABLE + sizeof(ElfW(Phdr)) - 1, "is cut short: its table of segments"},
    {4096, 0, 10, 200, "is cut short: its table of segments"},
    {SIZE_MAX - 20, 0, 10, 200, "is cut short: its table of segments"},
};

START_TEST(segments_lie_within_the_file)
{
    char bytes[200] = {0};
    ElfW(Ehdr) header = own_header();
    ElfW(Phdr) segment = {.p_type = PT_LOAD};
    header.e_phnum = 1;
    header.e_phoff = segments[_i].table;
    header.e_phentsize = sizeof segment;
    segment.p_offset = segments[_i].offset;
    segment.p_filesz = segments[_i].size;
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, &segment, sizeof segment);
    write_file(bytes, segments[_i].length);
    assert_wrong(segments[_i].wrong);
}
END_TEST

static const struct {
    int type;
    const char *wrong;
} types[] = {
    {ET_NONE, "not a shared object"},
    {ET_REL, "not linked yet; build a shared object with: cc -shared -fPIC"},
    {ET_EXEC, "is a program or a core file"},
    {ET_CORE, "is a program or a core file"},
    {ET_LOOS, "not a shared object"},
};

START_TEST(other_types)
{
    ElfW(Ehdr) header = own_header();
    header.e_type = (ElfW(Half))types[_i].type;
    write_file(&header, sizeof header);
    assert_wrong(types[_i].wrong);
}
END_TEST

START_TEST(other_machine)
{
    ElfW(Ehdr) header = own_header();
    header.e_machine = EM_S390;
    write_file(&header, sizeof header);
    assert_wrong("built for S/390,");
    header.e_machine = EM_LOONGARCH;
    write_file(&header, sizeof header);
    assert_wrong("built for machine 258,");
}
END_TEST

START_TEST(other_byte_order)
{
    ElfW(Ehdr) header = own_header();
    header.e_ident[EI_DATA] = header.e_ident[EI_DATA] == ELFDATA2LSB ? ELFDATA2MSB : ELFDATA2LSB;
    write_file(&header, sizeof header);
    assert_wrong("has the other byte order; build it for ");
}
END_TEST

/* ---- the hash ----------------------------------------------------------------------------- */

START_TEST(hash_is_sha256)
{
    char hex[SHA256_HEX];
    write_file("abc", 3);
    ck_assert_int_eq(object_file_sha256(path, hex), 0);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    remove(path);
    ck_assert_int_eq(object_file_sha256(path, hex), -1);
}
END_TEST

TCase *case_object_file(void)
{
    TCase *tcase = tcase_create("object_file");
    tcase_add_unchecked_fixture(tcase, make_folder, remove_folder);
    tcase_add_loop_test(tcase, bytes_that_are_no_object, 0, ROWS(rows));
    tcase_add_test(tcase, not_a_regular_file);
    tcase_add_test(tcase, own_kind_is_fine);
    tcase_add_loop_test(tcase, segments_lie_within_the_file, 0, ROWS(segments));
    tcase_add_loop_test(tcase, other_types, 0, ROWS(types));
    tcase_add_test(tcase, other_machine);
    tcase_add_test(tcase, other_byte_order);
    tcase_add_test(tcase, hash_is_sha256);
    return tcase;
}
