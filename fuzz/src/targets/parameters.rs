//! Parameters of the classes: what is accepted is possible in the cloud, and reads the same on the node.

use std::collections::HashMap;

use diskplugin::csi::param::snapshot::SnapshotClass;
use diskplugin::csi::param::{Class, mutable};
use diskplugin::model::{Category, Filesystem, Tags, Tuning};

use crate::input::{Input, pairs};

type Map = HashMap<String, String>;

/// The kind of class, and lines `key=value`.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let kind = input.byte() % 4;
    let Some(pairs) = pairs(input.0) else {
        return;
    };
    let map: Map = pairs.iter().cloned().collect();
    // Another order of the same entries.
    let again: Map = map.clone().into_iter().collect();
    let reversed: Map = pairs
        .into_iter()
        .rev()
        .filter(|(key, value)| map.get(key) == Some(value))
        .collect();
    match kind {
        0 => {
            let read = Class::read(&map);
            assert_eq!(Class::read(&again), read);
            if map.len() == reversed.len() {
                assert_eq!(Class::read(&reversed), read);
            }
            if let Ok(class) = read {
                check_class(&class, &map);
            }
        }
        1 => {
            let read = mutable::read(&map);
            assert_eq!(mutable::read(&again), read);
            if let Ok(change) = read {
                assert!(change.provisioned_iops.is_none_or(|iops| iops <= 50_000));
                assert!(
                    change
                        .category
                        .is_none_or(|category| !matches!(category, Category::Other(_)))
                );
                check_tags(&change.tags, usize::MAX);
            }
        }
        _ => {
            let read = if kind == 2 {
                SnapshotClass::read
            } else {
                SnapshotClass::read_of_group
            };
            let class = read(&map);
            assert_eq!(read(&again), class);
            if let Ok(class) = class {
                assert!(class.retention_days.is_none_or(|days| (1..=65536).contains(&days)));
                check_tags(&class.tags, 17);
            }
        }
    }
}

fn check_tags(tags: &Tags, most: usize) {
    assert!(tags.len() <= most);
    for (key, value) in tags {
        assert!((1..=128).contains(&key.chars().count()), "{key:?}");
        assert!(value.chars().count() <= 128, "{value:?}");
        let lower = key.to_ascii_lowercase();
        assert!(
            !["aliyun", "acs:", "diskplugin.csi.example/"]
                .iter()
                .any(|own| lower.starts_with(own)),
            "{key:?}"
        );
    }
}

fn check_class(class: &Class, map: &Map) {
    let disk = &class.disk;
    assert!(!disk.categories.is_empty());
    assert!(
        disk.categories
            .iter()
            .all(|category| !matches!(category, Category::Other(_)))
    );
    assert!(disk.provisioned_iops <= 50_000);
    assert!(disk.kms_key.is_none() || disk.encrypted);
    let shareable = |category: &Category| matches!(category, Category::CloudEssd | Category::CloudAuto);
    assert!(!disk.multi_attach || disk.categories.iter().all(shareable));
    assert!(
        disk.deletion_snapshot_days
            .is_none_or(|days| (1..=65536).contains(&days))
    );
    check_tags(&disk.tags, 18);
    let mut expanded = class.clone();
    if expanded.expand_tags(map).is_ok() {
        check_tags(&expanded.disk.tags, 18);
    }
    let entries = class.tuning.entries().into_iter();
    let context: Map = entries.map(|(key, value)| (key.to_owned(), value)).collect();
    assert_eq!(Tuning::of(&context), Ok(class.tuning.clone()));
    for filesystem in Filesystem::ALL {
        if let Ok(words) = class.tuning.mkfs_arguments(filesystem, "") {
            check_mkfs(filesystem, &words);
        }
    }
}

/// No option forces mkfs, and no word is another device.
fn check_mkfs(filesystem: Filesystem, words: &[String]) {
    // `-f` of mke2fs is the size of fragments.
    let force: &[&str] = match filesystem {
        Filesystem::Ext4 | Filesystem::Ext3 => &["-F"],
        Filesystem::Xfs => &["-f", "-C"],
        Filesystem::Btrfs => &["-f", "--force"],
    };
    for word in words {
        assert!(!force.contains(&word.as_str()), "{words:?}");
        assert!(
            !word.is_empty() && (word.starts_with('-') || !word.contains('/')),
            "{words:?}"
        );
        assert!(
            !word.contains(|c: char| c.is_control() || c.is_whitespace()),
            "{words:?}"
        );
    }
    let mut options: Vec<_> = words.iter().filter(|word| word.starts_with('-')).collect();
    let count = options.len();
    options.sort();
    options.dedup();
    assert_eq!(options.len(), count, "{words:?}");
}
