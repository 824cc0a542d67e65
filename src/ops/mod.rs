//! The commands of operators. `explain` and `timeline` turn what was read into a typed report; `doctor` and `orphans`
//! also read the cloud and Kubernetes, and change something only if asked to.

pub mod bundle;
pub mod doctor;
pub mod explain;
pub mod orphans;
pub mod timeline;
