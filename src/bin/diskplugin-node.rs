//! Entry point of `diskplugin-node`: the roles of a node and nothing else. What other roles need is not in the program, so that
//! a node does not hold code of it: the kernel maps a program in pieces, with all that lies between what is used.

use std::process::ExitCode;

use diskplugin::{app, cli};

fn main() -> ExitCode {
    cli::parse().map_or_else(|ended| ended, app::run_node)
}
