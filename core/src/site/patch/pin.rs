//! Pins loaded objects, so that `dlclose` does not unload them: for callers that keep references into them.

use super::object::{object_generation, objects};
use tracepoint_ring::update::{self, UpdateGuard};

/// Pins all registered objects, and runs `list` while the set of objects equals the pinned set.
///
/// The dynamic linker is called without the update lock, because it takes its own lock, under which constructors register objects. If
/// an object is loaded or unloaded meanwhile, the loop starts again.
pub(crate) fn pin_objects<R>(list: impl FnOnce(&UpdateGuard<'_>) -> R) -> R {
    loop {
        let (before, addresses) = {
            let locked = update::lock_without_setup();
            let addresses: Vec<_> = objects(&locked).map(|object| std::ptr::from_ref(object).addr()).collect();
            (object_generation(&locked), addresses)
        };
        addresses.into_iter().for_each(linker::pin);
        let locked = update::lock_without_setup();
        // An equal generation means that no object was unloaded before it was pinned.
        if object_generation(&locked) == before {
            return list(&locked);
        }
    }
}

#[cfg(not(target_feature = "crt-static"))]
mod linker {
    use std::ffi::{c_int, c_void};

    /// Maximum length of the name of an object that can be pinned, in bytes including the NUL: the kernel's limit for a path.
    const MAX_NAME: usize = 4096;

    struct Search {
        inside: usize,
        name: [u8; MAX_NAME],
    }

    /// Pins the object that contains this address, if there is one.
    pub(super) fn pin(inside: usize) {
        let mut search = Search { inside, name: [0; MAX_NAME] };
        // SAFETY: `take_name` gets the address of `search`, which is alive and has no other user until the call returns.
        unsafe { libc::dl_iterate_phdr(Some(take_name), (&raw mut search).cast()) };
        // The executable has an empty name here, and is never unloaded.
        if search.name[0] != 0 {
            // SAFETY: a string that ends with a NUL. With NOLOAD the call only adds NODELETE to the object that is loaded under that
            // name; an object that was unloaded meanwhile is not loaded again.
            unsafe {
                libc::dlopen(search.name.as_ptr().cast(), libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE)
            };
        }
    }

    /// Called for each loaded object, under the dynamic linker's lock, which keeps its name alive. Copies the name of the object that
    /// contains `inside`, and ends the iteration there by returning 1.
    unsafe extern "C" fn take_name(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker passes a description that is alive during the call, with `dlpi_phnum` headers, and `pin` passes
        // its search.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search>()) };
        if info.dlpi_phdr.is_null() || info.dlpi_name.is_null() {
            return 0;
        }
        // SAFETY: as above.
        let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
        let is_inside = headers.iter().filter(|header| header.p_type == libc::PT_LOAD).any(|header| {
            let start = (info.dlpi_addr as usize).wrapping_add(header.p_vaddr as usize);
            (start..start.wrapping_add(header.p_memsz as usize)).contains(&search.inside)
        });
        if !is_inside {
            return 0;
        }
        // SAFETY: a string that ends with a NUL and lives as long as the object, which the dynamic linker's lock keeps loaded.
        let name = unsafe { std::ffi::CStr::from_ptr(info.dlpi_name) }.to_bytes();
        // A name that is too long stays empty, so that its object is not pinned.
        if name.len() < MAX_NAME {
            search.name[..name.len()].copy_from_slice(name);
        }
        1
    }
}

/// A statically linked program does not load objects.
#[cfg(target_feature = "crt-static")]
mod linker {
    pub(super) const fn pin(_: usize) {}
}
