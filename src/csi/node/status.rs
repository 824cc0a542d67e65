//! The node's errors as gRPC codes. kubelet retries on every code; the code tells people, and
//! csi-sanity, what kind of trouble it is.

use tonic::{Code, Status};

use super::request::Invalid;
use crate::base::chain::chain;
use crate::node::{Error, FindError, HostError, Refusal};

pub(super) fn invalid(error: &Invalid) -> Status {
    let code = match error {
        Invalid::NoSuchVolume(_) | Invalid::NoSuchPath(_) => Code::NotFound,
        Invalid::Missing(_)
        | Invalid::Path { .. }
        | Invalid::Capability(_)
        | Invalid::Filesystem(_)
        | Invalid::Flag { .. }
        | Invalid::Negative(_) => Code::InvalidArgument,
        Invalid::Limit => Code::OutOfRange,
    };
    Status::new(code, chain(error))
}

pub(super) fn failed(error: &Error) -> Status {
    Status::new(code(error), chain(error))
}

fn code(error: &Error) -> Code {
    match error {
        // CSI: "operation pending for volume"; the caller comes again.
        Error::Busy { .. } => Code::Aborted,
        // Both may still come true: the cloud is slow.
        Error::NoDevice { .. } | Error::NotGrown { .. } => Code::DeadlineExceeded,
        Error::Ambiguous { source, .. } => match source {
            FindError::Duplicate { .. } | FindError::Stale { .. } => Code::FailedPrecondition,
        },
        Error::Refused { refusal, .. } => refused(refusal),
        Error::NotHere { .. } => Code::NotFound,
        Error::Broken { .. } | Error::NoCapability { .. } | Error::Unclean { .. } => {
            Code::FailedPrecondition
        }
        Error::MountOptions { .. } => Code::InvalidArgument,
        Error::Tool { .. } => Code::Internal,
        Error::Host { source, .. } => match source {
            HostError::Late { .. } => Code::DeadlineExceeded,
            HostError::Io { .. }
            | HostError::Probe { .. }
            | HostError::Unclear { .. }
            | HostError::Changed { .. }
            | HostError::Format { .. } => Code::Internal,
        },
    }
}

fn refused(refusal: &Refusal) -> Code {
    match refusal {
        // CSI: "volume already staged/published but incompatible".
        Refusal::Incompatible { .. } => Code::AlreadyExists,
        Refusal::WrongFilesystem { .. }
        | Refusal::ForeignData { .. }
        | Refusal::Held { .. }
        | Refusal::BlankReadOnly { .. }
        | Refusal::MountedElsewhere { .. }
        | Refusal::Occupied { .. }
        | Refusal::BadTarget { .. }
        | Refusal::NotStaged { .. }
        | Refusal::StagedReadOnly { .. }
        | Refusal::SingleTarget { .. }
        | Refusal::MixedAccess { .. }
        | Refusal::GrowReadOnly { .. } => Code::FailedPrecondition,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csi::node::request;
    use crate::csi::proto;
    use crate::model::DiskId;

    fn volume() -> DiskId {
        "d-bp1".parse().unwrap()
    }

    #[test]
    fn every_rpc_names_the_field_that_is_missing() {
        let id = || "d-bp1".to_owned();
        let texts = [
            request::stage(&proto::NodeStageVolumeRequest::default()).err(),
            request::stage(&proto::NodeStageVolumeRequest {
                volume_id: id(),
                ..Default::default()
            })
            .err(),
            request::publish(&proto::NodePublishVolumeRequest {
                volume_id: id(),
                ..Default::default()
            })
            .err(),
            request::publish(&proto::NodePublishVolumeRequest {
                volume_id: id(),
                target_path: "/t".to_owned(),
                ..Default::default()
            })
            .err(),
            request::unstage(&proto::NodeUnstageVolumeRequest::default()).err(),
            request::unpublish(&proto::NodeUnpublishVolumeRequest {
                volume_id: id(),
                ..Default::default()
            })
            .err(),
            request::stats(&proto::NodeGetVolumeStatsRequest::default()).err(),
            request::expand(&proto::NodeExpandVolumeRequest {
                volume_id: id(),
                ..Default::default()
            })
            .err(),
        ]
        .map(|error| {
            let status = invalid(&error.unwrap());
            assert_eq!(status.code(), Code::InvalidArgument, "{status}");
            status.message().to_owned()
        });
        assert_eq!(
            texts,
            [
                "volume_id is missing",
                "staging_target_path is missing",
                "target_path is missing",
                "volume_capability cannot be met: volume_capability is missing",
                "volume_id is missing",
                "target_path is missing",
                "volume_id is missing",
                "volume_path is missing",
            ]
        );
    }

    #[test]
    fn a_volume_or_place_that_cannot_be_is_not_found() {
        for (id, path) in [("some-id", "some/path"), ("d-bp1", "some/path")] {
            let stats = request::stats(&proto::NodeGetVolumeStatsRequest {
                volume_id: id.to_owned(),
                volume_path: path.to_owned(),
                ..Default::default()
            });
            assert_eq!(invalid(&stats.unwrap_err()).code(), Code::NotFound);
            let expand = request::expand(&proto::NodeExpandVolumeRequest {
                volume_id: id.to_owned(),
                volume_path: path.to_owned(),
                ..Default::default()
            });
            assert_eq!(invalid(&expand.unwrap_err()).code(), Code::NotFound);
        }
    }

    #[test]
    fn the_code_tells_the_kind_of_trouble_and_the_text_the_whole_story() {
        let refused = |refusal| Error::Refused {
            volume: volume(),
            verb: "staging",
            refusal,
        };
        let foreign = refused(Refusal::ForeignData {
            device: "/dev/vdb (254:16)".to_owned(),
            found: "a gpt partition table".to_owned(),
            wanted: crate::model::Filesystem::Ext4,
        });
        let status = failed(&foreign);
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert_eq!(
            status.message(),
            "volume d-bp1: staging is refused: /dev/vdb (254:16) is neither blank nor has it ext4: \
             it holds a gpt partition table"
        );
        let incompatible = refused(Refusal::Incompatible {
            path: "/staging".into(),
            found: "writable".to_owned(),
            wanted: "read-only".to_owned(),
        });
        assert_eq!(failed(&incompatible).code(), Code::AlreadyExists);
        let busy = Error::Busy { volume: volume() };
        assert_eq!(failed(&busy).code(), Code::Aborted);
    }
}
