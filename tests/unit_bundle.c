/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/report/bundle.c: what is damaged anywhere is told to be, whatever was damaged.  The
 * properties are those of tests/unit_property.c, so that a bundle is small.
 */
#include "unit.h"

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/random.h"
#include "report/bundle.h"
#include "report/summary.h"

enum { HASH = 54, HASHED = HASH + SHA256_HEX, TAR = 1 << 16, TRAILER = 8 };

static struct {
    char *bytes;
    size_t length;
} whole;

/* A run of its own for each test, which runs in a process of its own. */
static void make_bundle(void)
{
    static struct options options = {.program = "./no-such/conform", .seed = 49};
    static char file[] = "/tmp/libx.so";
    static struct subject_place place = {.argument = file, .path = file, .label = file + 5};
    static struct load load = {.has_name = 1, .version = 1, .name = "x"};
    static struct environment environment = {.python = "3.11.2", .numpy = "1.24.2"};
    static struct record record = {.verdict = PASS};
    static const struct record *records[8];
    struct run run = {.options = &options,
                      .place = &place,
                      .load = &load,
                      .environment = &environment,
                      .machine = machine_here(),
                      .python = "/usr/bin/python3",
                      .records = records,
                      .rounds = 1};
    run.machine.checker = NULL;
    run.properties = property_all(&run.count);
    ck_assert_uint_le(run.count, 8);
    for (size_t i = 0; i < run.count; i++)
        records[i] = &record;
    atomic_store(&load.state, LOAD_DONE);
    setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
    FILE *stream = open_memstream(&whole.bytes, &whole.length);
    ck_assert_int_eq(report_bundle(stream, &run), 0);
    fclose(stream);
}

/* Whether it would be told to be as it was written, and of each property. */
static bool is_taken(const char *bytes, size_t length)
{
    struct bundle bundle;
    bool unsure;
    bool taken = bundle_read(bytes, length, &bundle) == NULL &&
                 bundle_incomplete(&bundle, &unsure) == NULL && !unsure;
    bundle_free(&bundle);
    return taken;
}

START_TEST(what_was_written_is_taken)
{
    struct bundle bundle;
    bool unsure = true;
    make_bundle();
    ck_assert_ptr_null(bundle_read(whole.bytes, whole.length, &bundle));
    ck_assert_ptr_null(bundle_incomplete(&bundle, &unsure));
    ck_assert(!unsure);
    ck_assert_int_eq(summary_code(bundle.report), EXIT_CONFORMANT);
    bundle_free(&bundle);
}
END_TEST

START_TEST(no_byte_can_be_another)
{
    make_bundle();
    for (size_t i = 0; i < whole.length; i++) {
        for (int bit = 0; bit < 8; bit++) {
            whole.bytes[i] = (char)(whole.bytes[i] ^ 1 << bit);
            assert_in_loop(!is_taken(whole.bytes, whole.length));
            whole.bytes[i] = (char)(whole.bytes[i] ^ 1 << bit);
        }
    }
    ck_assert(is_taken(whole.bytes, whole.length));
}
END_TEST

START_TEST(no_length_can_be_another)
{
    make_bundle();
    for (size_t length = 0; length < whole.length; length++)
        assert_in_loop(!is_taken(whole.bytes, length));
    char *longer = realloc(whole.bytes, whole.length + 1);
    longer[whole.length] = '\0';
    ck_assert(!is_taken(longer, whole.length + 1));
}
END_TEST

/* As whoever damages it on purpose would do it. */
static void hash_again(char *bytes, size_t length)
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, length - HASHED, (uint8_t *)bytes + HASHED);
    sha256_digest(&context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(bytes + HASH + 2 * i, 3, "%02x", digest[i]);
}

/* The stream behind the hash is looked at for itself: nothing crashes, and what is taken is the
 * same. */
START_TEST(with_the_hash_mended_it_is_the_same_or_none)
{
    struct random random = random_for(49, "bundle");
    struct bundle sound, bundle;
    make_bundle();
    ck_assert_ptr_null(bundle_read(whole.bytes, whole.length, &sound));
    for (size_t i = HASHED; i < whole.length; i++) {
        char kept = whole.bytes[i];
        whole.bytes[i] = (char)random_next(&random);
        hash_again(whole.bytes, whole.length);
        if (bundle_read(whole.bytes, whole.length, &bundle) == NULL)
            assert_in_loop(strcmp(bundle.of[BUNDLE_REPORT].bytes, sound.of[BUNDLE_REPORT].bytes) ==
                           0);
        bundle_free(&bundle);
        whole.bytes[i] = kept;
    }
    bundle_free(&sound);
}
END_TEST

/* The archive itself, unpacked. */
static size_t unpack(char *tar)
{
    z_stream stream = {.next_in = (Bytef *)whole.bytes + HASHED,
                       .avail_in = (uInt)(whole.length - HASHED - TRAILER),
                       .next_out = (Bytef *)tar,
                       .avail_out = TAR};
    ck_assert_int_eq(inflateInit2(&stream, -MAX_WBITS), Z_OK);
    ck_assert_int_eq(inflate(&stream, Z_FINISH), Z_STREAM_END);
    size_t length = stream.total_out;
    inflateEnd(&stream);
    return length;
}

START_TEST(no_byte_of_the_archive_can_be_another)
{
    static char tar[TAR];
    struct bundle bundle = {.report = NULL};
    make_bundle();
    size_t length = unpack(tar);
    ck_assert_ptr_null(bundle_read_tar(tar, length, &bundle));
    bundle_free(&bundle);
    for (size_t i = 0; i < length; i++) {
        bool is_time = i % 512 >= 136 && i % 512 < 155; /* and its sum: one for all may be */
        char kept = tar[i];
        tar[i] = (char)(tar[i] ^ 1 << i % 8);
        const char *wrong = bundle_read_tar(tar, length, &bundle);
        assert_in_loop(wrong != NULL || is_time);
        bundle_free(&bundle);
        tar[i] = kept;
        assert_in_loop(bundle_read_tar(tar, i, &bundle) != NULL);
        bundle_free(&bundle);
    }
}
END_TEST

Suite *suite_bundle(void)
{
    Suite *suite = suite_create("bundle");
    TCase *tcase = tcase_create("bundle");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, what_was_written_is_taken);
    tcase_add_test(tcase, no_byte_can_be_another);
    tcase_add_test(tcase, no_length_can_be_another);
    tcase_add_test(tcase, with_the_hash_mended_it_is_the_same_or_none);
    tcase_add_test(tcase, no_byte_of_the_archive_can_be_another);
    suite_add_tcase(suite, tcase);
    return suite;
}
