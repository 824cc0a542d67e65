//! Entry point of `diskplugin-node`: only the roles of a node. Leaving out the code of the other roles reduces the
//! memory that the program uses on each node.

use std::process::ExitCode;

use diskplugin::app;

#[global_allocator]
static ALLOCATOR: app::Allocator = app::Allocator;

fn main() -> ExitCode {
    app::parse().map_or_else(|ended| ended, app::run_node)
}
