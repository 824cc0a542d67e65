//! Errors of commands.

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
