//! Compiles the protocols under `proto/` in pure Rust: no machine needs `protoc`.

const PROTOCOLS: [&str; 2] = ["csi.proto", "pluginregistration.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for protocol in PROTOCOLS {
        println!("cargo:rerun-if-changed=proto/{protocol}");
    }
    let descriptors = protox::compile(PROTOCOLS, ["proto"])?;
    let services = descriptors.file.iter().flat_map(|file| &file.service);
    let methods = services.flat_map(|service| &service.method);
    let methods: Vec<&str> = methods.map(prost_types::MethodDescriptorProto::name).collect();
    let list = std::path::Path::new(&std::env::var("OUT_DIR")?).join("methods.rs");
    std::fs::write(list, format!("&{methods:?}"))?;
    tonic_prost_build::configure()
        // RPCs that a role does not implement return UNIMPLEMENTED.
        .generate_default_stubs(true)
        // These messages carry secrets, which a derived Debug would print.
        .skip_debug(secret_messages(&descriptors))
        .compile_fds(descriptors)?;
    if links_glibc() && libc_supports_packed_relocations() {
        // Saves 600 KiB: the relocations of a position-independent program take a tenth of the space.
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    Ok(())
}

fn links_glibc() -> bool {
    std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|environment| environment == "gnu")
}

/// Whether the linked C library supports them: glibc 2.36 and newer. A static program with an older one would crash, so
/// an unknown version counts as old. The C library of another architecture comes from the same distribution.
#[expect(clippy::disallowed_methods, reason = "build scripts are synchronous")]
fn libc_supports_packed_relocations() -> bool {
    let output = std::process::Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let output = output.unwrap_or_default();
    let version = output
        .trim()
        .strip_prefix("glibc ")
        .and_then(|text| text.split_once('.'));
    let version = version.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    version.is_some_and(|version: (u32, u32)| version >= (2, 36))
}

/// Messages with a `secrets` field; `tests/layers/wire.rs` checks that no other message has a `csi_secret` field.
fn secret_messages(descriptors: &prost_types::FileDescriptorSet) -> Vec<String> {
    let mut paths = Vec::new();
    for file in &descriptors.file {
        for message in &file.message_type {
            if message.field.iter().any(|field| field.name() == "secrets") {
                paths.push(format!(".{}.{}", file.package(), message.name()));
            }
        }
    }
    paths
}
