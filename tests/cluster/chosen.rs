//! What of a log is shown when a scenario has failed.

/// At most so many lines of interest.
const MOST: usize = 60;
/// So many of the last lines, whatever is in them.
const LAST: usize = 12;

/// The lines of a log that have one of the words, and its last ones.
pub(crate) fn chosen(text: &str, words: &[String]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(LAST));
    let of_interest = before
        .iter()
        .filter(|line| words.iter().any(|word| line.contains(word)));
    let of_interest: Vec<&str> = of_interest.copied().collect();
    let cut = of_interest.len().saturating_sub(MOST);
    let shown = of_interest[cut..].iter().chain(last);
    shown.map(|line| format!("  {line}\n")).collect()
}
