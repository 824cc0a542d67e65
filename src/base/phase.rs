//! The phases of a call, as tracing spans beside those of the client ([`ecs::span`]).

use std::future::Future;

use ecs::span;
use tracing::instrument::Instrumented;

/// Each row: variant, name in metrics, traces and histories, meaning.
macro_rules! phases {
    ($($variant:ident $name:expr, $meaning:literal;)*) => {
        /// A part of a call that can take long; [`Phase::describe`] explains each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Phase {
            $($variant,)*
        }

        impl Phase {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in metrics, traces and histories.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The meaning, for the generated list of metrics.
            pub fn describe(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

phases! {
    AttachQueue "attach_queue", "waiting until the instance can attach or detach another disk";
    RateLimit span::RATE_LIMIT, "waiting until the rate limit of the cloud permits the call";
    Poll span::POLL, "waiting for the cloud to finish an operation";
    DeviceWait "device_wait", "waiting for the block device of the disk";
    ToolQueue "tool_queue", "waiting until filesystem tools of other volumes end";
    BlankCheck "blank_check", "proving that the device is blank before mkfs";
    Mkfs "mkfs", "creating the filesystem";
    Fsck "fsck", "checking the filesystem";
    Mount "mount", "mounting the filesystem or the device";
    Grow "grow", "growing the partition or the filesystem";
    Unmount "unmount", "unmounting";
    Release "release", "waiting until no process uses the device";
}

/// Attributes a future to a phase of the current call.
pub trait InPhase: Future + Sized {
    fn in_phase(self, phase: Phase) -> Instrumented<Self> {
        span::in_phase(self, phase.as_str())
    }
}

impl<F: Future> InPhase for F {}
