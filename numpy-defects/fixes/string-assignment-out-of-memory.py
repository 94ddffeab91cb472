"""BUG: an array of StringDType keeps its string where there is no memory for another

An item's old string was given back before there was memory for what was assigned, so that behind the
MemoryError it was empty.
"""
import numpy_source

REPLACE = """\
/*
 * Replaces *out* by *size* bytes from *buf*, which are no part of it. Where there is no
 * memory *out* stays as it is.
 */
static int
replace_string(npy_string_allocator *allocator, npy_packed_static_string *out,
               const char *buf, size_t size)
{
    _npy_static_string_u *out_u = (_npy_static_string_u *)out;
    unsigned char flags = STRING_FLAGS(out) & ~NPY_STRING_MISSING;
    char *place = NULL;
    size_t room = 0;

    if (flags == 0 || size <= NPY_SHORT_STRING_MAX_SIZE) {
        room = size;  // nothing to lose, or nothing to ask for
    }
    else if (!(flags & NPY_STRING_OUTSIDE_ARENA)) {
        place = vstring_buffer(&allocator->arena, out_u);
        if (place != NULL && (flags & NPY_STRING_LONG)) {
            memcpy(&room, place - sizeof(size_t), sizeof(size_t));
        }
        else if (place != NULL) {
            room = *(unsigned char *)(place - 1);
        }
    }
    if (size > NPY_MAX_STRING_SIZE) {
        return -1;
    }
    if (size <= room) {
        if (NpyString_free(out, allocator) < 0) {
            return -1;
        }
        return NpyString_newsize(buf, size, out, allocator);
    }
    place = allocator->malloc(size);
    if (place == NULL) {
        return -1;
    }
    memcpy(place, buf, size);
    if (NpyString_free(out, allocator) < 0) {
        allocator->free(place);
        return -1;
    }
    out_u->direct_buffer.size_and_flags =
            NPY_STRING_INITIALIZED | NPY_STRING_OUTSIDE_ARENA | NPY_STRING_LONG;
    out_u->vstring.offset = (size_t)place;
    set_vstring_size(out_u, size);
    return 0;
}
"""


def fix(tree):
    path = "numpy/_core/src/multiarray/stringdtype/"
    with tree.file(path + "static_string.c") as code:
        code.replace(r"^(?=NPY_NO_EXPORT int\nNpyString_dup\()", REPLACE + "\n")
    with tree.function(path + "static_string.c", "NpyString_dup") as code:
        code.replace(r"return NpyString_pack_empty\(out\);",
                     "return replace_string(out_allocator, out, \"\", 0);")
        code.before(r"memcpy\(out, in, sizeof\(_npy_static_string_u\)\);", """
            if (NpyString_free(out, out_allocator) < 0) {
                return -1;
            }
            """)
        code.replace(r"NpyString_newsize\(in_buf, size, out, out_allocator\)",
                     "replace_string(out_allocator, out, in_buf, size)")
    with tree.function(path + "static_string.c", "NpyString_pack") as code:
        code.cut(r"^    if \(NpyString_free\(packed_string, allocator\) < 0\) \{\n.*\n    \}")
        code.replace(r"NpyString_newsize\(buf, size, packed_string, allocator\)",
                     "replace_string(allocator, packed_string, buf, size)")
    with tree.function(path + "dtype.c", "free_and_copy") as code:
        code.cut(r"^    if \(NpyString_free\(out, out_allocator\) < 0\) \{\n(?:.*\n){2}    \}")


if __name__ == "__main__":
    numpy_source.main(fix)
