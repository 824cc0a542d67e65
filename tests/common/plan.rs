//! Plans for the lifecycle of a volume.

/// The final state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything is deleted.
    Gone,
    /// The volume exists, detached.
    Kept,
    /// The volume is attached, and its snapshot exists if the plan has one.
    InUse,
}

#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) name: String,
    pub(crate) node: String,
    pub(crate) gib: u32,
    pub(crate) any_category: bool,
    pub(crate) snapshot: bool,
    pub(crate) restore: bool,
    pub(crate) clone: bool,
    pub(crate) expand: bool,
    pub(crate) end: End,
}

impl Plan {
    /// The plan with this number, the same in every run.
    pub(crate) fn of(number: usize, nodes: &[String]) -> Self {
        Self {
            name: format!("pvc-{number}"),
            node: nodes[(number + number / 10) % nodes.len()].clone(),
            gib: 20 + u32::try_from(number % 5).unwrap(),
            any_category: number % 4 == 1,
            snapshot: number.is_multiple_of(2),
            restore: number.is_multiple_of(4),
            clone: number % 6 == 5,
            expand: number.is_multiple_of(3),
            end: match number % 10 {
                // As many as the nodes' attach limits allow.
                3 | 4 if number < 20 * nodes.len() => End::InUse,
                7 => End::Kept,
                _ => End::Gone,
            },
        }
    }

    pub(crate) fn restored(&self) -> String {
        format!("{}-restored", self.name)
    }

    pub(crate) fn cloned(&self) -> String {
        format!("{}-cloned", self.name)
    }

    pub(crate) fn cut(&self) -> String {
        format!("snap-{}", self.name)
    }
}
