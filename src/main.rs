//! Entry point: parses the command line and dispatches to a role.

fn main() {}
