//! The only style of the page, and the policy that permits nothing else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Short cells stay on one line, messages wrap between words, and a table that is wider than the window scrolls in its
/// own box. Rows after [`super::table::SHOWN`] are hidden until the summary above them is opened.
pub(super) const STYLE: &str = "
:root { color-scheme: light dark; --back: #fff; --text: #1d2227; --muted: #5a646e; --line: #d5dbe1; --link: #0b57a8;
  --bad: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --back: #15191d; --text: #e2e6ea; --muted: #9ca7b2; --line: #38414a; --link: #8ab8f5; --bad: #ff8f85; } }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 1rem auto; max-width: 84rem; padding: 0 1rem;
  background: var(--back); color: var(--text); overflow-wrap: break-word; }
h1 { font-size: 1.5rem; margin: 0; }
h2 { font-size: 1.1rem; margin: 0 0 .25rem; }
a { color: var(--link); }
strong { color: var(--bad); }
header p, .empty, .more, th { color: var(--muted); }
p { margin: .25rem 0; }
section { display: flex; flex-direction: column; margin: 1.5rem 0; }
.box { overflow-x: auto; }
table { border-collapse: collapse; font-size: .875rem; }
th, td { text-align: left; vertical-align: top; white-space: nowrap; padding: .25rem 1rem .25rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
td { max-width: 44ch; overflow: hidden; text-overflow: ellipsis; }
td.prose { white-space: normal; width: 100%; min-width: 20rem; max-width: none; overflow-wrap: anywhere; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
details { order: 1; }
details:not([open]) + .box tr:nth-child(n + 21) { display: none; }
summary { color: var(--link); cursor: pointer; padding: .25rem 0; }
.more { margin-top: -1rem; }
@media (max-width: 40rem) { th, td { padding-right: .5rem; } td.prose { min-width: 14rem; } }
";

/// `Content-Security-Policy`: no scripts, images, frames or connections; only this style.
pub(super) fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}
