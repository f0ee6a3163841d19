//! A build without the feature `failpoints` contains no trace of the failpoints.

use crate::fixture::{Build, run};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};
use std::path::Path;

/// The traces of failpoints in a program.
#[derive(Debug)]
struct Found {
    /// Symbols whose names contain the modules' names.
    symbols: usize,
    /// Sections whose data contain the module's name or that of a failpoint: names occur in panic messages and debug information.
    sections: Vec<String>,
    /// The size of the program's code.
    code: u64,
}

fn find(path: &Path) -> Found {
    assert_eq!(run(path, &[]).trim(), "100", "it records, and so all that a record takes is in it");
    let bytes = std::fs::read(path).expect("a program");
    let file = object::File::parse(&*bytes).expect("an object file");
    let has = |data: &[u8]| {
        let words: [&[u8]; 2] = [b"failpoint", b"OpenMagicGone"];
        words.iter().any(|word| data.windows(word.len()).any(|part| part == *word))
    };
    let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
    Found {
        symbols: file.symbols().filter(|symbol| symbol.name_bytes().is_ok_and(has)).count(),
        sections: file
            .sections()
            .filter(|section| section.data().is_ok_and(has))
            .map(|section| section.name().expect("UTF-8").to_owned())
            .collect(),
        code: code.map(|section| section.size()).sum(),
    }
}

#[test]
fn a_build_without_failpoints_has_none() {
    let without = find(&Build::profile("release").binary("recording"));
    assert_eq!((without.symbols, &without.sections[..]), (0, &[][..]), "{without:?}");
    // The check is sensitive: with the feature there are traces.
    let with = find(&Build::profile("release").feature("failpoints").binary("recording"));
    assert!(with.symbols > 0 && !with.sections.is_empty() && with.code > without.code, "{with:?}, {without:?}");
}
