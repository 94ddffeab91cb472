/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handlers/nep49.h: its structs are NumPy's, member by member, so that an object built with one
 * header works with the other.
 */
#define PyDataMemAllocator nep49_Allocator
#define PyDataMem_Handler nep49_Handler
#include "nep49.h"
#undef PyDataMemAllocator
#undef PyDataMem_Handler

#include <Python.h>
#define NO_IMPORT_ARRAY
#include <numpy/ndarraytypes.h>

#include "unit.h"

#define MEMBER(ours, its, member)                                                                  \
    {                                                                                              \
#its "." #member, offsetof(ours, member), offsetof(its, member),                           \
            sizeof((ours *)NULL)->member, sizeof((its *)NULL)->member,                             \
            __builtin_types_compatible_p(__typeof__(((ours *)NULL)->member),                       \
                                         __typeof__(((its *)NULL)->member))                        \
    }

static const struct {
    const char *name;
    size_t our_offset, its_offset, our_size, its_size;
    int same_type;
} members[] = {
    MEMBER(nep49_Allocator, PyDataMemAllocator, ctx),
    MEMBER(nep49_Allocator, PyDataMemAllocator, malloc),
    MEMBER(nep49_Allocator, PyDataMemAllocator, calloc),
    MEMBER(nep49_Allocator, PyDataMemAllocator, realloc),
    MEMBER(nep49_Allocator, PyDataMemAllocator, free),
    MEMBER(nep49_Handler, PyDataMem_Handler, name),
    MEMBER(nep49_Handler, PyDataMem_Handler, version),
    MEMBER(nep49_Handler, PyDataMem_Handler, allocator.ctx),
    MEMBER(nep49_Handler, PyDataMem_Handler, allocator.free),
};

START_TEST(members_are_numpys)
{
    ck_assert_uint_eq(members[_i].our_offset, members[_i].its_offset);
    ck_assert_uint_eq(members[_i].our_size, members[_i].its_size);
    ck_assert_msg(members[_i].same_type, "%s has another type", members[_i].name);
}
END_TEST

START_TEST(structs_are_as_large_and_as_aligned)
{
    ck_assert_uint_eq(sizeof(nep49_Allocator), sizeof(PyDataMemAllocator));
    ck_assert_uint_eq(sizeof(nep49_Handler), sizeof(PyDataMem_Handler));
    ck_assert_uint_eq(_Alignof(nep49_Handler), _Alignof(PyDataMem_Handler));
}
END_TEST

Suite *suite_layout(void)
{
    Suite *suite = suite_create("layout");
    TCase *tcase = tcase_create("layout");
    tcase_add_loop_test(tcase, members_are_numpys, 0, ROWS(members));
    tcase_add_test(tcase, structs_are_as_large_and_as_aligned);
    suite_add_tcase(suite, tcase);
    return suite;
}
