//! Sizes as quantities of Kubernetes (`resource.Quantity`), such as `35Gi`.

use ecs::model::size::Bytes;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a size; allowed: a number of bytes below 8Ei, with Ki, Mi, Gi, Ti, Pi, Ei, k, M, G, T, P, E or an \
     exponent, such as 35Gi"
)]
pub struct InvalidQuantity(String);

/// Parses a quantity. Fractions of bytes are rounded up, as external-provisioner does.
pub fn parse(text: &str) -> Result<Bytes, InvalidQuantity> {
    quantity(text.trim()).ok_or_else(|| InvalidQuantity(text.to_owned()))
}

fn quantity(text: &str) -> Option<Bytes> {
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit());
    let (number, suffix) = text.split_at(end.unwrap_or(text.len()));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 24 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (unit, divisor) = unit(suffix)?;
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let bytes = digits.parse::<u128>().ok()?.checked_mul(unit)?;
    let bytes = bytes.div_ceil(scale.checked_mul(divisor)?);
    // The size of a CSI request is an `int64`.
    i64::try_from(bytes).ok()?;
    Some(Bytes(u64::try_from(bytes).ok()?))
}

/// The factor and the divisor of a suffix.
fn unit(suffix: &str) -> Option<(u128, u128)> {
    let exponent = suffix.strip_prefix(['e', 'E']);
    // `E` and `Ei` are units.
    if let Some(exponent) = exponent.filter(|rest| !["", "i"].contains(rest)) {
        let power: i32 = exponent.parse().ok()?;
        let unit = 10_u128.checked_pow(power.unsigned_abs())?;
        return Some(if power < 0 { (1, unit) } else { (unit, 1) });
    }
    match suffix {
        "" => return Some((1, 1)),
        "m" => return Some((1, 1000)),
        _ => {}
    }
    let multiple = |units: [&str; 6], base: u128| {
        let power = units.iter().position(|unit| *unit == suffix)? + 1;
        Some((base.pow(u32::try_from(power).ok()?), 1))
    };
    multiple(["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"], 1024).or_else(|| multiple(["k", "M", "G", "T", "P", "E"], 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_the_units_of_kubernetes() {
        for (text, bytes) in [
            ("35Gi", 35 << 30),
            ("1.5Ti", 3 << 39),
            (".5Gi", 1 << 29),
            ("10G", 10_000_000_000),
            ("1e9", 1_000_000_000),
            ("1E", 1_000_000_000_000_000_000),
            ("7Ei", 7 << 60),
            ("1500m", 2),
            ("5e-1", 1),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_rejected_with_the_units() {
        for text in ["", "Gi", "-1Gi", "35 Gi", "35GiB", "1.2.3", "8Ei", "1e40", "ten"] {
            let refused = parse(text).unwrap_err().to_string();
            assert!(refused.contains(&format!("{text:?}")), "{refused}");
        }
    }
}
