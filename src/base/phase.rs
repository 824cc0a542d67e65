//! The phases of a call, as tracing spans. The subscriber derives durations, traces and the histories of volumes from
//! them; without a subscriber they cost nothing.

use std::future::Future;

use tracing::field::{Empty, display};
use tracing::instrument::{Instrument, Instrumented};
use tracing::{Span, info_span};

/// The target of the spans. Log lines do not show them.
pub const TARGET: &str = "diskplugin::phase";

/// Name of the span of a phase, and its field with the name of the phase.
pub const PHASE_SPAN: &str = "phase";
pub const PHASE_FIELD: &str = "phase";

/// Name of the span of an attempt of a cloud call.
pub const CLOUD_CALL_SPAN: &str = "cloud_call";
pub const ACTION_FIELD: &str = "cloud.action";
pub const CODE_FIELD: &str = "cloud.code";
pub const REQUEST_ID_FIELD: &str = "cloud.request_id";
pub const THROTTLED_FIELD: &str = "cloud.throttled";

/// Name of the span of a poll, and its field with the number of resources.
pub const POLL_SPAN: &str = "poll_batch";
pub const SIZE_FIELD: &str = "size";

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
            Self::RateLimit => "rate_limit",
            Self::Poll => "poll",
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
        let name = phase.as_str();
        self.instrument(info_span!(target: TARGET, "phase", otel.name = name, phase = name))
    }
}

impl<F: Future> InPhase for F {}

/// The span of one attempt of a cloud call.
#[must_use]
pub fn cloud_call(action: &'static str) -> Span {
    info_span!(
        target: TARGET,
        "cloud_call",
        otel.name = action,
        otel.kind = "client",
        cloud.action = action,
        cloud.code = Empty,
        cloud.request_id = Empty,
        cloud.throttled = Empty,
        otel.status_code = Empty,
    )
}

/// The code of an attempt that succeeded. A span that ends without a code is of an attempt that was cancelled.
pub const OK: &str = "OK";

pub fn record_success(span: &Span) {
    span.record(CODE_FIELD, OK);
}

/// The span of a poll for this number of resources.
#[must_use]
pub fn poll_batch(action: &'static str, size: usize) -> Span {
    info_span!(target: TARGET, "poll_batch", cloud.action = action, size)
}

/// Records the RequestId of the response in the span of the attempt, which is the current one.
pub fn record_request_id(id: &str) {
    Span::current().record(REQUEST_ID_FIELD, display(id));
}

/// Records the failure of an attempt in its span.
pub fn record_failure(span: &Span, code: &str, request_id: Option<&str>, is_throttled: bool) {
    span.record(CODE_FIELD, display(code));
    span.record("otel.status_code", "ERROR");
    if let Some(id) = request_id {
        span.record(REQUEST_ID_FIELD, display(id));
    }
    if is_throttled {
        span.record(THROTTLED_FIELD, true);
    }
}
