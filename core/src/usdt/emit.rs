//! The macros that emit a note into the program's file; the layout is the same as in SystemTap's `sys/sdt.h`.

/// The note of a marker, as `Option<&'static Note>`: `__tracepoint_note!(PROVIDER… "name", WORDS, "fields" "size" offset …)`.
/// `PROVIDER` is a part of an assembler template that emits the bytes of the provider's name, with its operands. A constant and
/// another `"fields" "size" offset …` may follow, which is used in place of the first one if the constant is `false`.
#[cfg(noted_markers)]
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_note {
    ($provider:literal [$($operand:tt)*] $name:literal, $words:tt, $fields:literal $($size:literal $offset:literal)*
        $(, $all:tt, $few:literal $($few_size:literal $few_offset:literal)*)?) => {{
        #[used]
        #[unsafe(link_section = ".probes")]
        static __TRACEPOINT_SEMAPHORE: ::core::sync::atomic::AtomicU16 = ::core::sync::atomic::AtomicU16::new(0);

        #[inline(never)]
        fn __tracepoint_note(event: $crate::marker::FieldView<'_>) {
            if __TRACEPOINT_SEMAPHORE.load(::core::sync::atomic::Ordering::Relaxed) == 0 {
                return;
            }
            let mut words = $crate::__macro_support::Words::<$words>::default();
            let base = $crate::__macro_support::fill_words(&mut words, event);
            // SAFETY: the instruction is a `nop`; the rest only adds to sections. A tool that stops the thread at this instruction reads memory.
            unsafe {
                ::core::arch::asm!(
                    "990: nop /* {base} */",
                    ".pushsection .note.stapsdt, \"\", %note",
                    ".balign 4",
                    ".4byte 992f-991f, 994f-993f, 3",
                    "991: .asciz \"stapsdt\"",
                    "992: .balign 4",
                    "993: .8byte 990b, _.stapsdt.base, {semaphore}",
                    $provider,
                    ".byte 0",
                    ::core::concat!(".asciz \"", $name, "\""),
                    $(
                        ".if {all} == 0",
                        ::core::concat!(".asciz \"", $crate::__tracepoint_note_arguments!($($few_size $few_offset)*), "\""),
                        ::core::concat!(".else /* ", $few, " */"),
                    )?
                    ::core::concat!(".asciz \"", $crate::__tracepoint_note_arguments!($($size $offset)*), "\""),
                    $(::core::concat!(".endif /* ", $few, " */"),)?
                    "994: .balign 4",
                    ".popsection",
                    // The base for the addresses in the notes, as in SystemTap's `sys/sdt.h`: one per object. It is in the
                    // code segment, because perf takes its offset for that of the code; it has the flag `R`, because lld discards it otherwise.
                    ".ifndef _.stapsdt.base",
                    ".pushsection .stapsdt.base, \"axGR\", %progbits, .stapsdt.base, comdat",
                    ".weak _.stapsdt.base",
                    ".hidden _.stapsdt.base",
                    "_.stapsdt.base: .space 1",
                    ".size _.stapsdt.base, 1",
                    ".popsection",
                    ".endif",
                    ".pushsection .note.tracepoint, \"\", %note",
                    ".balign 4",
                    ".4byte 996f-995f, 998f-997f, 1",
                    "995: .asciz \"tracepoint\"",
                    "996: .balign 4",
                    "997: .8byte {semaphore}",
                    $(".if {all} == 0", ::core::concat!(".asciz \"", $few, "\""), ".else",)?
                    ::core::concat!(".asciz \"", $fields, "\""),
                    $(::core::concat!(".endif /* ", $few, " */"),)?
                    "998: .balign 4",
                    ".popsection",
                    semaphore = sym __TRACEPOINT_SEMAPHORE,
                    base = in(reg) base,
                    $(all = const $all as ::core::primitive::u8,)?
                    $($operand)*
                    options(readonly, nostack, preserves_flags),
                )
            }
        }

        static __TRACEPOINT_NOTE: $crate::__macro_support::Note =
            $crate::__macro_support::Note::new(&__TRACEPOINT_SEMAPHORE, __tracepoint_note);
        ::core::option::Option::Some(&__TRACEPOINT_NOTE)
    }};
}

/// The arguments of a note in the assembler's notation.
#[cfg(all(noted_markers, target_arch = "x86_64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_note_arguments {
    () => { "" };
    ($size:literal $offset:literal $($sizes:literal $offsets:literal)*) => {
        ::core::concat!($size, "@", $offset, "(%{base})", $(" ", $sizes, "@", $offsets, "(%{base})"),*)
    };
}

#[cfg(all(noted_markers, target_arch = "aarch64"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_note_arguments {
    () => { "" };
    ($size:literal $offset:literal $($sizes:literal $offsets:literal)*) => {
        ::core::concat!($size, "@[{base}, ", $offset, "]", $(" ", $sizes, "@[{base}, ", $offsets, "]"),*)
    };
}

/// There are no notes on this target.
#[cfg(not(noted_markers))]
#[doc(hidden)]
#[macro_export]
macro_rules! __tracepoint_note {
    ($($note:tt)*) => {
        ::core::option::Option::None
    };
}
