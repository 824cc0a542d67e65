//! The file that the demo writes and compares.

use std::path::Path;

use anyhow::Context;
use sha2::{Digest, Sha256};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

const NAME: &str = "ledger";
const LATER: &str = "written-after-the-snapshot";

/// 8 MiB of distinct blocks.
fn content() -> Vec<u8> {
    let block = |number: u32| Sha256::digest(number.to_be_bytes()).repeat(128);
    (0..2048).flat_map(block).collect()
}

pub(super) async fn write(directory: &Path) -> anyhow::Result<String> {
    let content = content();
    store(&directory.join(NAME), &content).await?;
    Ok(format!("{NAME}: 8 MiB, sha256 {}…", digest(&content)))
}

/// Writes a second file, which must not be in the snapshot.
pub(super) async fn write_later(directory: &Path) -> anyhow::Result<String> {
    store(&directory.join(LATER), b"later").await?;
    Ok(String::new())
}

async fn store(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let written = async {
        let mut file = File::create(path).await?;
        file.write_all(content).await?;
        file.sync_all().await
    };
    written.await.context("cannot write the file")
}

/// Reads the file back and compares it; the second file must not exist.
pub(super) async fn verify(directory: &Path) -> anyhow::Result<String> {
    let found = tokio::fs::read(directory.join(NAME)).await;
    let found = found.context("cannot read the file back")?;
    let (sha, expected) = (digest(&found), digest(&content()));
    anyhow::ensure!(found == content(), "{NAME} has sha256 {sha}…, expected {expected}…");
    anyhow::ensure!(
        !directory.join(LATER).exists(),
        "the restored volume has data written after the snapshot"
    );
    Ok(format!(
        "{NAME}: sha256 {sha}…, as written; {LATER}: absent, as expected"
    ))
}

/// The first bytes of the SHA-256 in hexadecimal.
fn digest(content: &[u8]) -> String {
    let bytes = &Sha256::digest(content)[..8];
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
