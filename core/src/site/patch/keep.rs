//! Objects that stay loaded, whatever `dlclose` says: for whoever keeps what he has listed of them.

use super::object::{changes, objects};
use tracepoint_ring::update::{self, UpdateGuard};

/// Keeps all objects loaded that are known, and runs `list` while those are the ones.
///
/// Asks the dynamic linker: no lock of ours is held. An object that comes or goes meanwhile has it begin again.
pub(crate) fn keep_loaded<R>(list: impl FnOnce(&UpdateGuard<'_>) -> R) -> R {
    loop {
        let (before, addresses) = {
            let locked = update::lock_without_setup();
            let addresses: Vec<_> = objects(&locked).map(|object| std::ptr::from_ref(object).addr()).collect();
            (changes(&locked), addresses)
        };
        addresses.into_iter().for_each(linker::keep);
        let locked = update::lock_without_setup();
        // None has gone: each was there when it was kept.
        if changes(&locked) == before {
            return list(&locked);
        }
    }
}

#[cfg(not(target_feature = "crt-static"))]
mod linker {
    use std::ffi::{c_int, c_void};

    /// The longest name of an object that can be kept, in bytes with its NUL: what the kernel takes as a path.
    const LONGEST: usize = 4096;

    struct Search {
        inside: usize,
        name: [u8; LONGEST],
    }

    /// Keeps the object with this address, if there is one.
    pub(super) fn keep(inside: usize) {
        let mut search = Search { inside, name: [0; LONGEST] };
        // SAFETY: `take_name` gets the address of `search`, which is alive and used by nobody else until the call returns.
        unsafe { libc::dl_iterate_phdr(Some(take_name), (&raw mut search).cast()) };
        // The program itself has no name here, and is never unloaded.
        if search.name[0] != 0 {
            // SAFETY: a text of ours that ends with a NUL. With NOLOAD it only adds NODELETE to what is loaded under that name; one that has
            // gone meanwhile is not loaded again.
            unsafe {
                libc::dlopen(search.name.as_ptr().cast(), libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE)
            };
        }
    }

    /// Called for each loaded object, with the dynamic linker's lock held, so that its name stays; ends the iteration, by a result other
    /// than 0, at the one that is looked for.
    unsafe extern "C" fn take_name(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
        // SAFETY: the dynamic linker passes a description that is alive during the call, with as many headers as it says, and `keep`
        // passes its search.
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
        // SAFETY: a text that ends with a NUL, and lives as long as the object, which the lock keeps.
        let name = unsafe { std::ffi::CStr::from_ptr(info.dlpi_name) }.to_bytes();
        // One that is longer stays empty.
        if name.len() < LONGEST {
            search.name[..name.len()].copy_from_slice(name);
        }
        1
    }
}

/// A program that is linked statically loads nothing.
#[cfg(target_feature = "crt-static")]
mod linker {
    pub(super) const fn keep(_: usize) {}
}
