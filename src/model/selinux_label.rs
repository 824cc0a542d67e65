//! SELinux labels, compared as the kernel compares them: the level is a set of categories, which has many spellings.
//! OpenShift assigns categories in descending order (`s0:c26,c5`), and the kernel prints them in ascending order, with
//! three or more consecutive ones as a range (`s0:c5,c26`, `s0:c1.c3`).

use std::fmt;

/// A label, `user:role:type[:level]`. Equal labels have the same meaning; they are displayed as they were written.
#[derive(Debug, Clone)]
pub struct SelinuxLabel {
    text: String,
    parsed: Option<Parsed>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parsed {
    user: String,
    role: String,
    kind: String,
    range: Option<Range>,
}

/// `low[-high]`. Without a high level, both are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Range {
    low: Level,
    high: Level,
}

/// A sensitivity with categories.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Level {
    sensitivity: u32,
    /// Inclusive, ascending, and neither overlapping nor adjacent. Not expanded, because a request determines their
    /// size.
    categories: Vec<(u32, u32)>,
}

impl SelinuxLabel {
    /// Reads a label without quotation marks. Text of another form is equal to the same text only.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            parsed: parse(text),
        }
    }
}

impl PartialEq for SelinuxLabel {
    fn eq(&self, other: &Self) -> bool {
        match (&self.parsed, &other.parsed) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => self.text == other.text,
        }
    }
}

impl Eq for SelinuxLabel {}

impl fmt::Display for SelinuxLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse(text: &str) -> Option<Parsed> {
    // The level contains colons, too.
    let mut fields = text.splitn(4, ':');
    let mut name = || {
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some(name.to_owned())
    };
    let (user, role, kind) = (name()?, name()?, name()?);
    let range = match fields.next() {
        Some(range) => Some(parse_range(range)?),
        None => None,
    };
    Some(Parsed {
        user,
        role,
        kind,
        range,
    })
}

fn parse_range(text: &str) -> Option<Range> {
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    Some(Range {
        low: parse_level(low)?,
        high: parse_level(high)?,
    })
}

fn parse_level(text: &str) -> Option<Level> {
    let (sensitivity, categories) = match text.split_once(':') {
        Some((sensitivity, categories)) => (sensitivity, Some(categories)),
        None => (text, None),
    };
    let ranges = categories
        .into_iter()
        .flat_map(|list| list.split(','))
        .map(parse_categories)
        .collect::<Option<_>>()?;
    Some(Level {
        sensitivity: parse_number(sensitivity, 's')?,
        categories: merge(ranges),
    })
}

/// A category, `c5`, or a range of them, `c1.c3`.
fn parse_categories(text: &str) -> Option<(u32, u32)> {
    let (first, last) = text.split_once('.').unwrap_or((text, text));
    let (first, last) = (parse_number(first, 'c')?, parse_number(last, 'c')?);
    (first <= last).then_some((first, last))
}

/// A number as policies write it: `c5`, not `c05` or `c+5`.
fn parse_number(text: &str, prefix: char) -> Option<u32> {
    let number: u32 = text.strip_prefix(prefix)?.parse().ok()?;
    (text == format!("{prefix}{number}")).then_some(number)
}

fn merge(mut ranges: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(previous) if first <= previous.1.saturating_add(1) => {
                previous.1 = previous.1.max(last);
            }
            _ => merged.push((first, last)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const TYPE: &str = "system_u:object_r:container_file_t";

    fn same(one: &str, other: &str) -> bool {
        let (one, other) = (SelinuxLabel::new(one), SelinuxLabel::new(other));
        let (forward, backward) = (one == other, other == one);
        assert_eq!(forward, backward, "{one} {other}");
        forward
    }

    fn same_level(one: &str, other: &str) -> bool {
        same(&format!("{TYPE}:{one}"), &format!("{TYPE}:{other}"))
    }

    #[test]
    fn spellings_of_one_level_are_equal() {
        for (requested, printed) in [
            ("s0:c26,c5", "s0:c5,c26"),
            ("s0:c3,c2,c1", "s0:c1.c3"),
            ("s0:c1,c2", "s0:c1.c2"),
            ("s0:c1.c3,c2.c5,c6", "s0:c1.c6"),
            ("s0:c7,c7,c3,c7", "s0:c3,c7"),
            ("s0:c0.c1023", "s0:c512.c1023,c0.c511"),
            ("s0-s0", "s0"),
            ("s0:c5,c3-s0:c3,c5", "s0:c3,c5"),
            ("s0-s0:c1023,c0.c1022", "s0-s0:c0.c1023"),
            ("s1:c2,c1-s3:c9,c2,c1", "s1:c1,c2-s3:c1,c2,c9"),
            ("s0:c0.c4294967295,c7", "s0:c0.c4294967295"),
        ] {
            assert!(same_level(requested, printed), "{requested} {printed}");
        }
    }

    #[test]
    fn different_labels_differ() {
        for (one, other) in [
            ("s0:c1,c3", "s0:c1.c3"),
            ("s0:c1,c2", "s0:c1,c3"),
            ("s0:c1,c2", "s0:c1,c2,c3"),
            ("s0:c1,c2", "s0"),
            ("s0:c1", "s1:c1"),
            ("s0:c1", "s0:c11"),
            ("s0-s0:c0.c1023", "s0:c0.c1023"),
            ("s0-s0:c0.c1023", "s0-s0:c0.c1022"),
            ("s0-s1", "s0"),
        ] {
            assert!(!same_level(one, other), "{one} {other}");
        }
        assert!(!same(TYPE, &format!("{TYPE}:s0")));
        for other in ["b:b:c", "a:c:c", "a:b:d"] {
            assert!(!same("a:b:c:s0", &format!("{other}:s0")), "{other}");
        }
    }

    #[test]
    fn other_text_is_equal_to_itself_only() {
        for text in [
            "",
            "unlabeled",
            "a:b",
            "a::c:s0",
            "a:b:c:",
            "a:b:c:s0:",
            "a:b:c:s0:c1,",
            "a:b:c:s0:c3.c1",
            "a:b:c:s0:c1.c2.c3",
            "a:b:c:s0:c+1",
            "a:b:c:s0:c01",
            "a:b:c:s0:c4294967296",
            "a:b:c:s0:SecretTeam",
            "a:b:c:s0-",
            "a:b:c:s0-s0-s0",
            "a:b:c:SystemLow",
        ] {
            assert!(SelinuxLabel::new(text).parsed.is_none(), "{text}");
            assert!(same(text, text));
            assert!(!same(text, "a:b:c:s0:c1"));
        }
        assert!(!same("a:b:c:s0:c2,c01", "a:b:c:s0:c01,c2"));
    }

    #[test]
    fn a_label_is_displayed_as_it_was_written() {
        let text = format!("{TYPE}:s0:c26,c5");
        assert_eq!(SelinuxLabel::new(&text).to_string(), text);
    }

    /// As the kernel prints a set (`mls_sid_to_context`): ascending, with three or more consecutive ones as a range.
    fn canonical(set: &BTreeSet<u32>) -> String {
        let list: Vec<u32> = set.iter().copied().collect();
        let runs = list.chunk_by(|one, next| one + 1 == *next);
        let runs = runs.map(|run| match run {
            [only] => format!("c{only}"),
            [first, last] => format!("c{first},c{last}"),
            [first, .., last] => format!("c{first}.c{last}"),
            [] => unreachable!("a chunk has elements"),
        });
        runs.collect::<Vec<_>>().join(",")
    }

    fn level(categories: &str) -> String {
        let colon = if categories.is_empty() { "" } else { ":" };
        format!("s0{colon}{categories}")
    }

    proptest! {
        #[test]
        fn labels_are_equal_exactly_if_their_sets_are(
            ranges in prop::collection::vec((0u32..40, 0u32..5), 0..8),
            other in prop::collection::btree_set(0u32..40, 0..8),
        ) {
            let spelled = ranges.iter().map(|&(first, more)| match more {
                0 => format!("c{first}"),
                _ => format!("c{first}.c{}", first + more),
            });
            let spelled = level(&spelled.collect::<Vec<_>>().join(","));
            let set: BTreeSet<u32> = ranges
                .iter()
                .flat_map(|&(first, more)| first..=first + more)
                .collect();
            prop_assert!(same_level(&spelled, &level(&canonical(&set))));
            prop_assert_eq!(same_level(&spelled, &level(&canonical(&other))), set == other);
        }

        #[test]
        fn any_text_is_equal_to_itself(text in ".*") {
            prop_assert!(same(&text, &text));
        }
    }
}
