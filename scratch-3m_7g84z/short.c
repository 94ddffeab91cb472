
#include <stdlib.h>
#include "nep49.h"
static void *m(void *c, size_t n) { (void)c; return malloc(n == 8000 ? n - 1 : n ? n : 1); }
static void *z(void *c, size_t n, size_t e) { (void)c; return calloc(n ? n : 1, e ? e : 1); }
static void *r(void *c, void *p, size_t n) { (void)c; return realloc(p, n ? n : 1); }
static void f(void *c, void *p, size_t n) { (void)c, (void)n; free(p); }
NEP49_EXPORT PyDataMem_Handler nep49_handler = {"short", 1, {NULL, m, z, r, f}};
