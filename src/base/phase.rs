//! The phases of a call, as tracing spans beside those of the client ([`ecs::span`]).

use std::future::Future;

use ecs::span;
use tracing::instrument::Instrumented;

/// A part of a call that can take long; [`Phase::describe`] explains each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    AttachQueue,
    RateLimit,
    Poll,
    DeviceWait,
    ToolQueue,
    BlankCheck,
    Mkfs,
    Fsck,
    Mount,
    Grow,
    Unmount,
    Release,
}

impl Phase {
    pub const ALL: [Self; 12] = [
        Self::AttachQueue,
        Self::RateLimit,
        Self::Poll,
        Self::DeviceWait,
        Self::ToolQueue,
        Self::BlankCheck,
        Self::Mkfs,
        Self::Fsck,
        Self::Mount,
        Self::Grow,
        Self::Unmount,
        Self::Release,
    ];

    /// The name in metrics, traces and histories.
    pub fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The meaning, for the generated list of metrics.
    pub fn describe(self) -> &'static str {
        self.row().1
    }

    fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::AttachQueue => (
                "attach_queue",
                "waiting until the instance can attach or detach another disk",
            ),
            Self::RateLimit => (
                span::RATE_LIMIT,
                "waiting until the rate limit of the cloud permits the call",
            ),
            Self::Poll => (span::POLL, "waiting for the cloud to finish an operation"),
            Self::DeviceWait => ("device_wait", "waiting for the block device of the disk"),
            Self::ToolQueue => ("tool_queue", "waiting until filesystem tools of other volumes end"),
            Self::BlankCheck => ("blank_check", "proving that the device is blank before mkfs"),
            Self::Mkfs => ("mkfs", "creating the filesystem"),
            Self::Fsck => ("fsck", "checking the filesystem"),
            Self::Mount => ("mount", "mounting the filesystem or the device"),
            Self::Grow => ("grow", "growing the partition or the filesystem"),
            Self::Unmount => ("unmount", "unmounting"),
            Self::Release => ("release", "waiting until no process uses the device"),
        }
    }
}

/// Attributes a future to a phase of the current call.
pub trait InPhase: Future + Sized {
    fn in_phase(self, phase: Phase) -> Instrumented<Self> {
        span::in_phase(self, phase.as_str())
    }
}

impl<F: Future> InPhase for F {}
