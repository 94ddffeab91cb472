/* The functions that a handler's blocks come from. */
typedef struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
} Allocator;

/* What stands before each block; 64 bytes, which keep the alignment of malloc. */
typedef union {
    struct {
        size_t size;       /* what was asked for */
        const void *owner; /* the context that made the block, until it is freed */
    } is;
    char bytes[64];
} Header;

static void *
shift_finish(void *ctx, Header *header, size_t size)
{
    if (header == NULL) {
        return NULL;
    }
    header->is.size = size;
    header->is.owner = ctx;
    return header + 1;
}

static Header *
shift_header(void *ctx, void *ptr, const char *function)
{
    Header *header = (Header *)ptr - 1;
    if (header->is.owner != ctx) {
        fprintf(stderr, "uh-oh, %s of a block that is not ours\n", function);
        return NULL;
    }
    return header;
}

static void *
shift_malloc(void *ctx, size_t size)
{
    Allocator *allocator = (Allocator *)ctx;
    if (size > SIZE_MAX - sizeof(Header)) {
        return NULL;
    }
    return shift_finish(ctx, (Header *)allocator->malloc(sizeof(Header) + size), size);
}

static void *
shift_calloc(void *ctx, size_t nelem, size_t elsize)
{
    Allocator *allocator = (Allocator *)ctx;
    if (elsize != 0 && nelem > (SIZE_MAX - sizeof(Header)) / elsize) {
        return NULL;
    }
    return shift_finish(ctx, (Header *)allocator->calloc(1, sizeof(Header) + nelem * elsize),
                        nelem * elsize);
}

static void *
shift_realloc(void *ctx, void *ptr, size_t new_size)
{
    Allocator *allocator = (Allocator *)ctx;
    if (ptr == NULL) {
        return shift_malloc(ctx, new_size);
    }
    Header *header = shift_header(ctx, ptr, "realloc");
    if (header == NULL || new_size > SIZE_MAX - sizeof(Header)) {
        return NULL; /* the block stays as it is */
    }
    return shift_finish(ctx, (Header *)allocator->realloc(header, sizeof(Header) + new_size),
                        new_size);
}

static void
shift_free(void *ctx, void *ptr, size_t size)
{
    Allocator *allocator = (Allocator *)ctx;
    if (ptr == NULL) {
        return;
    }
    Header *header = shift_header(ctx, ptr, "free");
    if (header == NULL) {
        return; /* a leak harms nobody */
    }
    if (header->is.size != size) {
        /* NumPy's size is a best guess: the header knows it */
        fprintf(stderr, "uh-oh, free of %zu bytes, where %zu were allocated\n", size,
                header->is.size);
    }
    header->is.owner = NULL;
    allocator->free(header);
}
