//! The file that the demo writes and verifies.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use sha2::{Digest, Sha256};

const NAME: &str = "ledger";
const LATER: &str = "written-after-the-snapshot";
const BLOCKS: usize = 2048;

/// The content of the file: 8 MiB of distinct blocks.
fn content() -> impl Iterator<Item = Vec<u8>> {
    (0..BLOCKS).map(|block| {
        let digest = Sha256::digest(block.to_be_bytes());
        digest.iter().copied().cycle().take(4096).collect()
    })
}

/// Writes and syncs the file. Returns a remark for the output.
pub(super) async fn write(directory: &Path) -> anyhow::Result<String> {
    let path = directory.join(NAME);
    blocking(move || {
        let mut file = std::fs::File::create(&path)?;
        for block in content() {
            file.write_all(&block)?;
        }
        file.sync_all()
    })
    .await
    .context("cannot write the file")?;
    Ok(format!("{NAME}: 8 MiB, sha256 {}…", &expected()[..16]))
}

/// Writes a second file, which must not be in the snapshot.
pub(super) async fn write_later(directory: &Path) -> anyhow::Result<()> {
    let path = directory.join(LATER);
    let written = blocking(move || {
        let mut file = std::fs::File::create(&path)?;
        file.write_all(b"later")?;
        file.sync_all()
    });
    written.await.context("cannot write the second file")
}

/// Reads the file back and compares it; the second file must not exist.
pub(super) async fn verify(directory: &Path) -> anyhow::Result<String> {
    let (path, later) = (directory.join(NAME), directory.join(LATER));
    let found = blocking(move || Ok(hex(&Sha256::digest(std::fs::read(&path)?)))).await;
    let found = found.context("cannot read the file back")?;
    let expected = expected();
    anyhow::ensure!(found == expected, "{NAME} has sha256 {found}, expected {expected}");
    anyhow::ensure!(
        !later.exists(),
        "the restored volume has data written after the snapshot"
    );
    Ok(format!(
        "{NAME}: sha256 {}…, as written; {LATER}: absent, as expected",
        &found[..16]
    ))
}

fn expected() -> String {
    let mut digest = Sha256::new();
    content().for_each(|block| digest.update(&block));
    hex(&digest.finalize())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> std::io::Result<T> + Send + 'static) -> anyhow::Result<T> {
    Ok(tokio::task::spawn_blocking(work).await??)
}
