//! Values that are read at a scrape.

use std::collections::BTreeMap;
use std::fmt::{Error, Result};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::telemetry::catalog::description;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Value {
    Integer(u64),
    Float(f64),
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::Integer(u64::try_from(value).unwrap_or(u64::MAX))
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Float(value)
    }
}

/// The labels and the value.
type Sample = (Vec<(&'static str, String)>, Value);

/// Gauges and counters by the name of their metric.
#[derive(Debug, Default)]
pub(crate) struct Samples(BTreeMap<&'static str, Vec<Sample>>);

impl Samples {
    pub(super) fn set<const N: usize>(
        &mut self,
        metric: &'static str,
        labels: [(&'static str, &str); N],
        value: impl Into<Value>,
    ) {
        let labels = labels.map(|(name, value)| (name, value.to_owned()));
        let samples = self.0.entry(metric).or_default();
        samples.push((labels.into(), value.into()));
    }
}

impl Collector for Samples {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result {
        for (name, samples) in &self.0 {
            let metric = description(name);
            let help = format!("{}.", metric.help);
            let mut encoder = encoder.encode_descriptor(name, &help, metric.unit.as_ref(), metric.kind)?;
            for (labels, value) in samples {
                encode(encoder.encode_family(labels)?, metric.kind, *value)?;
            }
        }
        Ok(())
    }
}

fn encode(mut encoder: MetricEncoder<'_>, kind: MetricType, value: Value) -> Result {
    match (kind, value) {
        (MetricType::Counter, Value::Integer(value)) => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
        (MetricType::Counter, Value::Float(value)) => encoder.encode_counter::<NoLabelSet, _, u64>(&value, None),
        (MetricType::Gauge, Value::Integer(value)) => encoder.encode_gauge(&value),
        (MetricType::Gauge, Value::Float(value)) => encoder.encode_gauge(&value),
        (MetricType::Histogram | MetricType::Info | MetricType::Unknown, _) => Err(Error),
    }
}
