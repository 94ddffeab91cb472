/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libFuzzer's entry for bundles, as fuzz_trace.c is for traces.  Bytes go in three times: as they
 * are, behind a header with the hash that they have, and as the archive that would be in there.
 */
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "report/bundle.h"
#include "report/summary.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void look(const char *wrong, struct bundle *bundle)
{
    bool unsure;
    if (wrong == NULL) {
        bundle_incomplete(bundle, &unsure);
        summary_code(bundle->report);
    }
    bundle_free(bundle);
}

static void read_sealed(const uint8_t *bytes, size_t length)
{
    static const char begin[] = "\x1f\x8b\x08\x10\0\0\0\0\x02\x03"
                                "conform bundle; SHA-256 of all behind this: ";
    enum { BEGIN = sizeof begin - 1, HASHED = BEGIN + SHA256_HEX };
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    struct bundle bundle;
    char *sealed = malloc(HASHED + length);
    if (sealed == NULL)
        return;
    memcpy(sealed, begin, BEGIN);
    sha256_init(&context);
    sha256_update(&context, length, bytes);
    sha256_digest(&context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(sealed + BEGIN + 2 * i, 3, "%02x", digest[i]);
    memcpy(sealed + HASHED, bytes, length);
    look(bundle_read(sealed, HASHED + length, &bundle), &bundle);
    free(sealed);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    struct bundle bundle;
    look(bundle_read((const char *)bytes, length, &bundle), &bundle);
    read_sealed(bytes, length);
    bundle = (struct bundle){.report = NULL};
    look(bundle_read_tar((const char *)bytes, length, &bundle), &bundle);
    return 0;
}
