//! The program under the name of a kubectl plugin, and its packaging for krew.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;

use diskplugin::app::OPERATOR_COMMANDS;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::common::process::Start;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The plugin, as krew installs it: a symlink to the program.
fn plugin(dir: &Path) -> String {
    let path = dir.join("kubectl-diskplugin");
    symlink(env!("CARGO_BIN_EXE_diskplugin"), &path).unwrap();
    path.display().to_string()
}

#[tokio::test]
async fn the_plugin_has_only_commands_of_operators() {
    let dir = tempfile::tempdir().unwrap();
    let program = plugin(dir.path());
    let run = |args: &[&str]| Start::of(&program).args(args).ended();
    let help = run(&["--help"]).await;
    assert_eq!(help.code, Some(0), "{}", help.stderr);
    assert!(help.stdout.contains("Usage: kubectl diskplugin"), "{}", help.stdout);
    for command in OPERATOR_COMMANDS {
        assert!(help.stdout.contains(&format!("\n  {command} ")), "{}", help.stdout);
    }
    assert!(!help.stdout.contains("controller"), "{}", help.stdout);
    let help = run(&["explain", "--help"]).await;
    assert!(
        help.stdout.contains("Usage: kubectl diskplugin explain"),
        "{}",
        help.stdout
    );
    for line in [&["controller"][..], &["node", "--help"], &[]] {
        assert_eq!(run(line).await.code, Some(64), "{line:?}");
    }
    let class = format!("{ROOT}/examples/storageclass.yaml");
    let explained = run(&["explain", &class]).await;
    assert_eq!(explained.code, Some(0), "{}", explained.stderr);
    let failed = run(&["explain", "/no-such-file"]).await;
    assert!(failed.stderr.starts_with("kubectl diskplugin: "), "{}", failed.stderr);
}

/// A manifest of krew, as far as krew requires it; unknown fields would be ignored by krew.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Manifest {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Spec {
    version: String,
    homepage: String,
    short_description: String,
    description: String,
    caveats: String,
    platforms: Vec<Platform>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Platform {
    selector: Selector,
    uri: String,
    sha256: String,
    bin: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Selector {
    match_labels: Labels,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Labels {
    os: String,
    arch: String,
}

fn manifest(path: &Path) -> Manifest {
    let text = std::fs::read_to_string(path).unwrap();
    let options = serde_saphyr::options! { no_schema: true };
    let manifest: Manifest = serde_saphyr::from_str_with_options(&text, options).unwrap();
    assert_eq!(manifest.api_version, "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!(manifest.kind, "Plugin");
    // The name of the file and of the command: `kubectl diskplugin`.
    assert_eq!(manifest.metadata.name, "diskplugin");
    let spec = &manifest.spec;
    assert_eq!(spec.version, concat!("v", env!("CARGO_PKG_VERSION")));
    for text in [
        &spec.homepage,
        &spec.short_description,
        &spec.description,
        &spec.caveats,
    ] {
        assert!(!text.trim().is_empty(), "{manifest:?}");
    }
    // The guidelines of krew-index.
    assert!(spec.short_description.len() <= 80 && !spec.short_description.ends_with('.'));
    let mut platforms = BTreeSet::new();
    for platform in &spec.platforms {
        let labels = &platform.selector.match_labels;
        assert_eq!(labels.os, "linux");
        assert!(platforms.insert(labels.arch.as_str()), "{manifest:?}");
        let file = platform.uri.rsplit('/').next().unwrap();
        assert_eq!(file, archive(&labels.arch));
        assert!(platform.uri.starts_with("https://"), "{}", platform.uri);
        let is_digest = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        assert!(platform.sha256.len() == 64 && platform.sha256.chars().all(is_digest));
        assert_eq!(platform.bin, "kubectl-diskplugin");
    }
    assert_eq!(platforms, BTreeSet::from(["amd64", "arm64"]));
    manifest
}

fn archive(arch: &str) -> String {
    format!("kubectl-diskplugin-{}-linux-{arch}.tar.gz", env!("CARGO_PKG_VERSION"))
}

#[test]
fn the_manifest_of_krew_has_its_documented_fields_and_the_version() {
    manifest(&Path::new(ROOT).join("deploy/krew/diskplugin.yaml"));
}

#[tokio::test]
async fn a_release_publishes_archives_and_a_manifest_with_their_checksums() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let program = one.path().join("program");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    let package = async |out: &Path, arches: &[&str]| {
        let arches = arches.iter().map(|arch| format!("{arch}={}", program.display()));
        let line = [out.display().to_string()].into_iter().chain(arches);
        let start = Start::of(&format!("{ROOT}/scripts/package-plugin")).args(line);
        let start = start.env("SOURCE_DATE_EPOCH", "1700000000");
        let ended = start.env("RELEASES", "https://releases.example/disk").ended().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    };
    package(one.path(), &["amd64", "arm64"]).await;
    package(two.path(), &["amd64"]).await;
    let manifest = manifest(&one.path().join("diskplugin.yaml"));
    for platform in manifest.spec.platforms {
        let arch = platform.selector.match_labels.arch;
        let url = format!("https://releases.example/disk/v{}/", env!("CARGO_PKG_VERSION"));
        assert_eq!(platform.uri, url + &archive(&arch));
        let bytes = std::fs::read(one.path().join(archive(&arch))).unwrap();
        let digest = Sha256::digest(&bytes);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(platform.sha256, digest, "{arch}");
        let path = one.path().join(archive(&arch)).display().to_string();
        let list = Start::of("tar").args(["--list", "--file", &path]).ended().await;
        assert_eq!(list.stdout, "LICENSE\nkubectl-diskplugin\n");
    }
    // Archives are reproducible. The manifest requires the archives of all architectures.
    let bytes = |dir: &Path| std::fs::read(dir.join(archive("amd64"))).unwrap();
    assert_eq!(bytes(one.path()), bytes(two.path()));
    assert!(!two.path().join("diskplugin.yaml").exists());
    let release = std::fs::read_to_string(format!("{ROOT}/scripts/release")).unwrap();
    assert!(release.contains("scripts/package-plugin \"$out\""));
}
