//! The pages of a process of the driver.

use super::archive::file_name;
use crate::ops::process::history;

/// The pages of a process: path, name in the archive, and whether it may lack the page.
pub(super) fn pages(volumes: &[String]) -> Vec<(String, String, bool)> {
    let fixed = [
        ("/metrics", "metrics.txt"),
        ("/readyz", "readyz.txt"),
        ("/debug/volumes", "volumes.json"),
    ];
    let fixed = fixed.map(|(path, name)| (path.to_owned(), name.to_owned(), false));
    let histories = volumes.iter().map(|volume| {
        let name = format!("volume-{}.json", file_name(volume));
        (history(volume), name, true)
    });
    fixed.into_iter().chain(histories).collect()
}
