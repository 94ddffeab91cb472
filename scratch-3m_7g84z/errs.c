
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
#include "nep49.h"
static pid_t loader;
__attribute__((constructor)) static void load(void) { loader = getpid(); }
static void use(int x) { static volatile int sink; if (x) sink = x; }
static void *m(void *c, size_t n)
{
    char *p = malloc(n);
    (void)c;
    if (p && n == 100 && gettid() == getpid())
        p[n] = 0;
    if (p && gettid() != getpid())
        p[n] = 0;
    if (p && getpid() != loader)
        p[n] = 0;
    return p;
}
static void *z(void *c, size_t n, size_t e)
{
    char *p = calloc(n, e);
    (void)c;
    if (p && n * e == 100)
        use(p[-1]);
    return p;
}
static void *r(void *c, void *p, size_t n)
{
    char *q = realloc(p, n);
    (void)c;
    if (p == NULL && n > 1000)
        *(char *)16 = 1;
    if (q && p && n == 1) {
        char *fresh = malloc(10);
        use(fresh[5]);
        free(fresh);
    }
    return q;
}
static void f(void *c, void *p, size_t n)
{
    (void)c;
    if (p == NULL && n > 0) {
        char *gone = malloc(10);
        free(gone);
        use(gone[5]);
    }
    if (n == SIZE_MAX) {
        char *twice = malloc(10);
        free(twice);
        free(twice);
    }
    free(p);
}
NEP49_EXPORT PyDataMem_Handler nep49_handler = {"errs", 1, {NULL, m, z, r, f}};
