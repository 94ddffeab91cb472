//! A handler: libc's functions, behind the structs of nep49.h.

use std::ffi::{c_char, c_void};

extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(nelem: usize, elsize: usize) -> *mut c_void;
    fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void;
    fn free(ptr: *mut c_void);
}

#[repr(C)]
pub struct Allocator {
    ctx: *mut c_void,
    malloc: unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void,
    calloc: unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void,
    realloc: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void, *mut c_void, usize),
}

#[repr(C)]
pub struct Handler {
    name: [c_char; 127],
    version: u8,
    allocator: Allocator,
}

// Nobody writes to it, and ctx points nowhere.
unsafe impl Sync for Handler {}

unsafe extern "C" fn mine_malloc(_ctx: *mut c_void, size: usize) -> *mut c_void {
    malloc(size.max(1))
}

unsafe extern "C" fn mine_calloc(_ctx: *mut c_void, nelem: usize, elsize: usize) -> *mut c_void {
    if nelem == 0 || elsize == 0 {
        return calloc(1, 1);
    }
    calloc(nelem, elsize)
}

unsafe extern "C" fn mine_realloc(_ctx: *mut c_void, ptr: *mut c_void, size: usize) -> *mut c_void {
    realloc(ptr, size.max(1)) // for 0 libc's would free it
}

unsafe extern "C" fn mine_free(_ctx: *mut c_void, ptr: *mut c_void, _size: usize) {
    free(ptr)
}

const fn name(text: &str) -> [c_char; 127] {
    let mut name = [0; 127];
    let mut i = 0;
    while i < text.len() {
        name[i] = text.as_bytes()[i] as c_char;
        i += 1;
    }
    name
}

#[no_mangle]
#[allow(non_upper_case_globals)]
pub static nep49_handler: Handler = Handler {
    name: name("mine, in Rust"),
    version: 1,
    allocator: Allocator {
        ctx: std::ptr::null_mut(),
        malloc: mine_malloc,
        calloc: mine_calloc,
        realloc: mine_realloc,
        free: mine_free,
    },
};
