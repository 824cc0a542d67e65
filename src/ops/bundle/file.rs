//! A file that appears under its name only when it is complete.

use std::fs::{self, File, OpenOptions};
use std::ops::Deref;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::cli::InvalidSettings;

/// A new file in the directory of `path`, under a temporary name. When the name is dropped, the file is removed, unless
/// it was renamed.
pub(super) fn create(path: &Path) -> anyhow::Result<(File, impl Deref<Target = PathBuf> + use<>)> {
    let invalid = |reason: &str| InvalidSettings::one(format!("--out {}: {reason}", path.display()));
    let Some(name) = path.file_name() else {
        return Err(invalid("allowed: the name of a file").into());
    };
    if path.symlink_metadata().is_ok() {
        return Err(invalid("it exists; choose another name, or remove it").into());
    }
    let unique = uuid::Uuid::new_v4();
    let partial = path.with_file_name(format!(".{}.{unique}.partial", name.to_string_lossy()));
    let mut options = OpenOptions::new();
    let created = options.write(true).create_new(true).mode(0o600).open(&partial);
    let file = created.map_err(|error| invalid(&format!("cannot create it: {error}")))?;
    // Nothing more can be done about a file that cannot be removed.
    Ok((
        file,
        scopeguard::guard(partial, |partial| drop(fs::remove_file(partial))),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_file_that_is_not_renamed_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let (_, partial) = create(&path).unwrap();
        assert_eq!(names(dir.path()).len(), 1);
        drop(partial);
        assert_eq!(names(dir.path()), Vec::<String>::new());

        let (_, partial) = create(&path).unwrap();
        fs::rename(&*partial, &path).unwrap();
        drop(partial);
        assert_eq!(names(dir.path()), ["a"]);
        let error = create(&path).err().unwrap();
        assert!(error.is::<InvalidSettings>(), "{error}");
    }
}
