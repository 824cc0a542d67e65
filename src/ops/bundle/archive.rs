//! The archive and its manifest.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use serde_json::{Value, json};

/// The directory of all members.
const ROOT: &str = "diskplugin-bundle";

/// Name of a member, its source, and its content, or why there is none.
pub(super) type Read = (String, String, Result<Option<String>, String>);

pub(super) struct Archive<W: Write> {
    builder: tar::Builder<GzEncoder<W>>,
    collected: Timestamp,
    pub(super) members: Vec<Value>,
    /// Sources that could not be read, and why.
    pub(super) missing: Vec<(String, String)>,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(writer: W, now: Timestamp) -> Self {
        Self {
            builder: tar::Builder::new(GzEncoder::new(writer, Compression::default())),
            collected: now,
            members: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// Adds the content of a source, or the reason why there is none.
    pub(super) fn add(&mut self, name: &str, source: &str, read: Result<Option<String>, String>) -> io::Result<()> {
        match read {
            Ok(Some(content)) => {
                self.append(name, &content)?;
                let member = json!({"name": name, "source": source, "bytes": content.len()});
                self.members.push(member);
            }
            Ok(None) => self.add_missing(source, "it does not exist"),
            Err(reason) => self.add_missing(source, &reason),
        }
        Ok(())
    }

    /// Records a source that could not be read.
    pub(super) fn add_missing(&mut self, source: &str, reason: &str) {
        self.missing.push((source.to_owned(), reason.to_owned()));
    }

    /// Writes the manifest and the end of the archive.
    pub(super) fn finish(mut self) -> io::Result<W> {
        let missing = self.missing.iter();
        let missing = missing.map(|(source, reason)| json!({"source": source, "reason": reason}));
        let manifest = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "collected": self.collected,
            "members": self.members,
            "missing": missing.collect::<Vec<_>>(),
        });
        self.append("manifest.json", &format!("{manifest:#}"))?;
        self.builder.into_inner()?.finish()
    }

    fn append(&mut self, name: &str, content: &str) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(u64::try_from(content.len()).map_err(io::Error::other)?);
        header.set_mode(0o600);
        let seconds = self.collected.as_second();
        header.set_mtime(u64::try_from(seconds).unwrap_or_default());
        let path = format!("{ROOT}/{name}");
        self.builder.append_data(&mut header, path, content.as_bytes())
    }
}

/// A part of a member's name, from a name of something else.
pub(super) fn file_name(text: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = text.chars().map(|c| if is_kept(c) { c } else { '_' }).collect();
    match name.trim_matches('.') {
        "" => "_".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn the_manifest_lists_members_and_what_is_missing() {
        let mut archive = Archive::new(Vec::new(), Timestamp::UNIX_EPOCH);
        archive.add("a.txt", "page", Ok(Some("text".to_owned()))).unwrap();
        archive.add_missing("events", "forbidden");
        let bytes = archive.finish().unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(bytes.as_slice()));
        let mut members = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            assert_eq!(entry.header().mode().unwrap(), 0o600);
            members.push((entry.path().unwrap().display().to_string(), text));
        }
        assert_eq!(members[0], ("diskplugin-bundle/a.txt".to_owned(), "text".to_owned()));
        assert_eq!(members[1].0, "diskplugin-bundle/manifest.json");
        let manifest: Value = serde_json::from_str(&members[1].1).unwrap();
        assert_eq!(manifest["members"][0]["bytes"], 4);
        assert_eq!(manifest["missing"][0]["reason"], "forbidden");
    }

    #[test]
    fn names_stay_below_the_directory() {
        for (text, name) in [
            ("ns/pvc", "ns_pvc"),
            ("..", "_"),
            ("../../etc", "_.._etc"),
            ("127.0.0.1:9808", "127.0.0.1_9808"),
        ] {
            assert_eq!(file_name(text), name);
        }
    }
}
