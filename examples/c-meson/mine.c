/* A handler whose blocks begin at a multiple of 64 bytes, which is a claim that conform tests. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <nep49.h>

enum { ALIGNMENT = 64 };

static void *take(void *ctx, size_t size)
{
    void *block;
    (void)ctx;
    return posix_memalign(&block, ALIGNMENT, size ? size : 1) == 0 ? block : NULL;
}

static void *take_zeroed(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *block = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : take(ctx, size);
    return block != NULL ? memset(block, 0, size) : NULL;
}

static void *resize(void *ctx, void *ptr, size_t new_size)
{
    void *block = take(ctx, new_size);
    size_t old = ptr != NULL ? malloc_usable_size(ptr) : 0;
    if (block == NULL || ptr == NULL)
        return block;
    memcpy(block, ptr, old < new_size ? old : new_size);
    free(ptr);
    return block;
}

static void give_back(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size;
    free(ptr);
}

NEP49_EXPORT const char nep49_claims[] = "alignment=64";
NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "mine, aligned",
    .version = 1,
    .allocator = {NULL, take, take_zeroed, resize, give_back},
};
