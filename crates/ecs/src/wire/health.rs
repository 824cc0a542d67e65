//! Parameters and rows of disk health.

use super::Row;
use super::params::Params;
use crate::model::{DiskHealth, DiskId};

pub fn describe(disks: &[DiskId]) -> Params {
    Params::numbered_page().list("DiskId", disks)
}

impl Row for DiskHealth {
    const LIST: &'static str = "DiskFullStatusSet";
    const ID: &'static str = "DiskId";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Page;
    use crate::wire::read;

    #[test]
    fn ended_events_are_omitted() {
        let json = r#"{"DiskFullStatusSet":{"DiskFullStatusType":[
            {"DiskId":"d-1","HealthStatus":{"Name":"Impaired","Code":0},"DiskEventSet":{"DiskEventType":[
              {"EventId":"e-1","EventTime":"2021-06-07T06:08:54Z","EventEndTime":"","EventType":{"Name":"Stalled"}},
              {"EventId":"e-2","EventEndTime":"2021-06-07T06:08:54Z","EventType":{"Name":"Degraded"}}]}},
            {"DiskId":"d-2","HealthStatus":{"Name":"Ok"},"DiskEventSet":null},
            {"DiskId":"d-3"},{"DiskId":"d-4","HealthStatus":{"Name":""}}]}}"#;
        let page = read::<Page<DiskHealth>>(json.as_bytes()).unwrap();
        let texts: Vec<_> = page.rows.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["disk d-1 is Impaired, Stalled (event e-1)", "disk d-2 is Ok"]);
        let unreadable: Vec<_> = page.unreadable.into_iter().map(|row| row.id.unwrap()).collect();
        assert_eq!(unreadable, ["d-3", "d-4"]);
    }
}
