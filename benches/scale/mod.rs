//! Scenarios of the controller with many volumes, in virtual time.

pub(crate) mod day;
mod dice;
pub(crate) mod figures;
pub(crate) mod fleet;
mod floor;
pub(crate) mod growth;
pub(crate) mod leader;
mod memory;
#[path = "../../tests/common/memory_cloud.rs"]
mod memory_cloud;
pub(crate) mod outage;
pub(crate) mod proof;
#[path = "../../tests/common/request.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod request;
pub(crate) mod reschedule;
mod sidecars;
mod stage;
mod times;
