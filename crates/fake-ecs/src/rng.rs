//! All randomness of the fake cloud, from one seed: the same seed and calls result in the same IDs,
//! durations and choices.

const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// A splitmix64 generator: small, sufficient for choices, and identical on every platform.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// A draw from the standard normal distribution (Box-Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.unit(), self.unit());
        // `1 - radius` is never zero, whose logarithm is infinite.
        (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// A number from 0 inclusive to 1 exclusive.
    fn unit(&mut self) -> f64 {
        let high = u32::try_from(self.next() >> 32).unwrap_or(u32::MAX);
        f64::from(high) / 4_294_967_296.0
    }

    /// An index of a list that is not empty.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        let bound = u64::try_from(len).unwrap_or(u64::MAX);
        usize::try_from(self.below(bound)).unwrap_or(0)
    }

    /// True with a probability of `percent`.
    pub(crate) fn percent(&mut self, percent: u8) -> bool {
        percent > 0 && self.below(100) < u64::from(percent)
    }

    /// Twenty letters and digits that start like the body of a real ID.
    pub(crate) fn body(&mut self) -> String {
        let tail = (0..17).map(|_| char::from(ALPHABET[self.index(ALPHABET.len())]));
        let tail: String = tail.collect();
        format!("bp1{tail}")
    }

    /// `len` letters and digits.
    pub(crate) fn word(&mut self, len: usize) -> String {
        (0..len)
            .map(|_| char::from(ALPHABET[self.index(ALPHABET.len())]))
            .collect()
    }

    /// An upper-case UUID, the cloud's format of request IDs.
    pub(crate) fn request_id(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        let hex = format!("{a:016X}{b:016X}");
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_ids() {
        assert_eq!(Rng::new(7).body(), Rng::new(7).body());
        assert_ne!(Rng::new(7).body(), Rng::new(8).body());
    }

    #[test]
    fn an_id_body_is_twenty_lower_case_letters_and_digits() {
        let body = Rng::new(1).body();
        assert_eq!(body.len(), 20);
        assert!(body.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()));
    }

    #[test]
    fn a_request_id_is_an_upper_case_uuid() {
        let id = Rng::new(1).request_id();
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(id, id.to_uppercase());
    }
}
