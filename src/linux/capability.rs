//! The capabilities of this process.

/// A capability that the node plugin uses, with its number in `linux/capability.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Mounting, and the ioctls of block devices.
    SysAdmin = 21,
    /// Growing a mounted ext filesystem.
    SysResource = 24,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u64);

impl Capabilities {
    /// Parses the line `CapEff` of `/proc/self/status`.
    pub fn parse(status: &str) -> Option<Self> {
        let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(mask.trim(), 16).ok().map(Self)
    }

    pub fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u32) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read_from_the_mask() {
        let has = |mask| {
            let all = Capabilities::parse(&format!("Name:\tx\nCapEff:\t{mask}\n")).unwrap();
            (all.has(Capability::SysAdmin), all.has(Capability::SysResource))
        };
        assert_eq!(has("000001ffffffffff"), (true, true));
        assert_eq!(has("000001fffeffffff"), (true, false));
        assert_eq!(has("0000000001000000"), (false, true));
        assert_eq!(Capabilities::parse("Name:\tx\n"), None);
        assert_eq!(Capabilities::parse("CapEff:\tx\n"), None);
    }
}
