//! Names of functions for addresses of traced processes.
//!
//! The metadata of a trace with call stacks lists the code mappings of the process, with the build ids of the files. A file is used only if it still
//! has the same build id; otherwise the debug file for the build id in `/usr/lib/debug` is used. Other addresses are shown as file and offset, or as
//! plain addresses.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::read::ReadCache;
use object::{Object, ObjectSegment};
use tracepoint_reader::metadata::Module;

/// Directory of separate debug information, by build id.
const DEBUG_FILES: &str = "/usr/lib/debug/.build-id";

struct Symbols {
    loader: Loader,
    /// The loaded segments: file offset, size, address.
    segments: Vec<(u64, u64, u64)>,
}

impl Symbols {
    /// Opens a file, if it has this build id.
    fn open(path: &Path, build_id: Option<&str>) -> Option<Self> {
        // Accept regular files only: the path in a trace may also name a pipe or a device.
        if !fs::metadata(path).ok()?.is_file() {
            return None;
        }
        let cache = ReadCache::new(fs::File::open(path).ok()?);
        let file = object::File::parse(&cache).ok()?;
        let id = file.build_id().ok()?.map(crate::plain::base16);
        if id.as_deref() != build_id {
            return None;
        }
        let segment = |segment: object::Segment<'_, '_, _>| {
            let (offset, size) = segment.file_range();
            (offset, size, segment.address())
        };
        let segments = file.segments().map(segment).collect();
        Some(Self { loader: Loader::new(path).ok()?, segments })
    }

    /// The functions at a file offset, outermost first.
    fn functions(&self, place: u64) -> Vec<String> {
        let mut segments = self.segments.iter();
        let found = segments.find(|(offset, size, _)| place.checked_sub(*offset).is_some_and(|at| at < *size));
        let Some((offset, _, address)) = found else { return Vec::new() };
        let address = address.wrapping_add(place - offset);
        let mut names = Vec::new();
        if let Ok(mut frames) = self.loader.find_frames(address) {
            while let Ok(Some(frame)) = frames.next() {
                names.extend(frame.function.and_then(|function| Some(function.demangle().ok()?.into_owned())));
            }
        }
        if names.is_empty() {
            let symbol = self.loader.find_symbol(address);
            names.extend(symbol.map(|name| addr2line::demangle_auto(name.into(), None).into_owned()));
        }
        names.reverse();
        names
    }
}

/// A file, and its recorded build id.
type FileKey = (PathBuf, Option<String>);

/// The files opened so far, and the functions found.
#[derive(Default)]
pub(crate) struct SymbolTable {
    files: HashMap<FileKey, Option<Symbols>>,
    /// By file offset, or by address.
    known: HashMap<(Option<FileKey>, u64), Vec<String>>,
}

impl fmt::Debug for SymbolTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SymbolTable").field("files", &self.files.keys()).finish_non_exhaustive()
    }
}

impl SymbolTable {
    /// The functions at an address, outermost first. There are several if calls were inlined.
    pub(crate) fn functions(&mut self, modules: &[Module], address: u64) -> &[String] {
        let found = modules.iter().find_map(|module| Some((module, module.place(address)?)));
        let key = match found {
            Some((module, place)) => (Some((module.path.clone(), module.build_id.clone())), place),
            None => (None, address),
        };
        let files = &mut self.files;
        self.known.entry(key).or_insert_with(|| {
            let Some((module, place)) = found else { return vec![format!("0x{address:x}")] };
            let file = files.entry((module.path.clone(), module.build_id.clone()));
            let symbols = file.or_insert_with(|| find(&module.path, module.build_id.as_deref()));
            let names = symbols.as_ref().map_or_else(Vec::new, |symbols| symbols.functions(place));
            if !names.is_empty() {
                return names;
            }
            let file = module.path.file_name().unwrap_or_default().to_string_lossy();
            vec![format!("{file}+0x{place:x}")]
        })
    }
}

/// Opens the debug file for a build id, with the segments of the mapped file if that is available, which the debug file does not have; or else the
/// mapped file.
fn find(path: &Path, build_id: Option<&str>) -> Option<Symbols> {
    let is_hex = |id: &&str| id.len() > 2 && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    let debug = build_id.filter(is_hex).map(|id| format!("{DEBUG_FILES}/{}/{}.debug", &id[..2], &id[2..]));
    let debug = debug.and_then(|debug| Symbols::open(Path::new(&debug), build_id));
    match (debug, Symbols::open(path, build_id)) {
        (Some(debug), Some(Symbols { segments, .. })) => Some(Symbols { segments, ..debug }),
        (debug, own) => own.or(debug),
    }
}
