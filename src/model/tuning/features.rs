//! The default features of new filesystems: those that the oldest supported kernel (Linux 5.10) can mount, because the
//! tools in the image may be newer than the kernels of the nodes. `mkfsOptions` of a class enables others.

use crate::model::Filesystem;

/// As in mke2fs.conf of e2fsprogs 1.46, which is of the time of Linux 5.10. `none` clears the defaults of the tool's
/// configuration, such as `orphan_file` and `metadata_csum_seed`.
const EXT3: &str = "none,has_journal,ext_attr,resize_inode,dir_index,filetype,sparse_super,large_file";
const EXT4: &str = "none,has_journal,ext_attr,resize_inode,dir_index,filetype,sparse_super,large_file,\
                    extent,flex_bg,64bit,huge_file,dir_nlink,extra_isize,metadata_csum";

/// Options of mkfs.xfs with features that are newer than Linux 5.10 or experimental there (`lts_5.10.conf` of
/// xfsprogs).
const XFS: [(&str, &str); 7] = [
    ("-m", "bigtime"),
    ("-m", "inobtcount"),
    ("-m", "rmapbt"),
    ("-m", "metadir"),
    ("-i", "nrext64"),
    ("-i", "exchange"),
    ("-n", "parent"),
];

/// Features of mkfs.btrfs that are newer than Linux 5.10 and that a release of the tool enables by default.
const BTRFS: [&str; 1] = ["block-group-tree"];

/// Options and values for the default features, except those that the words of `mkfsOptions` set. mkfs.xfs and
/// mkfs.btrfs reject unknown features, so only those in `supported` are disabled.
pub(super) fn defaults(filesystem: Filesystem, supported: &str, requested: &[String]) -> Vec<(&'static str, String)> {
    let is_requested = |feature: &str| {
        let mut names = requested.iter().flat_map(|word| word.split([',', '=']));
        names.any(|name| name.trim_start_matches('^') == feature)
    };
    match filesystem {
        Filesystem::Ext4 => vec![("-O", EXT4.to_owned())],
        Filesystem::Ext3 => vec![("-O", EXT3.to_owned())],
        Filesystem::Xfs => XFS
            .into_iter()
            .filter(|(_, feature)| supported.contains(&format!("{feature}=0|1")))
            .filter(|(_, feature)| !is_requested(feature))
            .map(|(option, feature)| (option, format!("{feature}=0")))
            .collect(),
        Filesystem::Btrfs => BTRFS
            .into_iter()
            .filter(|feature| supported.contains(feature) && !is_requested(feature))
            .map(|feature| ("-O", format!("^{feature}")))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use Filesystem::{Btrfs, Xfs};

    use super::*;

    /// A part of the usage text of mkfs.xfs 6.1.
    const USAGE: &str = "[-m crc=0|1,finobt=0|1,uuid=xxx,rmapbt=0|1,reflink=0|1,
			    inobtcount=0|1,bigtime=0|1]
        [-i perblock=n|size=num,maxpct=n,attr=0|1|2,
			    projid32bit=0|1,sparse=0|1,nrext64=0|1]";

    fn line(filesystem: Filesystem, supported: &str, requested: &[&str]) -> String {
        let requested: Vec<String> = requested.iter().map(|&word| word.to_owned()).collect();
        let defaults = defaults(filesystem, supported, &requested);
        let words: Vec<String> = defaults
            .into_iter()
            .map(|(option, value)| format!("{option} {value}"))
            .collect();
        words.join(" ")
    }

    #[test]
    fn known_features_that_are_newer_than_the_oldest_kernel_are_disabled() {
        assert_eq!(
            line(Xfs, USAGE, &[]),
            "-m bigtime=0 -m inobtcount=0 -m rmapbt=0 -i nrext64=0"
        );
        assert_eq!(line(Xfs, "", &[]), "");
        let listed = "block-group-tree    - block group tree (compat=6.1)";
        assert_eq!(line(Btrfs, listed, &[]), "-O ^block-group-tree");
        assert_eq!(line(Btrfs, "no-holes", &[]), "");
    }

    #[test]
    fn requested_features_are_not_disabled() {
        assert_eq!(
            line(Xfs, USAGE, &["-m", "bigtime=1,rmapbt", "-i", "nrext64=1"]),
            "-m inobtcount=0"
        );
        let listed = "block-group-tree";
        assert_eq!(line(Btrfs, listed, &["-O", "block-group-tree"]), "");
    }
}
