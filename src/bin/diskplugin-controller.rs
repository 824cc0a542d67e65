//! Entry point of `diskplugin-controller`: only the role of the controller. Leaving out the code of the other roles,
//! such as the commands for operators, reduces the memory that the program uses.

use std::process::ExitCode;

use diskplugin::app;

#[global_allocator]
static ALLOCATOR: app::Allocator = app::Allocator;

fn main() -> ExitCode {
    app::parse().map_or_else(|ended| ended, app::run_controller)
}
