//! External commands: argv only, no shell, a deadline, killed when dropped, stderr in the error.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Debug};
use std::process::Stdio;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::claim::Claim;
use crate::base::Deadline;

/// Runs external commands.
#[async_trait]
pub trait Exec: Debug + Send + Sync {
    /// Runs the command to its end and returns what it printed, whatever its exit code.
    ///
    /// # Errors
    /// When it cannot be started, or is not done by the deadline: it is killed then.
    async fn run(&self, command: &Command, deadline: Deadline) -> Result<Output, ExecError>;
}

/// A program and its arguments.
#[derive(Clone, PartialEq, Eq)]
pub struct Command {
    program: OsString,
    args: Vec<OsString>,
    claim: Option<Claim>,
}

/// What a command left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A command that did not succeed.
#[derive(Debug, thiserror::Error)]
#[error("`{command}`: {failure}")]
pub struct ExecError {
    /// The command line.
    pub command: String,
    /// What went wrong.
    #[source]
    pub failure: Failure,
}

/// How a command failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// It is not installed.
    #[error("the program is not installed")]
    NotInstalled,
    /// It could not be started.
    #[error("cannot be started: {0}")]
    Start(std::io::Error),
    /// It was not done in time and was killed.
    #[error("was not done at the deadline and has been killed")]
    Deadline,
    /// It said no.
    #[error("exit code {code:?}: {stderr}")]
    Exit {
        /// The exit code; none when a signal ended it.
        code: Option<i32>,
        /// What it said.
        stderr: String,
    },
}

impl Command {
    /// A program, found in `PATH`.
    #[must_use]
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            claim: None,
        }
    }

    /// A command that holds a claim for as long as it runs, also beyond the life of this process.
    #[must_use]
    pub fn holding(mut self, claim: &Claim) -> Self {
        self.claim = Some(claim.clone());
        self
    }

    /// With one more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// With more arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The program's name.
    #[must_use]
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// The arguments.
    #[must_use]
    pub fn arguments(&self) -> &[OsString] {
        &self.args
    }

    /// An error of this command.
    #[must_use]
    pub fn fail(&self, failure: Failure) -> ExecError {
        ExecError {
            command: self.to_string(),
            failure,
        }
    }

    /// The output, where the command succeeded.
    ///
    /// # Errors
    /// [`Failure::Exit`] when its exit code is not 0.
    pub fn success(&self, output: Output) -> Result<Output, ExecError> {
        if output.code == Some(0) {
            return Ok(output);
        }
        let said = if output.stderr.trim().is_empty() {
            output.stdout
        } else {
            output.stderr
        };
        Err(self.fail(Failure::Exit {
            code: output.code,
            stderr: said.trim().to_owned(),
        }))
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.to_string_lossy())?;
        for arg in &self.args {
            write!(f, " {}", arg.to_string_lossy())?;
        }
        Ok(())
    }
}

impl Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// What is kept of each output. A check of a filesystem that is in pieces prints a line for each piece.
const MOST: u64 = 8 << 10;

/// Runs commands as child processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Processes;

#[async_trait]
impl Exec for Processes {
    async fn run(&self, command: &Command, deadline: Deadline) -> Result<Output, ExecError> {
        let stdin = match &command.claim {
            Some(claim) => claim
                .to_stdin()
                .map_err(|error| command.fail(Failure::Start(error)))?,
            None => Stdio::null(),
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that starts processes"
        )]
        let mut child = tokio::process::Command::new(&command.program)
            .args(&command.args)
            .env("LC_ALL", "C")
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Out of the terminal's group: Ctrl-C is for the driver, which lets running calls finish.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                command.fail(match error.kind() {
                    std::io::ErrorKind::NotFound => Failure::NotInstalled,
                    _ => Failure::Start(error),
                })
            })?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let ended = async { tokio::try_join!(child.wait(), kept(stdout), kept(stderr)) };
        let (status, stdout, stderr) = deadline
            .bound(ended)
            .await
            .map_err(|_| command.fail(Failure::Deadline))?
            .map_err(|error| command.fail(Failure::Start(error)))?;
        Ok(Output {
            code: status.code(),
            stdout,
            stderr,
        })
    }
}

/// Reads to the end, and keeps the first [`MOST`] bytes.
async fn kept(pipe: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(mut pipe) = pipe else {
        return Ok(String::new());
    };
    let mut kept = Vec::new();
    (&mut pipe).take(MOST).read_to_end(&mut kept).await?;
    // A command that cannot write waits, or is ended by a signal.
    let left_out = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    let mut text = String::from_utf8_lossy(&kept).into_owned();
    if left_out > 0 {
        text.push_str(&format!("\n({left_out} bytes more)"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn run(command: &Command, time: Duration) -> Result<Output, ExecError> {
        let output = Processes.run(command, Deadline::after(time)).await?;
        command.success(output)
    }

    #[tokio::test]
    async fn the_error_carries_command_exit_code_and_stderr() {
        let command = Command::new("ls").arg("/nowhere-at-all");
        let error = run(&command, Duration::from_secs(5)).await.unwrap_err();
        let text = crate::base::chain::chain(&error);
        assert!(
            text.contains("`ls /nowhere-at-all`") && text.contains("Some(2)"),
            "{text}"
        );
        assert!(text.contains("No such file"), "{text}");
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let error = run(&Command::new("no-such-tool"), Duration::from_secs(5))
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "`no-such-tool`: the program is not installed"
        );
    }

    #[tokio::test]
    async fn of_a_long_output_the_beginning_is_kept_and_the_command_still_ends() {
        let command = Command::new("seq").arg("1000000");
        let output = run(&command, Duration::from_secs(30)).await.unwrap();
        assert!(output.stdout.starts_with("1\n2\n"));
        assert!(
            output.stdout.ends_with(" bytes more)"),
            "{}",
            output.stdout.len()
        );
        assert!(output.stdout.len() < 20_000, "{}", output.stdout.len());
    }

    #[tokio::test]
    async fn a_command_that_hangs_is_killed_at_the_deadline() {
        let command = Command::new("sleep").arg("600");
        let error = run(&command, Duration::from_millis(50)).await.unwrap_err();
        assert!(matches!(error.failure, Failure::Deadline), "{error}");
    }
}
