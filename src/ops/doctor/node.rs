//! Checks of a node. `app` reads the machine.

use super::check::Check;
use crate::model::Bytes;

/// The smallest memory with which filesystem tools are run (`--tool-memory`).
const LEAST_TOOL_MEMORY: u64 = 16 << 20;

/// A check of `/readyz`.
pub fn requirement(name: &str, is_ok: bool, is_limited: bool, found: String) -> Check {
    let name = format!("node/{name}");
    let advice = "see the requirements of a node in docs/reference/support.md";
    match (is_ok, is_limited) {
        (true, true) => Check::warning(name, found, advice),
        (true, false) => Check::ok(name, found),
        (false, _) => Check::failed(name, found, advice),
    }
}

/// The memory limit of the container, of which the driver needs its own part.
pub fn memory(limit: Option<Bytes>, own: Bytes) -> Check {
    let name = "node/memory";
    let Some(Bytes(limit)) = limit else {
        return Check::ok(name, "the control group has no memory limit");
    };
    let text = format!("the memory limit of the control group is {} MiB", limit >> 20);
    match limit < own.0 + LEAST_TOOL_MEMORY {
        true => Check::failed(
            name,
            text,
            "raise the memory limit of the container: mkfs and fsck run in it",
        ),
        false => Check::ok(name, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::doctor::check::Status;

    #[test]
    fn a_limitation_is_a_warning() {
        let of = |is_ok, is_limited| requirement("capabilities", is_ok, is_limited, String::new()).status;
        assert_eq!(of(true, false), Status::Ok);
        assert_eq!(of(true, true), Status::Warning);
        assert_eq!(of(false, false), Status::Failed);
    }

    #[test]
    fn memory_must_suffice_for_the_driver_and_one_tool() {
        for (limit, status) in [
            (None, Status::Ok),
            (Some(Bytes(48 << 20)), Status::Ok),
            (Some(Bytes(47 << 20)), Status::Failed),
        ] {
            assert_eq!(memory(limit, Bytes(32 << 20)).status, status, "{limit:?}");
        }
    }
}
