/* SPDX-License-Identifier: BSD-3-Clause
 *
 * DLPack: how libraries hand each other arrays without a copy, and without headers in common.
 *
 * The structs are those of DLPack 0.x (dmlc.github.io/dlpack), which every version since has kept
 * for capsules named "dltensor".  Only what this program uses is named.
 */
#ifndef EMBED_DEMO_DLPACK_H
#define EMBED_DEMO_DLPACK_H

#include <stdint.h>

enum { DL_CPU = 1 };   /* DLDevice.device_type */
enum { DL_FLOAT = 2 }; /* DLDataType.code */

typedef struct {
    int32_t device_type;
    int32_t device_id;
} DLDevice;

typedef struct {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes; /* 1, but for vectors */
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides;     /* in elements; NULL: row by row without gaps */
    uint64_t byte_offset; /* of the first element from data */
} DLTensor;

/* What a capsule holds.  Whoever takes it renames the capsule to "used_dltensor" and calls the
 * deleter once, when done; a capsule that nobody took does that itself. */
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self); /* or NULL */
} DLManagedTensor;

#endif
