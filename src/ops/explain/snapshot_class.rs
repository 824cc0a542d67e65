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
    let (allowed, read): (_, fn(&_) -> _) = match is_group {
        true => (&parameters::OF_GROUP_SNAPSHOTTER, SnapshotClass::read_of_group),
        false => (&parameters::OF_SNAPSHOTTER, SnapshotClass::read),
    };
    parameters::check_prefixed(class.parameters.as_ref(), allowed, &mut to);
    let mut map = parameters::strings(class.parameters.as_ref(), &mut to);
    parameters::parse_all(&mut map, &mut to, read);
    to
}
