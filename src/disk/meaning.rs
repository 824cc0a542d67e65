//! What a failed verb means for the caller. The layer above speaks gRPC and knows nothing of the
//! cloud's codes.

use super::Error;

pub use crate::model::Meaning;

impl Error {
    /// What it means: that of its name, see [`Error::failure`].
    #[must_use]
    pub fn meaning(&self) -> Meaning {
        self.failure().meaning()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::chain::chain;
    use crate::cloud;

    fn refused(cloud_code: &str) -> Error {
        Error::Cloud {
            step: "attach disk d-1 to node i-1".to_owned(),
            source: cloud::Error::answered("AttachDisk", 403, cloud_code).with_request_id("R-1"),
        }
    }

    #[test]
    fn every_kind_of_refusal_has_its_meaning() {
        for (cloud_code, meaning) in [
            ("Forbidden.RAM", Meaning::Denied),
            ("Throttling", Meaning::Unclear),
            ("InternalError", Meaning::Unclear),
            ("InvalidOperation.Conflict", Meaning::Busy),
            ("QuotaExceed.DiskCapacity", Meaning::Exhausted),
            ("ResourcesNotInSameZone", Meaning::Precondition),
            ("QuotaExceed.Tags", Meaning::Refused),
        ] {
            assert_eq!(refused(cloud_code).meaning(), meaning, "{cloud_code}");
        }
    }

    #[test]
    fn the_chain_tells_step_disk_node_code_and_request() {
        assert_eq!(
            chain(&refused("Forbidden.RAM")),
            "cannot attach disk d-1 to node i-1: AttachDisk failed with Forbidden.RAM (HTTP 403, \
             RequestId R-1)"
        );
    }
}
