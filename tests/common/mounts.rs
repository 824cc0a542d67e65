//! The mounts of this machine.

use std::fs;
use std::path::{Path, PathBuf};

/// A line of `/proc/self/mountinfo`.
#[derive(Debug)]
pub(crate) struct MountLine {
    pub(crate) root: String,
    pub(crate) point: PathBuf,
    pub(crate) options: String,
    pub(crate) kind: String,
    pub(crate) source: String,
    pub(crate) super_options: String,
}

impl MountLine {
    pub(crate) fn is_read_only(&self) -> bool {
        let is_ro = |options: &str| options.split(',').any(|option| option == "ro");
        is_ro(&self.options) || is_ro(&self.super_options)
    }
}

/// The mounts below a directory, in mount order.
pub(crate) fn mounts(below: &Path) -> Vec<MountLine> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let line = |line: &str| {
        let (left, right) = line.split_once(" - ").unwrap();
        let left: Vec<&str> = left.split(' ').collect();
        let right: Vec<&str> = right.split(' ').collect();
        MountLine {
            root: left[3].to_owned(),
            point: PathBuf::from(left[4]),
            options: left[5].to_owned(),
            kind: right[0].to_owned(),
            source: right[1].to_owned(),
            super_options: right[2].to_owned(),
        }
    };
    let all = table.lines().map(line);
    all.filter(|line| line.point.starts_with(below)).collect()
}

pub(crate) fn is_mounted(path: &Path) -> bool {
    mounts(path).iter().any(|line| line.point == path)
}
