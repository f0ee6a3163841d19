//! A page that a process shares with the test that kills it, and the recovered trace, which is compared with the page.

use memmap2::MmapMut;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use tracepoint_reader::{Item, Trace, Value};

/// Number of words.
const WORDS: usize = 512;

/// The page's words.
pub(crate) type Words = [AtomicU64; WORDS];

/// A page of a file, which outlives a killed process.
pub(crate) struct SharedPage(MmapMut);

impl SharedPage {
    /// Creates a page of zeros.
    pub(crate) fn create(path: &Path) -> std::io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.set_len(size_of::<Words>() as u64)?;
        Self::map(&file)
    }

    /// Opens the page that another process has created.
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        Self::map(&File::options().read(true).write(true).open(path)?)
    }

    fn map(file: &File) -> std::io::Result<Self> {
        // SAFETY: the file stays as long as it is; what others write there are whole words, which are atomic here.
        let page = unsafe { MmapMut::map_mut(file) }?;
        assert!(page.len() >= size_of::<Words>(), "a page");
        Ok(Self(page))
    }

    pub(crate) fn words(&self) -> &Words {
        // SAFETY: mappings are aligned to pages, it is long enough (see `map`), and is used as atomic words only.
        unsafe { &*self.0.as_ptr().cast() }
    }

    /// Returns the words, for the lifetime of the process.
    pub(crate) fn leak(self) -> &'static Words {
        Box::leak(Box::new(self)).words()
    }
}

/// Numbers of events, by the event's name and its field `thread`, or 0 if it has no such field.
pub(crate) type Numbers = BTreeMap<(String, u64), Vec<u64>>;

/// Returns the numbers `n` in a trace, in order.
pub(crate) fn numbers(out: &Path) -> Result<Numbers, Box<dyn std::error::Error>> {
    let mut numbers = Numbers::new();
    for item in Trace::open(out)?.items() {
        match item {
            Item::Event(event) => {
                let fields = event.fields.as_ref().ok_or("an event without fields")?;
                let field = |name: &str| fields.get(name).and_then(Value::as_u64);
                let key = (event.name().to_owned(), field("thread").unwrap_or(0));
                numbers.entry(key).or_default().push(field("n").ok_or("an event without its number")?);
            }
            Item::Loss(_) => {}
            other => return Err(format!("{other:?}").into()),
        }
    }
    Ok(numbers)
}

/// Returns the number of fired events in the account of a trace.
pub(crate) fn fired(out: &Path) -> Result<u64, Box<dyn std::error::Error>> {
    let account = tracepoint_reader::account::Account::open(out)?;
    Ok(account.channels.iter().flat_map(|channel| &channel.events).map(|event| event.fired).sum())
}
