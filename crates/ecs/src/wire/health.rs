//! Parameters and rows of disk health.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::List;
use super::params::Params;
use crate::model::{DiskHealth, DiskId, HealthEvent};

pub fn describe(disks: &[DiskId]) -> Params {
    Params::numbered_page().list("DiskId", disks)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Row {
    disk_id: DiskId,
    health_status: NamedStatus,
    disk_event_set: List<Event>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NamedStatus {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Event {
    event_id: Option<String>,
    event_end_time: Option<String>,
    event_type: Option<Map<String, Value>>,
}

impl super::Row for Row {
    type Model = DiskHealth;
    const LIST: &'static str = "DiskFullStatusSet";
    const ID: &'static str = "DiskId";

    fn into_model(self) -> DiskHealth {
        let events = self.disk_event_set.0.into_iter();
        // Events that have ended are not returned.
        let events = events.filter(|event| event.event_end_time.is_none());
        let kind = |event: &Event| Some(event.event_type.as_ref()?.get("Name")?.as_str()?.to_owned());
        let events = events.map(|event| HealthEvent {
            kind: kind(&event).unwrap_or_else(|| "Unknown".to_owned()),
            id: event.event_id.unwrap_or_default(),
        });
        DiskHealth {
            disk: self.disk_id,
            status: self.health_status.name,
            events: events.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Described, read};

    #[test]
    fn ended_events_are_omitted() {
        let json = r#"{"DiskFullStatusSet":{"DiskFullStatusType":[
            {"DiskId":"d-1","HealthStatus":{"Name":"Impaired","Code":0},"DiskEventSet":{"DiskEventType":[
              {"EventId":"e-1","EventTime":"2021-06-07T06:08:54Z","EventEndTime":"","EventType":{"Name":"Stalled"}},
              {"EventId":"e-2","EventEndTime":"2021-06-07T06:08:54Z","EventType":{"Name":"Degraded"}}]}},
            {"DiskId":"d-2","HealthStatus":{"Name":"Ok"},"DiskEventSet":null},
            {"DiskId":"d-3"},{"DiskId":"d-4","HealthStatus":{"Name":""}}]}}"#;
        let page = read::<Described<Row>>(json.as_bytes()).unwrap().0;
        let texts: Vec<_> = page.rows.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["disk d-1 is Impaired, Stalled (event e-1)", "disk d-2 is Ok"]);
        let unreadable: Vec<_> = page.unreadable.into_iter().map(|row| row.id.unwrap()).collect();
        assert_eq!(unreadable, ["d-3", "d-4"]);
    }
}
