//! A libFuzzer program with all targets; `FUZZ_TARGET` selects one. See `fuzz/README.md`.

#![no_main]

mod input;
mod oracle;
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::selected()(data));
