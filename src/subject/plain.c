/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libc's allocator as a handler.
 */
#include "subject/subject.h"

#include <stdlib.h>

static void *plain_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void *plain_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return calloc(nelem, elsize);
}

static void *plain_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return realloc(p, size != 0 ? size : 1); /* glibc's would free it */
}

static void plain_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    free(p);
}

static PyDataMem_Handler plain = {
    .name = "plain",
    .version = 1,
    .allocator = {NULL, plain_malloc, plain_calloc, plain_realloc, plain_free}};

PyDataMem_Handler *plain_handler(void *unused)
{
    (void)unused;
    return &plain;
}

const struct subject_place *plain_place(void)
{
    static char label[] = "plain";
    static const struct subject_place place = {
        .argument = label, .path = label, .label = label, .handler = &plain};
    return &place;
}
