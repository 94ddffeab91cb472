// A handler that counts its live blocks, and is made when it is first asked for.
#include <atomic>
#include <cstdlib>

#include <nep49.h>

namespace {

class Heap {
public:
    void *take(std::size_t size) noexcept { return counted(std::malloc(size ? size : 1)); }

    void *take_zeroed(std::size_t nelem, std::size_t elsize) noexcept
    {
        return counted(nelem && elsize ? std::calloc(nelem, elsize) : std::calloc(1, 1));
    }

    void *resize(void *ptr, std::size_t size) noexcept
    {
        void *block = std::realloc(ptr, size ? size : 1);
        return ptr ? block : counted(block);
    }

    void give_back(void *ptr) noexcept
    {
        if (ptr)
            live.fetch_sub(1, std::memory_order_relaxed);
        std::free(ptr);
    }

private:
    void *counted(void *block) noexcept
    {
        if (block)
            live.fetch_add(1, std::memory_order_relaxed);
        return block;
    }

    std::atomic<std::size_t> live{0};
};

Heap &heap(void *ctx) noexcept
{
    return *static_cast<Heap *>(ctx);
}

} // namespace

// It is never destroyed: arrays may outlive main.
PyDataMem_Handler *nep49_get_handler(const char **)
{
    static PyDataMem_Handler handler = {
        "mine, in C++",
        1,
        {new Heap, [](void *ctx, size_t size) { return heap(ctx).take(size); },
         [](void *ctx, size_t nelem, size_t elsize) { return heap(ctx).take_zeroed(nelem, elsize); },
         [](void *ctx, void *ptr, size_t size) { return heap(ctx).resize(ptr, size); },
         [](void *ctx, void *ptr, size_t) { heap(ctx).give_back(ptr); }}};
    return &handler;
}
