//! Standard error of this process.

use std::fs::File;
use std::io;

/// Writes it to this file from now on.
pub fn redirect(file: File) -> io::Result<()> {
    Ok(nix::unistd::dup2_stderr(file)?)
}
