//! The only style of the page, and the policy that permits nothing else.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// System colors, so that the page follows the light or dark scheme of the browser.
pub(super) const STYLE: &str = "
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 1rem auto; max-width: 75rem; padding: 0 1rem;
  background: Canvas; color: CanvasText; }
section { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; margin: 1.5rem 0; }
caption { text-align: left; font-weight: bold; font-size: 1.15rem; padding-bottom: .25rem; }
th, td { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid GrayText;
  overflow-wrap: anywhere; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
strong { text-decoration: underline; }
";

/// `Content-Security-Policy`: no scripts, images, frames or connections; only this style.
pub(super) fn policy() -> String {
    let hash = STANDARD.encode(Sha256::digest(STYLE));
    format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}
