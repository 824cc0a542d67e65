//! Compiles the protocols under `proto/` in pure Rust: no machine needs `protoc`.

const PROTOCOLS: [&str; 2] = ["csi.proto", "pluginregistration.proto"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for protocol in PROTOCOLS {
        println!("cargo:rerun-if-changed=proto/{protocol}");
    }
    let descriptors = protox::compile(PROTOCOLS, ["proto"])?;
    tonic_prost_build::configure()
        // An RPC that a role does not serve answers UNIMPLEMENTED by itself.
        .generate_default_stubs(true)
        // These messages carry secrets, which a derived Debug would print.
        .skip_debug(secret_messages(&descriptors))
        .compile_fds(descriptors)?;
    Ok(())
}

/// Messages with a `secrets` field; `tests/wire.rs` holds that these are all that carry `csi_secret`.
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
