//! A seeded pseudorandom number generator.

/// SplitMix64. The same seed yields the same numbers on every machine.
#[derive(Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// Returns a number less than `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    pub(crate) fn choose<T: Clone>(&mut self, items: &[T]) -> T {
        let index = usize::try_from(self.below(u64::try_from(items.len()).unwrap())).unwrap();
        items[index].clone()
    }
}

/// The number in an environment variable, such as a seed.
pub(crate) fn env_number(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(default, |text| text.parse().expect("a whole number"))
}
