//! Any text as a romfile: entries that are equal after they were written and read again, or errors with a position in the text.

#![no_main]

use datatrace::romfile::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    for line in parse(text) {
        match line {
            Ok(entry) => {
                let name = entry.name.as_ref().map_or_else(String::new, |name| format!("name={name} "));
                let (protocol, logsize, filesize) = (&entry.protocol, entry.logsize, entry.filesize);
                let again = format!("{protocol} trace {name}logsize={logsize} filesize={filesize};");
                let mut again = parse(&again).map(Result::unwrap);
                let (read, more) = (again.next().unwrap(), again.next());
                assert_eq!((&read.name, read.logsize, read.filesize), (&entry.name, logsize, filesize));
                assert!(read.protocol == entry.protocol && more.is_none() && logsize > 0 && filesize > 0);
            }
            Err(error) => {
                let line = text.lines().nth(error.line - 1).unwrap();
                assert!((1..=line.chars().count() + 1).contains(&error.column), "{error}");
                assert!(line.contains(&error.protocol));
            }
        }
    }
});
