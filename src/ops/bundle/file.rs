//! A file that appears under its name only when it is complete.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::cli::InvalidSettings;

/// A temporary file in the same directory, removed unless it is [kept](Self::keep).
#[derive(Debug)]
pub(super) struct NewFile {
    path: PathBuf,
    partial: PathBuf,
}

impl NewFile {
    pub(super) fn create(path: &Path) -> anyhow::Result<(Self, File)> {
        let invalid = |reason: &str| {
            let problem = format!("--out {}: {reason}", path.display());
            InvalidSettings(vec![problem])
        };
        let Some(name) = path.file_name() else {
            return Err(invalid("allowed: the name of a file").into());
        };
        if path.symlink_metadata().is_ok() {
            return Err(invalid("it exists; choose another name, or remove it").into());
        }
        let unique = uuid::Uuid::new_v4();
        let partial = format!(".{}.{unique}.partial", name.to_string_lossy());
        let partial = path.with_file_name(partial);
        let mut options = OpenOptions::new();
        let created = options.write(true).create_new(true).mode(0o600).open(&partial);
        let file = created.map_err(|error| invalid(&format!("cannot create it: {error}")))?;
        let path = path.to_owned();
        Ok((Self { path, partial }, file))
    }

    pub(super) fn keep(self, file: &File) -> anyhow::Result<()> {
        let failed = || format!("cannot write {}", self.path.display());
        file.sync_all().with_context(failed)?;
        fs::rename(&self.partial, &self.path).with_context(failed)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After `keep` it has another name. Nothing more can be done about a file that cannot be removed.
        let _ = fs::remove_file(&self.partial);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_file_that_is_not_kept_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let (partial, file) = NewFile::create(&path).unwrap();
        assert_eq!(names(dir.path()).len(), 1);
        drop((partial, file));
        assert_eq!(names(dir.path()), Vec::<String>::new());

        let (partial, mut file) = NewFile::create(&path).unwrap();
        file.write_all(b"x").unwrap();
        partial.keep(&file).unwrap();
        assert_eq!(names(dir.path()), ["a"]);
        let error = NewFile::create(&path).unwrap_err();
        assert!(error.is::<InvalidSettings>(), "{error}");
    }
}
