//! The pages of a process of the driver.

use super::archive::{Read, file_name};
use crate::ops::process::history;

/// Reads the pages of a process into a folder of the archive. The process may have no history of a volume.
pub(super) async fn read_pages(
    folder: &str,
    source: &str,
    volumes: &[String],
    get: impl AsyncFn(&str) -> Result<Option<String>, String>,
) -> Vec<Read> {
    let mut read = Vec::new();
    for (path, name) in [
        ("/metrics", "metrics.txt"),
        ("/readyz", "readyz.txt"),
        ("/debug/volumes", "volumes.json"),
    ] {
        read.push((format!("{folder}/{name}"), format!("{source}{path}"), get(path).await));
    }
    for volume in volumes {
        let path = history(volume);
        let page = get(&path).await;
        if page != Ok(None) {
            let name = format!("{folder}/volume-{}.json", file_name(volume));
            read.push((name, format!("{source}{path}"), page));
        }
    }
    read
}
