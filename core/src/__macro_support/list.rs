//! The macro that puts a tracepoint or a marker into the tables of the `registry`.

/// Puts a static into a table of this linked object: `__tracepoint_list!(MARKERS: Marker, STATIC)`, or `TRACEPOINTS: Tracepoint`. Also
/// registers the object, which may declare tracepoints without calling any.
///
/// The entries are written by the assembler, because only it can give a section the flag `R`: linkers that discard unreferenced sections
/// retain it. Its function is never inlined, so that there is one entry.
#[cfg(patched_sites)]
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_list {
    ($table:ident: $ty:ident, $listed:path) => {
        const _: () = {
            #[used]
            static __TRACEPOINT_ENTRY: fn() = __tracepoint_entry;

            #[inline(never)]
            fn __tracepoint_entry() {
                // The table's type is checked here.
                let _: &'static $crate::__macro_support::$ty = &$listed;
                // SAFETY: emits no instruction; only adds to sections.
                unsafe {
                    ::core::arch::asm!(
                        ::core::concat!(".pushsection tracepoint_", ::core::stringify!($table), ",\"awR\",@progbits"),
                        ".balign 8",
                        ".quad {listed}",
                        ".popsection",
                        $crate::__tracepoint_object!(),
                        listed = sym $listed,
                        register = sym $crate::__macro_support::register_object,
                        unregister = sym $crate::__macro_support::unregister_object,
                        options(nomem, nostack, preserves_flags),
                    )
                }
            }
        };
    };
}

/// Puts a static into a table: `__tracepoint_list!(MARKERS: Marker, STATIC)`, or `TRACEPOINTS: Tracepoint`.
#[cfg(not(any(patched_sites, target_family = "wasm")))]
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_list {
    ($table:ident: $ty:ident, $listed:path) => {
        const _: () = {
            #[$crate::__macro_support::linkme::distributed_slice($crate::__macro_support::$table)]
            #[linkme(crate = $crate::__macro_support::linkme)]
            static __TRACEPOINT_ENTRY: &$crate::__macro_support::$ty = &$listed;
            // GNU's linker for Windows drops sections to which nothing refers, the tables included. It keeps this one, which nothing reads.
            #[cfg(all(windows, target_env = "gnu"))]
            #[used]
            #[unsafe(link_section = ".jcr")]
            static __TRACEPOINT_KEPT: &&$crate::__macro_support::$ty = &__TRACEPOINT_ENTRY;
        };
    };
}

/// Checks the type of what would be in a table: there is none, see the `registry`.
#[cfg(target_family = "wasm")]
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_list {
    ($table:ident: $ty:ident, $listed:path) => {
        const _: fn() -> &'static $crate::__macro_support::$ty = || &$listed;
    };
}
