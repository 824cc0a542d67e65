//! The generated types of `proto/csi.proto` (CSI 1.13.0, package `csi.v1`) and of `proto/pluginregistration.proto`.

#![allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    clippy::all,
    clippy::clone_on_ref_ptr,
    clippy::use_self,
    clippy::semicolon_if_nothing_returned,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]

tonic::include_proto!("csi.v1");

/// The API of kubelet for plugin registration, `pluginregistration/v1`.
pub mod pluginregistration {
    tonic::include_proto!("pluginregistration");
}
