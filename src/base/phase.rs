//! The phases of a call, as tracing spans beside those of the client ([`ecs::span`]).

use std::future::Future;

use ecs::span;
use tracing::instrument::Instrumented;

/// A part of a call that can take long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// Waiting until the instance can attach or detach another disk.
    AttachQueue,
    /// Waiting until the rate limit of the cloud permits the call.
    RateLimit,
    /// Waiting for the cloud to finish an operation, by polling.
    Poll,
    /// Waiting for the block device of the disk.
    DeviceWait,
    /// Waiting until filesystem tools of other volumes end.
    ToolQueue,
    /// Proving that the device is blank.
    BlankCheck,
    Mkfs,
    Fsck,
    Mount,
    Grow,
    Unmount,
    /// Waiting until no process uses the device.
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
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AttachQueue => "attach_queue",
            Self::RateLimit => span::RATE_LIMIT,
            Self::Poll => span::POLL,
            Self::DeviceWait => "device_wait",
            Self::ToolQueue => "tool_queue",
            Self::BlankCheck => "blank_check",
            Self::Mkfs => "mkfs",
            Self::Fsck => "fsck",
            Self::Mount => "mount",
            Self::Grow => "grow",
            Self::Unmount => "unmount",
            Self::Release => "release",
        }
    }

    /// The meaning, for the generated list of metrics.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::AttachQueue => "waiting until the instance can attach or detach another disk",
            Self::RateLimit => "waiting until the rate limit of the cloud permits the call",
            Self::Poll => "waiting for the cloud to finish an operation",
            Self::DeviceWait => "waiting for the block device of the disk",
            Self::ToolQueue => "waiting until filesystem tools of other volumes end",
            Self::BlankCheck => "proving that the device is blank before mkfs",
            Self::Mkfs => "creating the filesystem",
            Self::Fsck => "checking the filesystem",
            Self::Mount => "mounting the filesystem or the device",
            Self::Grow => "growing the partition or the filesystem",
            Self::Unmount => "unmounting",
            Self::Release => "waiting until no process uses the device",
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
