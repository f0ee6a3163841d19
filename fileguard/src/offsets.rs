//! Reads and writes at offsets: the trait of the standard library where it has one.

#[cfg(unix)]
pub use std::os::unix::fs::FileExt;
#[cfg(windows)]
pub use windows::FileExt;

/// The same methods on Windows, whose calls also move the file's cursor.
#[cfg(windows)]
mod windows {
    use std::fs::File;
    use std::io::{self, ErrorKind};
    use std::os::windows::fs::FileExt as _;

    /// Reads and writes at offsets.
    pub trait FileExt {
        /// Reads bytes at `offset`, and returns their number: 0 at the end of the file.
        ///
        /// # Errors
        ///
        /// The error of the system.
        fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

        /// Fills all of `bytes` with those at `offset`.
        ///
        /// # Errors
        ///
        /// If there are fewer, or the error of the system.
        fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()>;

        /// Writes all of `bytes` at `offset`.
        ///
        /// # Errors
        ///
        /// The error of the system.
        fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    }

    impl FileExt for File {
        fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
            self.seek_read(bytes, offset)
        }

        fn read_exact_at(&self, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
            while !bytes.is_empty() {
                match self.seek_read(bytes, offset) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    Ok(count) => (bytes, offset) = (&mut bytes[count..], offset + count as u64),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }

        fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
            while !bytes.is_empty() {
                match self.seek_write(bytes, offset) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(count) => (bytes, offset) = (&bytes[count..], offset + count as u64),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        }
    }
}
