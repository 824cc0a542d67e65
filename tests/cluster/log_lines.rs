//! Selects the log lines that a failed scenario prints.

/// Maximum number of matching lines.
const MAX_LINES: usize = 60;
/// Number of last lines, which are always printed.
const LAST_LINES: usize = 12;

/// The lines of a log that contain one of the words, and its last lines.
pub(crate) fn select_lines(text: &str, words: &[String]) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let (before, last) = lines.split_at(lines.len().saturating_sub(LAST_LINES));
    let matching = before
        .iter()
        .filter(|line| words.iter().any(|word| line.contains(word)));
    let matching: Vec<&str> = matching.copied().collect();
    let cut = matching.len().saturating_sub(MAX_LINES);
    let shown = matching[cut..].iter().chain(last);
    shown.map(|line| format!("  {line}\n")).collect()
}
