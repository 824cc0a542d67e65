//! The program under the name of a kubectl plugin, and its packaging for krew.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::path::Path;

use diskplugin::app::OPERATOR_COMMANDS;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::common::process::Start;
use crate::text::{assert_failed, assert_has, assert_lacks, assert_succeeded};

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
    assert_succeeded(&help);
    assert_has(&help.stdout, &["Usage: kubectl diskplugin"]);
    for command in OPERATOR_COMMANDS {
        assert_has(&help.stdout, &[&format!("\n  {command} ")]);
    }
    assert_lacks(&help.stdout, &["controller"]);
    let help = run(&["explain", "--help"]).await;
    assert_has(&help.stdout, &["Usage: kubectl diskplugin explain"]);
    for line in [&["controller"][..], &["node", "--help"], &[]] {
        assert_failed(&run(line).await, 64, &[]);
    }
    let class = format!("{ROOT}/examples/storageclass.yaml");
    assert_succeeded(&run(&["explain", &class]).await);
    let failed = run(&["explain", "/no-such-file"]).await;
    assert!(failed.stderr.starts_with("kubectl diskplugin: "), "{}", failed.stderr);
}

/// Asserts the fields of an object, because krew ignores unknown ones.
#[track_caller]
fn assert_fields(object: &Value, expected: &[&str]) {
    let fields: BTreeSet<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, BTreeSet::from_iter(expected.iter().copied()));
}

/// The platforms of a manifest of krew: URI and digest of the archive by architecture.
fn platforms(path: &Path) -> BTreeMap<String, (String, String)> {
    let text = std::fs::read_to_string(path).unwrap();
    let options = serde_saphyr::options! { no_schema: true };
    let manifest: Value = serde_saphyr::from_str_with_options(&text, options).unwrap();
    assert_fields(&manifest, &["apiVersion", "kind", "metadata", "spec"]);
    assert_eq!(manifest["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!(manifest["kind"], "Plugin");
    // The name of the file and of the command: `kubectl diskplugin`.
    assert_eq!(manifest["metadata"], json!({"name": "diskplugin"}));
    let spec = &manifest["spec"];
    let texts = ["homepage", "shortDescription", "description", "caveats"];
    assert_fields(spec, &[&texts[..], &["version", "platforms"]].concat());
    assert_eq!(spec["version"], concat!("v", env!("CARGO_PKG_VERSION")));
    for text in texts {
        assert!(!spec[text].as_str().unwrap().trim().is_empty(), "{text}: {spec}");
    }
    // The guidelines of krew-index.
    let short = spec["shortDescription"].as_str().unwrap();
    assert!(short.len() <= 80 && !short.ends_with('.'));
    let mut platforms = BTreeMap::new();
    for platform in spec["platforms"].as_array().unwrap() {
        assert_fields(platform, &["selector", "uri", "sha256", "bin"]);
        let text = |pointer: &str| platform.pointer(pointer).unwrap().as_str().unwrap().to_owned();
        let (arch, uri, digest) = (text("/selector/matchLabels/arch"), text("/uri"), text("/sha256"));
        assert_eq!(
            platform["selector"],
            json!({"matchLabels": {"os": "linux", "arch": arch}})
        );
        assert!(
            uri.starts_with("https://") && uri.ends_with(&format!("/{}", archive(&arch))),
            "{uri}"
        );
        let is_digest = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        assert!(digest.len() == 64 && digest.chars().all(is_digest));
        assert_eq!(platform["bin"], "kubectl-diskplugin");
        assert!(platforms.insert(arch, (uri, digest)).is_none(), "{spec}");
    }
    assert_eq!(Vec::from_iter(platforms.keys()), ["amd64", "arm64"]);
    platforms
}

fn archive(arch: &str) -> String {
    format!("kubectl-diskplugin-{}-linux-{arch}.tar.gz", env!("CARGO_PKG_VERSION"))
}

#[test]
fn the_manifest_of_krew_has_its_documented_fields_and_the_version() {
    platforms(&Path::new(ROOT).join("deploy/krew/diskplugin.yaml"));
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
    for (arch, (uri, expected)) in platforms(&one.path().join("diskplugin.yaml")) {
        let url = format!("https://releases.example/disk/v{}/", env!("CARGO_PKG_VERSION"));
        assert_eq!(uri, url + &archive(&arch));
        let bytes = std::fs::read(one.path().join(archive(&arch))).unwrap();
        let digest = Sha256::digest(&bytes);
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(expected, digest, "{arch}");
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
