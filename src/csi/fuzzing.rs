//! The parsers of private modules, for the targets in `fuzz/`. Compiled only with `--cfg fuzzing`.

use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message;

use super::authority::Rewriter;
use super::proto;
use super::request::error::Error;
use super::request::limits::Limited;
use super::request::page::{self, Token};
use super::request::{self, DriverLocation, create_volume, node, snapshot, validate, volume};
use crate::model::SizeRange;

/// A request that was decoded.
#[derive(Debug)]
pub struct Decoded {
    /// The message, encoded again.
    pub encoded: Vec<u8>,
    pub parsed: Result<Accepted, Error>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Accepted {
    pub text: String,
    pub size: SizeRange,
}

fn sized(value: impl std::fmt::Debug, size: SizeRange) -> Accepted {
    let text = format!("{value:?}");
    Accepted { text, size }
}

fn plain(value: impl std::fmt::Debug) -> Accepted {
    sized(value, SizeRange::default())
}

fn decode<M: Message + Default + Limited>(
    bytes: &[u8],
    parse: impl FnOnce(&M) -> Result<Accepted, Error>,
) -> Option<Decoded> {
    let message = M::decode(bytes).ok()?;
    let parsed = message.check().and_then(|()| parse(&message));
    let encoded = message.encode_to_vec();
    Some(Decoded { encoded, parsed })
}

/// Decodes and parses a request; `None` if the bytes are not a message of this RPC.
type Parser = fn(&[u8], &DriverLocation) -> Option<Decoded>;

/// The parsers of all RPCs with parameters.
pub const REQUESTS: [(&str, Parser); 23] = [
    ("CreateVolume", |bytes, location| {
        decode(bytes, |message: &proto::CreateVolumeRequest| {
            let created = create_volume::create(message, location)?;
            let context: BTreeMap<_, _> = created.volume_context.into_iter().collect();
            let size = created.new.size;
            Ok(sized(
                (created.new, created.claim, created.nodes_report_categories, context),
                size,
            ))
        })
    }),
    ("GetCapacity", |bytes, location| {
        decode(bytes, |m: &proto::GetCapacityRequest| {
            create_volume::capacity(m, location).map(plain)
        })
    }),
    ("ValidateVolumeCapabilities", |bytes, _| {
        decode(bytes, |m| validate::validate(m).map(plain))
    }),
    ("ControllerExpandVolume", |bytes, _| {
        decode(bytes, |message| {
            let expand = volume::expand(message)?;
            let size = expand.size;
            Ok(sized(expand, size))
        })
    }),
    ("ControllerModifyVolume", |bytes, _| {
        decode(bytes, |m| volume::modify(m).map(plain))
    }),
    ("ControllerPublishVolume", |bytes, _| {
        decode(bytes, |m| volume::publish(m).map(plain))
    }),
    ("ControllerUnpublishVolume", |bytes, _| {
        decode(bytes, |m| volume::unpublish(m).map(plain))
    }),
    ("DeleteVolume", |bytes, _| {
        decode(bytes, |m: &proto::DeleteVolumeRequest| {
            request::field::id_to_remove::<crate::model::DiskId>("volume_id", &m.volume_id).map(plain)
        })
    }),
    ("ListVolumes", |bytes, _| {
        decode(bytes, |m: &proto::ListVolumesRequest| {
            page::page(m.max_entries, &m.starting_token).map(plain)
        })
    }),
    ("CreateSnapshot", |bytes, location| {
        decode(bytes, |m| snapshot::create(m, location).map(plain))
    }),
    ("ListSnapshots", |bytes, _| {
        decode(bytes, |m| snapshot::list(m).map(plain))
    }),
    ("CreateVolumeGroupSnapshot", |bytes, _| {
        decode(bytes, |m| snapshot::create_group(m).map(plain))
    }),
    ("DeleteVolumeGroupSnapshot", |bytes, _| {
        decode(bytes, |m| snapshot::delete_group(m).map(plain))
    }),
    ("GetVolumeGroupSnapshot", |bytes, _| {
        decode(bytes, |m| snapshot::get_group(m).map(plain))
    }),
    ("NodeStageVolume", |bytes, _| {
        decode(bytes, |m| node::stage(m).map(plain))
    }),
    ("NodePublishVolume", |bytes, _| {
        decode(bytes, |m| node::publish(m).map(plain))
    }),
    ("NodeUnstageVolume", |bytes, _| {
        decode(bytes, |m| node::unstage(m).map(plain))
    }),
    ("NodeUnpublishVolume", |bytes, _| {
        decode(bytes, |m| node::unpublish(m).map(plain))
    }),
    ("NodeGetVolumeStats", |bytes, _| {
        decode(bytes, |m| node::stats(m).map(plain))
    }),
    ("NodeGetVolumeHealth", |bytes, _| {
        decode(bytes, |m| node::health(m).map(plain))
    }),
    ("NodeExpandVolume", |bytes, _| {
        decode(bytes, |message| {
            let expand = node::expand(message)?;
            let (required, limit) = (expand.required, expand.limit);
            Ok(sized(expand, SizeRange { required, limit }))
        })
    }),
    ("ControllerGetVolume", |bytes, _| {
        decode(bytes, |m: &proto::ControllerGetVolumeRequest| {
            request::field::id::<crate::model::DiskId>("volume_id", &m.volume_id).map(plain)
        })
    }),
    ("GetSnapshot", |bytes, _| {
        decode(bytes, |m: &proto::GetSnapshotRequest| {
            request::field::id::<crate::model::SnapshotId>("snapshot_id", &m.snapshot_id).map(plain)
        })
    }),
];

/// The token as the driver prints it; `None` if it is refused.
pub fn token(text: &str) -> Option<String> {
    text.parse::<Token>().ok().map(|token| token.to_string())
}

/// The timeout in a `grpc-timeout` header.
pub fn timeout(header: &str) -> Option<Duration> {
    request::parse_timeout(header)
}

/// The bytes of a connection as they reach the server, if they arrive in these parts.
pub fn rewrite<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let (mut rewriter, mut ready) = (Rewriter::default(), Vec::new());
    for part in parts {
        rewriter.write(part, &mut ready);
    }
    rewriter.finish(&mut ready);
    ready
}
