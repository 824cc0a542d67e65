//! Archives of `diskplugin bundle`.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;

/// The members by name, without the directory of all.
pub(crate) fn members(file: &Path) -> BTreeMap<String, String> {
    let file = std::fs::File::open(file).expect("the archive exists");
    let mut archive = tar::Archive::new(GzDecoder::new(file));
    let entries = archive.entries().expect("an archive has entries");
    let read = entries.map(|entry| {
        let mut entry = entry.expect("each entry is readable");
        let path = entry.path().expect("a name is a path").display().to_string();
        let name = path
            .strip_prefix("diskplugin-bundle/")
            .expect("all members are in one folder")
            .to_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("members are text");
        (name, text)
    });
    read.collect()
}

/// Fails if one of the secrets is in a member or in its name.
pub(crate) fn assert_without(members: &BTreeMap<String, String>, secrets: &[&str]) {
    assert!(members.len() > 1, "{members:?}");
    for (name, text) in members {
        for secret in secrets {
            assert!(!name.contains(secret), "{secret} is in the name {name}");
            assert!(!text.contains(secret), "{secret} is in {name}:\n{text}");
        }
    }
}
