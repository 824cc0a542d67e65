//! A Secret volume as kubelet writes it: a directory that is replaced atomically.

use std::os::unix::fs::symlink;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use uuid::Uuid;

/// Writes the Secret's content into the directory of its volume.
pub(crate) fn publish(secret: &Value, volume: &Path) {
    let version = format!("..{}", Uuid::new_v4().simple());
    let files = volume.join(&version);
    std::fs::create_dir_all(&files).expect("the directory can be written");
    let data = secret["data"].as_object().expect("a Secret has data");
    for (name, value) in data {
        let value = STANDARD
            .decode(value.as_str().expect("the value is a string"))
            .expect("the value is base64");
        std::fs::write(files.join(name), value).expect("the directory can be written");
        let link = volume.join(name);
        if !link.is_symlink() {
            symlink(Path::new("..data").join(name), link).expect("the directory can be written");
        }
    }
    symlink(&version, volume.join("..data_tmp")).expect("no other writer");
    std::fs::rename(volume.join("..data_tmp"), volume.join("..data")).expect("the link exists");
}
