//! A terminal for programs that need one: tmux, with a separate server.

use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Time limit for text to appear.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Tmux {
    place: TempDir,
}

impl Tmux {
    /// Runs a shell command in a terminal of this size, then prints its exit code and the state of the terminal.
    pub(crate) fn run(command: &str, (width, height): (u16, u16), environment: &[(&str, &str)]) -> Self {
        let tmux = Self { place: tempfile::tempdir().unwrap() };
        let script = format!(
            "{command}; echo ended $?; stty -a | tr ';' '\\n' | grep -ow -e '-*icanon' -e '-*echo'; exec sleep 1000"
        );
        let size = [width.to_string(), height.to_string()];
        let mut arguments = vec!["new-session", "-d", "-x", &size[0], "-y", &size[1]];
        let variables: Vec<_> = environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        arguments.extend(variables.iter().flat_map(|variable| ["-e", variable]));
        tmux.tmux(&[&arguments[..], &["sh", "-c", &script]].concat());
        tmux
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-u", "-f", "/dev/null", "-S"]).arg(self.place.path().join("socket")).args(arguments);
        command.env("LC_ALL", "C.UTF-8").env_remove("TMUX");
        let output = command.output().expect("tmux: scripts/setup.sh installs it");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The contents of the screen.
    pub(crate) fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// Presses keys, given by tmux's names.
    pub(crate) fn press(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys"], keys].concat());
    }

    pub(crate) fn resize(&self, width: u16, height: u16) {
        self.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    /// The id of the shell that runs the command.
    pub(crate) fn shell(&self) -> u32 {
        self.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().parse().unwrap()
    }

    /// Waits until the screen fulfils a condition, and returns it.
    pub(crate) fn until(&self, what: &str, condition: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let screen = self.screen();
            if condition(&screen) {
                return screen;
            }
            assert!(Instant::now() < end, "{what} does not appear:\n{screen}");
            sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end with this exit code; the terminal must be restored.
    pub(crate) fn until_ended(&self, code: u8) {
        let end = format!("ended {code}\nicanon\necho\n");
        self.until(&end, |screen| screen.contains(&end));
        assert_eq!(self.tmux(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]).trim(), "0 1");
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
