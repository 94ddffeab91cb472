/* A handler: libc's functions, and the contract's corner that libc's realloc does not keep. */
#include <stdlib.h>

#include <nep49.h>

static void *mine_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size ? size : 1);
}

static void *mine_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return nelem && elsize ? calloc(nelem, elsize) : calloc(1, 1);
}

static void *mine_realloc(void *ctx, void *ptr, size_t new_size)
{
    (void)ctx;
    return realloc(ptr, new_size ? new_size : 1); /* for 0 libc's would free it */
}

static void mine_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size;
    free(ptr);
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "mine",
    .version = 1,
    .allocator = {NULL, mine_malloc, mine_calloc, mine_realloc, mine_free},
};
