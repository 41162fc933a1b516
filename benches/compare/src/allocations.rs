//! How often the current thread allocates.

#![allow(
    unsafe_code,
    reason = "an allocator that counts cannot be written without"
)]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread has allocated so far.
pub fn so_far() -> u64 {
    COUNT.with(Cell::get)
}

fn count() {
    // A thread that ends may free and allocate after its count is gone.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// === impl Counting ===

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}
