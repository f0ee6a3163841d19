//! The notes with which other tools find tracepoints (USDT): `.note.stapsdt`, with the names and types of the fields in `.note.tracepoint`.
//!
//! The notes of programs built without this library, such as C programs with `sys/sdt.h`, are read as well; they have no fields.
//! `docs/usdt.md` describes both sections.

use object::read::elf::{ElfFile64, NoteIterator};
use object::read::{ReadCache, ReadRef};
use object::{Endianness, Object, ObjectSection};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Maximum number of notes read from a file.
const MAX_NOTES: usize = 1 << 20;
/// Maximum number of words that are passed as separate arguments; with more, the first argument is the address of the first word.
const MAX_ARGUMENTS: usize = 12;

/// A note of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The part of the event's name before the colon.
    pub provider: String,
    /// The part of the event's name after the colon.
    pub name: String,
    /// The address of the `nop` in the file, before relocation.
    pub location: u64,
    /// The address of the semaphore in the file; 0 if there is none.
    pub semaphore: u64,
    /// The arguments as in the note: `-4@8(%rax)`.
    pub arguments: Vec<String>,
    /// The fields, in order; `None` if the note is not from this library.
    pub fields: Option<Vec<NoteField>>,
}

impl Note {
    /// `provider:name`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.provider, self.name)
    }

    /// True if a tool gets the address of the event's words, and not each word as an argument.
    pub fn is_by_address(&self) -> bool {
        let words: usize = self.fields.iter().flatten().map(NoteField::words).sum();
        words > MAX_ARGUMENTS
    }
}

/// A field of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NoteField {
    /// The name.
    pub name: String,
    /// The type in the notation of a field block, `hex u32`; an array has no length: `[u16]`.
    pub ty: String,
}

impl NoteField {
    /// The type inside `Option<…>`, if the type is an `Option`.
    pub fn optional(&self) -> Option<&str> {
        self.ty.strip_prefix("Option<")?.strip_suffix('>')
    }

    /// The number of 8-byte words of its value.
    pub fn words(&self) -> usize {
        let ty = self.optional().unwrap_or(&self.ty);
        let is_in_memory = matches!(ty, "str" | "path") || ty.starts_with('[');
        if is_in_memory || self.optional().is_some() { 2 } else { 1 }
    }
}

/// The notes of a file cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NotesError {
    /// The file cannot be opened.
    #[error("cannot open {}: {error}", path.display())]
    #[non_exhaustive]
    Open {
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The file is not a 64-bit ELF file, or is damaged.
    #[error("{} is not a program or library that can be read: {reason}", path.display())]
    #[non_exhaustive]
    NotElf {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// The notes of a program or a shared object, in the order of the file. Only 64-bit ELF files are supported.
///
/// # Errors
///
/// If the file cannot be opened, is not a 64-bit ELF file, or its notes are damaged.
pub fn notes_of_file(path: &Path) -> Result<Vec<Note>, NotesError> {
    let file = File::open(path).map_err(|error| NotesError::Open { path: path.to_owned(), error })?;
    notes(&ReadCache::new(file))
        .map_err(|error| NotesError::NotElf { path: path.to_owned(), reason: error.to_string() })
}

/// The notes of a file in memory.
///
/// # Errors
///
/// As [`notes_of_file`].
pub fn notes_of_bytes(bytes: &[u8]) -> Result<Vec<Note>, object::Error> {
    notes(bytes)
}

fn notes<'d, R: ReadRef<'d>>(data: R) -> Result<Vec<Note>, object::Error> {
    let file = ElfFile64::<Endianness, R>::parse(data)?;
    let mut fields = HashMap::new();
    for description in descriptions(&file, ".note.tracepoint", b"tracepoint")? {
        if let Some((semaphore, [text, ..])) =
            words_and_texts::<1>(description, &file).map(|(words, texts)| (words[0], texts))
        {
            fields.insert(semaphore, text.split(',').filter_map(field).collect::<Vec<_>>());
        }
    }
    let mut notes = Vec::new();
    for description in descriptions(&file, ".note.stapsdt", b"stapsdt")? {
        let Some(([location, _, semaphore], [provider, name, arguments])) = words_and_texts::<3>(description, &file)
        else {
            continue;
        };
        notes.push(Note {
            provider,
            name,
            location,
            semaphore,
            arguments: split_arguments(&arguments),
            fields: fields.get(&semaphore).filter(|_| semaphore != 0).cloned(),
        });
    }
    Ok(notes)
}

/// The descriptions of a section's notes by `owner`.
fn descriptions<'d, R: ReadRef<'d>>(
    file: &ElfFile64<'d, Endianness, R>,
    section: &str,
    owner: &[u8],
) -> Result<Vec<&'d [u8]>, object::Error> {
    let Some(section) = file.section_by_name(section) else { return Ok(Vec::new()) };
    let endian = file.endian();
    let align = section.elf_section_header().sh_addralign.get(endian);
    let mut notes = NoteIterator::<object::elf::FileHeader64<Endianness>>::new(endian, align, section.data()?)?;
    let mut found = Vec::new();
    while let Some(note) = notes.next()? {
        if note.name() == owner && found.len() < MAX_NOTES {
            found.push(note.desc());
        }
    }
    Ok(found)
}

/// Reads `N` words of 8 bytes, followed by three texts; missing texts are empty. `None` if a word is missing.
fn words_and_texts<'d, const N: usize>(
    description: &[u8],
    file: &ElfFile64<'d, Endianness, impl ReadRef<'d>>,
) -> Option<([u64; N], [String; 3])> {
    let (words, texts) = description.split_at_checked(N * 8)?;
    let mut read = [0; N];
    for (word, bytes) in read.iter_mut().zip(words.chunks_exact(8)) {
        let bytes = bytes.try_into().ok()?;
        *word = if file.is_little_endian() { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) };
    }
    let mut texts = texts.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
    Some((read, std::array::from_fn(|_| texts.next().unwrap_or_default())))
}

fn field(text: &str) -> Option<NoteField> {
    let (name, ty) = text.split_once(':')?;
    Some(NoteField { name: name.to_owned(), ty: ty.to_owned() })
}

/// Splits at the spaces before a size and `@`: an operand of aarch64 contains spaces, `8@[x0, 16]`.
fn split_arguments(text: &str) -> Vec<String> {
    let mut arguments: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match arguments.last_mut() {
            Some(last) if !word.contains('@') => {
                last.push(' ');
                last.push_str(word);
            }
            _ => arguments.push(word.to_owned()),
        }
    }
    arguments
}
