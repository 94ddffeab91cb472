/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What malloc and calloc owe alike, written once for both.
 */
#ifndef CONFORM_ALLOCATING_H
#define CONFORM_ALLOCATING_H

#include <stddef.h>

/* One of the two. */
struct maker {
    void *(*ask)(size_t size);        /* a block, or NULL where it is refused */
    void *(*must)(size_t size);       /* as must_malloc */
    const char *(*call)(size_t size); /* the call in words, "malloc(17)" */
    const char *neighbours;           /* the id of the property about what it does to others */
    size_t least;                     /* of 16 sizes in one class, of which it makes many */
};

/* Fails where a block of any size, new or recycled, on the main thread or another, is not aligned
 * for an object that fits into it. */
void check_alignment(const struct maker *maker);

/* Fails where two of more than 65536 live blocks overlap, two after much coming and going on two
 * threads, or two of `large` blocks of mebibytes. */
void check_disjoint(const struct maker *maker, size_t large);

/* Fails where a block that `make` made, and that alone lives, is given out again or changes as
 * others come beside it and go, until it is the only one again and others come.  What only changes
 * is the matter of the property `neighbours`. */
void check_alone(void *(*make)(size_t size), const char *neighbours);

/* Fails where making, filling or freeing a block changes another, at once or a little later. */
void check_neighbours(const struct maker *maker);

#endif
