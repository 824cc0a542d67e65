//! The commands that set up loop devices.

use std::error::Error;
use std::ffi::OsStr;
use std::fmt::Debug;
use std::process::Stdio;

use async_trait::async_trait;

pub type CommandError = Box<dyn Error + Send + Sync>;

/// Runs commands. A program that must start no process while it opens a device exclusively implements this itself: a
/// new process has a copy of every open file until it executes its program.
#[async_trait]
pub trait RunCommand: Debug + Send + Sync {
    /// Returns the standard output. The command ends if the future is dropped: the caller has a timeout.
    ///
    /// # Errors
    /// If the command cannot be started, or does not exit with 0.
    async fn run(&self, program: &str, arguments: &[&OsStr]) -> Result<String, CommandError>;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemCommands;

#[async_trait]
impl RunCommand for SystemCommands {
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place of the fake cloud that starts processes; the caller has a timeout"
    )]
    async fn run(&self, program: &str, arguments: &[&OsStr]) -> Result<String, CommandError> {
        let output = tokio::process::Command::new(program)
            .args(arguments)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            // Ctrl-C goes only to the fake cloud, which then frees its devices with commands.
            .process_group(0)
            .kill_on_drop(true)
            .output()
            .await
            .map_err(|error| format!("cannot start {program}: {error}"))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{program}: {}: {}", output.status, stderr.trim()).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_command_returns_its_output_or_an_error() {
        let echo = SystemCommands.run("echo", &["a b".as_ref()]).await;
        assert_eq!(echo.unwrap(), "a b\n");
        let missing = SystemCommands.run("no-such-program", &[]).await;
        let text = missing.unwrap_err().to_string();
        assert!(text.starts_with("cannot start no-such-program: "), "{text}");
        let failed = SystemCommands.run("cat", &["/no/such/file".as_ref()]).await;
        let text = failed.unwrap_err().to_string();
        assert!(
            text.contains("exit status: 1") && text.contains("/no/such/file"),
            "{text}"
        );
    }
}
