//! The fake [`Exec`]: commands are recorded, and their exit codes are set.

use async_trait::async_trait;

use super::FakeHost;
use crate::base::Deadline;
use crate::linux::{Command, Exec, ExecError, Output};

#[async_trait]
impl Exec for FakeHost {
    async fn run(&self, command: &Command, deadline: Deadline) -> std::result::Result<Output, ExecError> {
        let mut state = self.state();
        let line = command.to_string();
        let names = [line.as_str(), command.program.to_str().unwrap_or_default()];
        let code = names.iter().find_map(|name| state.exit_codes.get(name).copied());
        state.calls.push(line);
        state.tool_limits.push((command.memory, deadline.remaining()));
        let is_killed = state.killed_program.is_some_and(|name| command.program == name);
        Ok(Output {
            code: (!is_killed).then_some(code.unwrap_or(0)),
            stdout: String::new(),
            stderr: "fake stderr".to_owned(),
        })
    }
}
