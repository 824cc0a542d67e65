//! The health of disks, as the cloud reports it.

use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::id::DiskId;
use super::read::{self, Row};

/// One row of `DescribeDisksFullStatus`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DiskHealth {
    #[serde(rename = "DiskId")]
    pub disk: DiskId,
    /// `Ok`, `Warning`, `Impaired`, `Initializing`, `InsufficientData`, `NotApplicable`, or an unknown value.
    #[serde(rename = "HealthStatus", deserialize_with = "name")]
    pub status: String,
    /// The current events, without those that have ended.
    #[serde(default, rename = "DiskEventSet", deserialize_with = "current")]
    pub events: Vec<HealthEvent>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HealthEvent {
    /// `Degraded`, `SeverelyDegraded`, `Stalled`, `ErrorDetected`, or an unknown value.
    pub kind: String,
    /// The ID of the event, for a support ticket.
    pub id: String,
}

fn name<'de, D: Deserializer<'de>>(json: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Named {
        name: String,
    }
    Ok(Named::deserialize(json)?.name)
}

fn current<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<HealthEvent>, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Event {
        #[serde(default)]
        event_id: String,
        event_end_time: Option<String>,
        event_type: Option<Map<String, Value>>,
    }
    let events: Vec<Event> = read::list(json)?;
    let events = events.into_iter().filter(|event| event.event_end_time.is_none());
    let kind = |event: &Event| Some(event.event_type.as_ref()?.get("Name")?.as_str()?.to_owned());
    let events = events.map(|event| HealthEvent {
        kind: kind(&event).unwrap_or_else(|| "Unknown".to_owned()),
        id: event.event_id,
    });
    Ok(events.collect())
}

/// The health for operators, with the cloud's events.
impl fmt::Display for DiskHealth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk {} is {}", self.disk, self.status)?;
        for event in &self.events {
            write!(f, ", {} (event {})", event.kind, event.id)?;
        }
        Ok(())
    }
}

impl Row for DiskHealth {
    const LIST: &'static str = "DiskFullStatusSet";
    const ID: &'static str = "DiskId";
}
