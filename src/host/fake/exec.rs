//! The fake [`Exec`]: commands are recorded, and their exit codes are set.

use async_trait::async_trait;

use super::FakeHost;
use crate::base::Deadline;
use crate::host::{Command, Exec, ExecError, Output};

#[async_trait]
impl Exec for FakeHost {
    async fn run(
        &self,
        command: &Command,
        _deadline: Deadline,
    ) -> std::result::Result<Output, ExecError> {
        let mut state = self.state();
        state.calls.push(command.to_string());
        let code = command
            .program()
            .to_str()
            .and_then(|program| state.exit_codes.get(program).copied());
        let is_killed = state
            .killed_program
            .is_some_and(|name| command.program() == name);
        Ok(Output {
            code: (!is_killed).then_some(code.unwrap_or(0)),
            stdout: String::new(),
            stderr: "fake stderr".to_owned(),
        })
    }
}
