//! Selects the log lines that a failed scenario prints.

/// Maximum number of matching lines.
const MOST: usize = 60;
/// Number of last lines, which are always printed.
const LAST: usize = 12;

/// The lines of a log that contain one of the words, and its last lines.
pub(crate) fn select_lines(text: &str, words: &[String]) -> String {
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
