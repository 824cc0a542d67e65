//! The health of disks on the wire.

use serde::Deserialize;

use super::params::Params;
use super::{List, Malformed, filled, page};
use crate::cloud::action::Page;
use crate::model::{DiskHealth, DiskId, HealthEvent};

pub fn describe(disks: &[DiskId]) -> Params {
    Params::default()
        .list("DiskId", disks)
        .set("PageSize", 100)
        .set("PageNumber", 1)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Described {
    disk_full_status_set: List<serde_json::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Row {
    disk_id: String,
    #[serde(default)]
    health_status: Option<Named>,
    #[serde(default)]
    disk_event_set: Option<List<Event>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Named {
    #[serde(default, deserialize_with = "filled")]
    name: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    #[serde(default, deserialize_with = "filled")]
    event_id: Option<String>,
    #[serde(default, deserialize_with = "filled")]
    event_end_time: Option<String>,
    #[serde(default)]
    event_type: Option<Named>,
}

impl Described {
    pub fn page(self) -> Page<DiskHealth> {
        let rows = self.disk_full_status_set.0;
        page(rows, "DiskId", None, |row: Row| {
            let status = row.health_status.unwrap_or_default().name;
            Ok(DiskHealth {
                disk: row.disk_id.parse().map_err(Malformed::Id)?,
                status: status.ok_or(Malformed::Missing {
                    id: row.disk_id,
                    field: "HealthStatus.Name",
                })?,
                events: row
                    .disk_event_set
                    .unwrap_or_default()
                    .0
                    .into_iter()
                    // One that has ended is history.
                    .filter(|event| event.event_end_time.is_none())
                    .map(|event| HealthEvent {
                        kind: event
                            .event_type
                            .unwrap_or_default()
                            .name
                            .unwrap_or_else(|| "Unknown".to_owned()),
                        id: event.event_id.unwrap_or_default(),
                    })
                    .collect(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_are_over_are_left_out() {
        let json = r#"{"DiskFullStatusSet":{"DiskFullStatusType":[
            {"DiskId":"d-1","HealthStatus":{"Name":"Impaired","Code":0},"DiskEventSet":{"DiskEventType":[
              {"EventId":"e-1","EventTime":"2021-06-07T06:08:54Z","EventEndTime":"","EventType":{"Name":"Stalled"}},
              {"EventId":"e-2","EventEndTime":"2021-06-07T06:08:54Z","EventType":{"Name":"Degraded"}}]}},
            {"DiskId":"d-2","HealthStatus":{"Name":"Ok"},"DiskEventSet":null},
            {"DiskId":"d-3"}]}}"#;
        let page = serde_json::from_str::<Described>(json).unwrap().page();
        let told: Vec<_> = page.rows.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "disk d-1 is Impaired, Stalled (event e-1)",
                "disk d-2 is Ok"
            ]
        );
        assert_eq!(page.unreadable[0].id.as_deref(), Some("d-3"));
    }
}
