//! A VolumeSnapshotClass or VolumeGroupSnapshotClass.

use super::manifest::SnapshotClass as Object;
use super::parameters;
use super::report::Explained;
use super::settings::ExplainSettings;
use crate::csi::param::snapshot::SnapshotClass;

pub(super) fn explain(class: &Object, is_group: bool, settings: &ExplainSettings, mut to: Explained) -> Explained {
    if let Some(why) = settings.other_driver("driver", &class.driver) {
        return to.skip(why);
    }
    parameters::check_prefixed(class.parameters.as_ref(), &[], &mut to);
    let mut map = parameters::strings(class.parameters.as_ref(), &mut to);
    let read = match is_group {
        true => SnapshotClass::read_of_group,
        false => SnapshotClass::read,
    };
    parameters::parse_all(&mut map, &mut to, read);
    to
}
