//! The node's errors as gRPC codes. kubelet retries on nearly every code; the code tells people, and
//! csi-sanity, what kind of trouble it is.

use tonic::{Code, Status};

use super::request::Invalid;
use crate::base::chain::chain;
use crate::csi::status::named;
use crate::node::Error;

pub(super) fn invalid(error: &Invalid) -> Status {
    let code = match error {
        Invalid::NoSuchVolume(_) | Invalid::NoSuchPath(_) => Code::NotFound,
        Invalid::Missing(_)
        | Invalid::Path { .. }
        | Invalid::Capability(_)
        | Invalid::Filesystem(_)
        | Invalid::Flag { .. }
        | Invalid::Tuning(_)
        | Invalid::Flags(_)
        | Invalid::Negative(_) => Code::InvalidArgument,
        Invalid::Limit => Code::OutOfRange,
    };
    Status::new(code, chain(error))
}

pub(super) fn failed(error: &Error) -> Status {
    named(error.failure(), &chain(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csi::node::request;
    use crate::csi::proto;
    use crate::model::DiskId;
    use crate::node::Refusal;

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
            "FOREIGN_DATA: volume d-bp1: staging is refused: /dev/vdb (254:16) is neither blank nor \
             has it ext4: it holds a gpt partition table; look what it is; wipe the disk by hand only if \
             nobody needs it, or make the PersistentVolume anew with the right fsType \
             (docs/guides/foreign-data.md)"
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
