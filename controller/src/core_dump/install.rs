//! Sets and restores `core_pattern`.
//!
//! The previous pattern is stored in the helper's configuration, which is written before the new pattern, so that it can be restored after
//! a crash at any point. Writing the pattern completes the installation: a configuration without it has no effect.

use super::config::Config;
use super::pattern::{self, PatternError};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Sets and restores the system's helper for processes that dump core. Needs root.
#[derive(Clone, Debug)]
pub struct CoreHandler {
    /// `/proc/sys/kernel/core_pattern`.
    pattern_file: PathBuf,
    /// The configuration of the helper.
    config: PathBuf,
}

/// The treatment of the core image; it is discarded by default.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CoreHandlerOptions {
    /// Pass the core image on to the currently installed handler. Without this, an existing handler is not replaced.
    pub chain: bool,
    /// Write core images into this directory, which must exist.
    pub save: Option<PathBuf>,
}

/// A change of `core_pattern`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PatternChange {
    /// The previous pattern.
    pub from: String,
    /// The new pattern.
    pub to: String,
}

/// The helper cannot be installed or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CoreHandlerError {
    /// Another handler is installed, by this pattern.
    #[error("core_pattern has another handler: `{0}`; pass core images on to it with `--chain`")]
    Foreign(String),
    /// The helper is not installed, but this pattern.
    #[error("core_pattern is not that of tracectl but `{0}`: nothing is restored")]
    NotInstalled(String),
    /// The configuration is missing or damaged, and the previous pattern for the second file is lost with it.
    #[error(
        "{} is gone or damaged, and with it the former pattern; write one yourself, such as `echo core > {}`",
        .0.display(), .1.display()
    )]
    NoConfig(PathBuf, PathBuf),
    /// Other users could replace the program, which runs as root, or a directory above it.
    #[error("{} belongs to another user, or others may write to it: install tracectl where only root can replace it", .0.display())]
    Replaceable(PathBuf),
    /// The pattern cannot be used.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The kernel has stored another pattern than the written one.
    #[error("the kernel kept `{0}` in place of the pattern that was written; the former one was restored")]
    NotKept(String),
    /// A file could not be read or written: the operation, the file, and the error of the operating system.
    #[error("cannot {0} {path}: {2}", path = .1.display())]
    Io(&'static str, PathBuf, #[source] io::Error),
}

impl Default for CoreHandler {
    fn default() -> Self {
        Self { pattern_file: "/proc/sys/kernel/core_pattern".into(), config: Config::PLACE.into() }
    }
}

impl CoreHandler {
    /// Uses another configuration file than `/var/lib/tracepoint/core-handler.toml`.
    #[must_use]
    pub fn config(mut self, file: impl Into<PathBuf>) -> Self {
        self.config = file.into();
        self
    }

    /// Uses another file than `/proc/sys/kernel/core_pattern`, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn pattern_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.pattern_file = file.into();
        self
    }

    /// Makes the kernel start `program`, a `tracectl`, for processes that dump core; with `dry_run`, only determines the change. An
    /// installed helper is replaced; its stored previous pattern is kept.
    ///
    /// # Errors
    ///
    /// If another handler is installed and is not to be chained; if the pattern would be too long, or other users than root can replace the
    /// program; if a file cannot be read or written, for example without root.
    pub fn install(
        &self,
        program: &Path,
        options: CoreHandlerOptions,
        dry_run: bool,
    ) -> Result<PatternChange, CoreHandlerError> {
        check_owner(program)?;
        let config = (self.config != Path::new(Config::PLACE)).then_some(self.config.as_path());
        let to = pattern::for_helper(program, config)?;
        let from = self.read_pattern()?;
        let previous = if pattern::is_ours(&from) { self.read_config()?.previous } else { from.clone() };
        let is_handler = pattern::is_handler(&previous);
        if is_handler && !options.chain {
            return Err(CoreHandlerError::Foreign(previous));
        }
        if is_handler {
            // Fails now, not only when a process dumps core.
            pattern::expand(&previous, &[])?;
        }
        let change = PatternChange { from, to };
        if !dry_run {
            let config = Config { previous, chain: is_handler, save: options.save };
            config.write(&self.config).map_err(|source| self.failed_config("write", source))?;
            self.write_pattern(&change)?;
        }
        Ok(change)
    }

    /// Restores the pattern from before [`install`](Self::install); with `dry_run`, only determines it.
    ///
    /// # Errors
    ///
    /// If the helper is not installed, if its configuration is missing, or if a file cannot be read or written, for example without root.
    pub fn uninstall(&self, dry_run: bool) -> Result<PatternChange, CoreHandlerError> {
        let from = self.read_pattern()?;
        if !pattern::is_ours(&from) {
            return Err(CoreHandlerError::NotInstalled(from));
        }
        let change = PatternChange { from, to: self.read_config()?.previous };
        if !dry_run {
            self.write_pattern(&change)?;
            fs::remove_file(&self.config).map_err(|source| self.failed_config("remove", source))?;
        }
        Ok(change)
    }

    fn read_pattern(&self) -> Result<String, CoreHandlerError> {
        let bytes = fs::read(&self.pattern_file).map_err(|source| self.failed("read", source))?;
        Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\n').to_owned())
    }

    fn read_config(&self) -> Result<Config, CoreHandlerError> {
        Config::read(&self.config)
            .map_err(|_| CoreHandlerError::NoConfig(self.config.clone(), self.pattern_file.clone()))
    }

    fn write_pattern(&self, change: &PatternChange) -> Result<(), CoreHandlerError> {
        let write = |text: &str| {
            fs::write(&self.pattern_file, format!("{text}\n")).map_err(|source| self.failed("write", source))
        };
        write(&change.to)?;
        let kept = self.read_pattern()?;
        if kept == change.to {
            return Ok(());
        }
        write(&change.from)?;
        Err(CoreHandlerError::NotKept(kept))
    }

    fn failed(&self, action: &'static str, source: io::Error) -> CoreHandlerError {
        CoreHandlerError::Io(action, self.pattern_file.clone(), source)
    }

    fn failed_config(&self, action: &'static str, source: io::Error) -> CoreHandlerError {
        CoreHandlerError::Io(action, self.config.clone(), source)
    }
}

/// Checks that only root can replace the program: the kernel runs it as root for any user's process.
fn check_owner(program: &Path) -> Result<(), CoreHandlerError> {
    const STICKY: u32 = 0o1000;
    const WRITABLE: u32 = 0o022;
    for path in program.ancestors() {
        let file = fs::metadata(path).map_err(|source| CoreHandlerError::Io("read", path.into(), source))?;
        // In a directory with the sticky bit, others cannot replace files of root.
        let is_protected = file.mode() & WRITABLE == 0 || (file.is_dir() && file.mode() & STICKY != 0);
        if file.uid() != 0 || !is_protected {
            return Err(CoreHandlerError::Replaceable(path.into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Place {
        dir: tempfile::TempDir,
        handler: CoreHandler,
        program: PathBuf,
    }

    /// Creates a pattern file with `pattern`, and a program. Needs root, because root has to own the program.
    fn place(pattern: &str) -> Place {
        let dir = tempfile::tempdir_in("/tmp").expect("a directory");
        let (file, program) = (dir.path().join("pattern"), dir.path().join("tracectl"));
        fs::write(&file, format!("{pattern}\n")).expect("written");
        fs::write(&program, "").expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("set");
        let handler = CoreHandler::default().pattern_file(file).config(dir.path().join("core.toml"));
        Place { dir, handler, program }
    }

    impl Place {
        fn install(&self, chain: bool) -> Result<PatternChange, CoreHandlerError> {
            self.handler.install(&self.program, CoreHandlerOptions { chain, save: None }, false)
        }

        fn pattern(&self) -> String {
            self.handler.read_pattern().expect("it can be read")
        }
    }

    #[test]
    fn what_was_there_before_is_restored() {
        let place = place("core");
        let first = place.install(false).expect("installed");
        assert_eq!((first.from.as_str(), &first.to), ("core", &place.pattern()));
        assert!(pattern::is_ours(&place.pattern()));
        // Installed again, as by an update: the first pattern is still the one that is restored.
        place.install(false).expect("installed again");
        assert_eq!(place.handler.uninstall(true).expect("it can be").to, "core");
        assert!(pattern::is_ours(&place.pattern()), "a dry run changes nothing");
        place.handler.uninstall(false).expect("restored");
        assert_eq!(place.pattern(), "core");
        assert!(!place.dir.path().join("core.toml").exists());
        assert!(matches!(place.handler.uninstall(false), Err(CoreHandlerError::NotInstalled { .. })));
    }

    #[test]
    fn another_handler_is_not_overwritten() {
        const FOREIGN: &str = "|/usr/lib/systemd/systemd-coredump %P %u %g %s %t %c %h";
        let place = place(FOREIGN);
        assert!(matches!(place.install(false), Err(CoreHandlerError::Foreign { .. })));
        assert_eq!(place.pattern(), FOREIGN);
        place.install(true).expect("it is chained");
        let config = Config::read(&place.dir.path().join("core.toml")).expect("it can be read");
        assert!(config.chain && config.previous == FOREIGN);
        place.handler.uninstall(false).expect("restored");
        assert_eq!(place.pattern(), FOREIGN);
        // A handler that requires a value that is not known here.
        fs::write(place.dir.path().join("pattern"), "|/h %F\n").expect("written");
        let error = place.install(true).expect_err("it cannot be chained").to_string();
        assert!(error.contains("`%F`"), "{error}");
        assert_eq!(place.pattern(), "|/h %F");
    }

    #[test]
    fn a_program_that_others_can_replace_is_refused() {
        let place = place("core");
        fs::set_permissions(&place.program, fs::Permissions::from_mode(0o777)).expect("set");
        assert!(matches!(place.install(false), Err(CoreHandlerError::Replaceable { .. })));
        fs::set_permissions(&place.program, fs::Permissions::from_mode(0o755)).expect("set");
        std::os::unix::fs::chown(&place.program, Some(1000), None).expect("root may");
        assert!(matches!(place.install(false), Err(CoreHandlerError::Replaceable { .. })));
        assert_eq!(place.pattern(), "core");
    }

    #[test]
    fn a_lost_configuration_is_an_error() {
        let place = place("core");
        place.install(false).expect("installed");
        fs::write(place.dir.path().join("core.toml"), "previous = 7").expect("written");
        assert!(matches!(place.handler.uninstall(false), Err(CoreHandlerError::NoConfig { .. })));
        assert!(pattern::is_ours(&place.pattern()));
    }
}
