//! Runs external commands without a shell. A command is killed at its deadline or when its future is dropped; errors
//! contain its stderr.

use std::ffi::OsString;
use std::fmt::{self, Debug};
use std::fs;
use std::process::Stdio;

use async_trait::async_trait;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Child;

use super::device_lock::DeviceLock;
use super::exclusive;
use crate::base::Deadline;
use crate::model::Bytes;

#[async_trait]
pub trait Exec: Debug + Send + Sync {
    /// Runs the command and returns its output, regardless of its exit code.
    ///
    /// # Errors
    /// If the command cannot be started, or does not finish by the deadline and is killed.
    async fn run(&self, command: &Command, deadline: Deadline) -> Result<Output, ExecError>;
}

#[derive(Clone, Default)]
pub struct Command {
    pub program: OsString,
    pub args: Vec<OsString>,
    lock: Option<DeviceLock>,
    stdin: Option<&'static str>,
    pub(super) memory: Option<Bytes>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// The exit code; `None` if a signal terminated the command.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

#[derive(Debug, thiserror::Error)]
#[error("`{command}`: {failure}")]
pub struct ExecError {
    pub command: String,
    #[source]
    pub failure: ExecFailure,
}

#[derive(Debug, thiserror::Error)]
pub enum ExecFailure {
    #[error("the program is not installed")]
    NotInstalled,
    #[error("cannot be started: {0}")]
    Start(std::io::Error),
    #[error("timed out and was killed")]
    Deadline,
    #[error("{}: {stderr}", exit(*.code))]
    Exit {
        /// The exit code; `None` if a signal terminated the command.
        code: Option<i32>,
        stderr: String,
    },
}

fn exit(code: Option<i32>) -> String {
    match code {
        Some(code) => format!("exit code {code}"),
        None => "terminated by a signal".to_owned(),
    }
}

impl Command {
    /// A command without arguments; the program is searched in `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            ..Self::default()
        }
    }

    /// Limits the address space of the command (`RLIMIT_AS`).
    pub fn with_memory(mut self, memory: Option<Bytes>) -> Self {
        self.memory = memory;
        self
    }

    /// Passes this text, of at most a line, to the standard input.
    pub fn with_stdin(mut self, text: &'static str) -> Self {
        self.stdin = Some(text);
        self
    }

    /// Lets the command inherit the lock, which is held until the command exits, even if this process exits earlier.
    pub fn with_lock(mut self, lock: &DeviceLock) -> Self {
        self.lock = Some(lock.clone());
        self
    }

    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn error(&self, failure: ExecFailure) -> ExecError {
        ExecError {
            command: self.to_string(),
            failure,
        }
    }

    pub fn check_exit_code(&self, output: Output) -> Result<Output, ExecError> {
        if output.code == Some(0) {
            return Ok(output);
        }
        let message = if output.stderr.trim().is_empty() {
            output.stdout
        } else {
            output.stderr
        };
        Err(self.error(ExecFailure::Exit {
            code: output.code,
            stderr: message.trim().to_owned(),
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

/// The highest value of `oom_score_adj` (proc(5)).
const OOM_SCORE: &str = "1000";

/// Maximum number of bytes kept of each output stream. A check of a damaged filesystem can print many lines.
const MAX_OUTPUT: u64 = 8 << 10;

#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessExec;

#[async_trait]
impl Exec for ProcessExec {
    async fn run(&self, command: &Command, deadline: Deadline) -> Result<Output, ExecError> {
        let stdin = match (&command.lock, command.stdin) {
            (Some(lock), _) => lock
                .to_stdin()
                .map_err(|error| command.error(ExecFailure::Start(error)))?,
            (None, Some(_)) => Stdio::piped(),
            (None, None) => Stdio::null(),
        };
        #[expect(clippy::disallowed_methods, reason = "the only place that starts processes")]
        let mut process = tokio::process::Command::new(&command.program);
        process
            .args(&command.args)
            .env("LC_ALL", "C")
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A separate process group: Ctrl-C goes to the driver only, which lets running calls finish.
            .process_group(0)
            .kill_on_drop(true);
        let memory = command.memory;
        let start = exclusive::start(process, move |child| limit_memory(child, memory));
        let start = deadline.bound(start).await;
        let started = start.map_err(|_| command.error(ExecFailure::Deadline))?;
        let mut child = started.map_err(|error| {
            command.error(match error.kind() {
                std::io::ErrorKind::NotFound => ExecFailure::NotInstalled,
                _ => ExecFailure::Start(error),
            })
        })?;
        if let (Some(mut stdin), Some(text)) = (child.stdin.take(), command.stdin) {
            // The pipe holds a line. A command that does not read it fails for a reason of its own.
            let _ = stdin.write_all(text.as_bytes()).await;
        }
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let ended = async { tokio::try_join!(child.wait(), read_limited(stdout), read_limited(stderr)) };
        let (status, stdout, stderr) = deadline
            .bound(ended)
            .await
            .map_err(|_| command.error(ExecFailure::Deadline))?
            .map_err(|error| command.error(ExecFailure::Start(error)))?;
        Ok(Output {
            code: status.code(),
            stdout,
            stderr,
        })
    }
}

/// Limits the address space of a child, and makes the kernel terminate the child instead of the driver when the memory
/// of the container is exhausted. Failures are logged: the child may have ended.
fn limit_memory(child: &Child, memory: Option<Bytes>) {
    let Some(id) = child.id() else { return };
    if let Err(error) = fs::write(format!("/proc/{id}/oom_score_adj"), OOM_SCORE) {
        tracing::debug!(pid = id, %error, "cannot set the OOM score of a command");
    }
    let Some(memory) = memory else { return };
    let limit = Rlimit {
        current: Some(memory.0),
        maximum: Some(memory.0),
    };
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let Err(error) = prlimit(pid, Resource::As, limit) {
        tracing::debug!(pid = id, %error, "cannot limit the memory of a command");
    }
}

/// Reads to the end, and returns the first [`MAX_OUTPUT`] bytes.
async fn read_limited(pipe: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let Some(mut pipe) = pipe else {
        return Ok(String::new());
    };
    let mut kept = Vec::new();
    (&mut pipe).take(MAX_OUTPUT).read_to_end(&mut kept).await?;
    // Drain the pipe: a command that cannot write blocks, or is terminated by a signal.
    let omitted = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await?;
    let mut text = String::from_utf8_lossy(&kept).into_owned();
    if omitted > 0 {
        text.push_str(&format!("\n({omitted} more bytes)"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn run(command: &Command, time: Duration) -> Result<Output, ExecError> {
        let output = ProcessExec.run(command, Deadline::after(time)).await?;
        command.check_exit_code(output)
    }

    #[tokio::test]
    async fn an_error_contains_command_exit_code_and_stderr() {
        let command = Command::new("ls").arg("/nowhere-at-all");
        let error = run(&command, Duration::from_secs(5)).await.unwrap_err();
        let text = crate::base::error_chain(&error);
        assert!(
            text.contains("`ls /nowhere-at-all`") && text.contains(": exit code 2: "),
            "{text}"
        );
        assert!(text.contains("No such file"), "{text}");
    }

    #[tokio::test]
    async fn an_error_names_a_missing_program() {
        let error = run(&Command::new("no-such-tool"), Duration::from_secs(5))
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "`no-such-tool`: the program is not installed");
    }

    #[tokio::test]
    async fn the_standard_input_ends_after_its_text() {
        let command = Command::new("cat").with_stdin(", +\n");
        let output = run(&command, Duration::from_secs(5)).await.unwrap();
        assert_eq!(output.stdout, ", +\n");
    }

    #[tokio::test]
    async fn a_long_output_is_truncated() {
        let command = Command::new("seq").arg("1000000");
        let output = run(&command, Duration::from_secs(30)).await.unwrap();
        assert!(output.stdout.starts_with("1\n2\n"));
        assert!(output.stdout.ends_with(" more bytes)"), "{}", output.stdout.len());
        assert!(output.stdout.len() < 20_000, "{}", output.stdout.len());
    }

    /// The command reads a line first, which is written after the limits are set.
    #[tokio::test]
    async fn the_kernel_terminates_a_command_instead_of_the_driver() {
        let script = "read line; ulimit -v; cat /proc/$$/oom_score_adj";
        let command = Command::new("sh").args(["-c", script]).with_stdin("\n");
        let limited = command.with_memory(Some(Bytes(64 << 20)));
        let output = run(&limited, Duration::from_secs(5)).await.unwrap();
        assert_eq!(output.stdout, "65536\n1000\n");
    }

    #[tokio::test]
    async fn a_command_is_killed_at_the_deadline() {
        let command = Command::new("sleep").arg("600");
        let error = run(&command, Duration::from_millis(50)).await.unwrap_err();
        assert!(matches!(error.failure, ExecFailure::Deadline), "{error}");
    }
}
