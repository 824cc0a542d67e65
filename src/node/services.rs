//! Constructs the node services.

use std::sync::{Arc, Mutex};

use super::NodeSettings;
use super::attach_limits::InstanceTypeLimits;
use super::expand::Expander;
use super::format::Formatter;
use super::format_record::FormatRecords;
use super::health::HealthReporter;
use super::health_log::HealthLog;
use super::info::NodeInfoReporter;
use super::io_watch::IoWatch;
use super::observe::Observer;
use super::prerequisites::Prerequisites;
use super::publish::Publisher;
use super::stage::Stager;
use super::staged::StagedRecords;
use super::tool_slots::ToolSlots;
use super::tools::Tools;
use super::unmount::Unmounter;
use crate::base::{LogOnce, SystemClock, Tasks};
use crate::linux::{Exec, Host, Records};
use crate::model::{Bytes, DriverName};

#[derive(Debug)]
pub struct NodeServices {
    pub stager: Stager,
    pub publisher: Publisher,
    pub unmounter: Unmounter,
    pub expander: Expander,
    pub health: HealthReporter,
    pub info: NodeInfoReporter,
    pub prerequisites: Prerequisites,
}

impl NodeServices {
    /// `driver` is part of kubelet's staging paths. `tool_memory` limits the memory of each filesystem tool.
    pub fn new(
        host: Arc<dyn Host>,
        exec: Arc<dyn Exec>,
        settings: NodeSettings,
        driver: DriverName,
        tool_memory: Option<Bytes>,
    ) -> Self {
        let records = Records::new(settings.state_dir.clone());
        let io = IoWatch::default();
        let health_log = Arc::new(HealthLog::default());
        let observer = Observer {
            host: Arc::clone(&host),
            kubelet_dir: settings.kubelet_dir.clone(),
            device_dir: settings.device_dir.clone(),
        };
        let staged = StagedRecords(records.clone());
        let formatter = Formatter {
            tools: Tools {
                exec,
                operations: io.operations.clone(),
                memory: tool_memory,
            },
            records: FormatRecords(records.clone()),
        };
        Self {
            stager: Stager {
                clock: Arc::new(SystemClock),
                observer: observer.clone(),
                io: io.clone(),
                staged: staged.clone(),
                tool_slots: ToolSlots::default(),
                formatter: formatter.clone(),
            },
            unmounter: Unmounter {
                observer: observer.clone(),
                io: io.clone(),
                formatter: formatter.clone(),
                staged: staged.clone(),
                health_log: Arc::clone(&health_log),
            },
            publisher: Publisher {
                observer: observer.clone(),
                formatter: formatter.clone(),
            },
            expander: Expander {
                observer: observer.clone(),
                formatter,
                io,
                staged: staged.clone(),
            },
            health: HealthReporter {
                observer: observer.clone(),
                staged: staged.clone(),
                log: health_log,
            },
            prerequisites: Prerequisites {
                records: records.clone(),
                observer,
            },
            info: NodeInfoReporter {
                limits: InstanceTypeLimits {
                    host,
                    records,
                    source: settings.instance_types.clone(),
                    log_once: LogOnce::default(),
                },
                settings,
                staged,
                driver,
                reported_categories: Mutex::default(),
                log_once: LogOnce::default(),
            },
        }
    }

    /// The running calls, for which the shutdown waits.
    pub fn tasks(&self) -> &Tasks {
        &self.stager.io.operations.tasks
    }
}
