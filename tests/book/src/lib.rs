//! The code blocks of the book (`docs/`) as doc tests, and the figures that the README takes from the book.
//!
//! `cargo test -p tracepoint-book` compiles and runs the blocks, checks all links between the Markdown files of the repository, and
//! compares the README's figures with `docs/costs.md`.

#![forbid(unsafe_code)]

pub mod figures;

/// Each page whose Rust blocks are compiled.
#[cfg(doctest)]
mod pages {
    macro_rules! pages {
        ($($name:ident: $path:literal),* $(,)?) => {
            $(#[doc = include_str!(concat!("../../../", $path))] pub mod $name {})*
        };
    }

    pages! {
        readme: "README.md",
        first_steps: "docs/first-steps.md",
        declaring: "docs/declaring.md",
        service: "docs/service.md",
        spans: "docs/spans.md",
        probes: "docs/probes.md",
        sessions: "docs/sessions.md",
        filters: "docs/filters.md",
        control: "docs/control.md",
        collector: "docs/collector.md",
        channels: "docs/channels.md",
        reading: "docs/reading.md",
        recovery: "docs/recovery.md",
        triggers: "docs/triggers.md",
        dt_files: "docs/dt-files.md",
        udp: "docs/udp.md",
        testing: "docs/testing.md",
        extending: "docs/extending.md",
        from_tracing: "docs/from-tracing.md",
        from_lttng: "docs/from-lttng.md",
    }
}
