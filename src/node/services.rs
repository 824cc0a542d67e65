//! Constructs the node services.

use std::sync::{Arc, Mutex};

use super::NodeSettings;
use super::attach_limits::InstanceTypeLimits;
use super::expand::Expander;
use super::find_device::DeviceFinder;
use super::format::Formatter;
use super::format_record::FormatRecords;
use super::health::HealthReporter;
use super::health_log::HealthLog;
use super::info::NodeInfoReporter;
use super::io_watch::IoWatch;
use super::mounted::MountIdentifier;
use super::observe::Observer;
use super::prerequisites::Prerequisites;
use super::publish::Publisher;
use super::release::Unmounter;
use super::run::StepRunner;
use super::stage::Stager;
use super::staged::StagedRecords;
use super::tool_slots::ToolSlots;
use super::tools::Tools;
use super::unpublish::Unpublisher;
use super::unstage::Unstager;
use super::volume_operations::VolumeOperations;
use crate::base::{LogOnce, SystemClock, Tasks};
use crate::linux::{Exec, Host, Records};
use crate::model::{Bytes, DriverName};

/// The services of one node.
#[derive(Debug)]
pub struct NodeServices {
    pub stager: Stager,
    pub unstager: Unstager,
    pub publisher: Publisher,
    pub unpublisher: Unpublisher,
    pub expander: Expander,
    pub health: HealthReporter,
    pub info: NodeInfoReporter,
    pub prerequisites: Prerequisites,
    operations: VolumeOperations,
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
        let operations = VolumeOperations::default();
        let health_log = Arc::new(HealthLog::default());
        let tools = Tools {
            host: Arc::clone(&host),
            exec,
            operations: operations.clone(),
            memory: tool_memory,
        };
        let observer = Observer {
            host: Arc::clone(&host),
            kubelet_dir: settings.kubelet_dir.clone(),
        };
        let staged = StagedRecords {
            host: Arc::clone(&host),
            records: records.clone(),
        };
        let format_records = FormatRecords {
            host: Arc::clone(&host),
            records: records.clone(),
        };
        let finder = DeviceFinder {
            host: Arc::clone(&host),
            device_dir: settings.device_dir.clone(),
        };
        let mounts = MountIdentifier {
            host: Arc::clone(&host),
            staged: staged.clone(),
        };
        let io = IoWatch::new(Arc::clone(&host), operations.clone());
        let unmounter = Unmounter {
            host: Arc::clone(&host),
            io: io.clone(),
        };
        let formatter = Formatter {
            tools: tools.clone(),
            records: format_records.clone(),
        };
        let runner = StepRunner {
            tools: tools.clone(),
            formatter: formatter.clone(),
        };
        Self {
            stager: Stager {
                host: Arc::clone(&host),
                clock: Arc::new(SystemClock),
                operations: operations.clone(),
                observer: observer.clone(),
                mounts: mounts.clone(),
                unmounter: unmounter.clone(),
                finder: finder.clone(),
                staged: staged.clone(),
                format_records,
                tool_slots: ToolSlots::default(),
                runner: runner.clone(),
            },
            unstager: Unstager {
                host: Arc::clone(&host),
                operations: operations.clone(),
                observer: observer.clone(),
                mounts: mounts.clone(),
                finder: finder.clone(),
                unmounter: unmounter.clone(),
                formatter,
                staged: staged.clone(),
                health_log: Arc::clone(&health_log),
            },
            publisher: Publisher {
                operations: operations.clone(),
                observer: observer.clone(),
                finder: finder.clone(),
                runner: runner.clone(),
            },
            unpublisher: Unpublisher {
                host: Arc::clone(&host),
                operations: operations.clone(),
                observer: observer.clone(),
                mounts,
                unmounter,
                tools,
                staged: staged.clone(),
            },
            expander: Expander {
                host: Arc::clone(&host),
                operations: operations.clone(),
                observer: observer.clone(),
                finder: finder.clone(),
                runner,
                io,
                staged: staged.clone(),
            },
            health: HealthReporter {
                host: Arc::clone(&host),
                observer,
                finder,
                staged: staged.clone(),
                log: health_log,
            },
            prerequisites: Prerequisites {
                host: Arc::clone(&host),
                records: records.clone(),
                kubelet_dir: settings.kubelet_dir.clone(),
                device_dir: settings.device_dir.clone(),
            },
            info: NodeInfoReporter {
                limits: InstanceTypeLimits {
                    host: Arc::clone(&host),
                    records,
                    source: settings.instance_types.clone(),
                    log_once: LogOnce::default(),
                },
                host,
                settings,
                staged,
                driver,
                reported_categories: Mutex::default(),
                log_once: LogOnce::default(),
            },
            operations,
        }
    }

    /// The running calls, for which the shutdown waits.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        self.operations.tasks()
    }
}
