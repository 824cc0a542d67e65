//! Entry point of `diskplugin`: parses the command line and runs the role.

use std::process::ExitCode;

use diskplugin::app;

#[global_allocator]
static ALLOCATOR: app::Allocator = app::Allocator;

fn main() -> ExitCode {
    app::parse_program().map_or_else(|ended| ended, app::run)
}
