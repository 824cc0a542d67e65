//! Rules of the code: layers, crates that only some modules may use, import cycles, and the size of files.
//!
//! Code under `#[cfg(test)]` is exempt: it may use the fake cloud.

mod codes;
mod crates;
mod cycle;
mod files;
mod layer;
mod source;
mod wire;

use source::Source;

#[test]
fn every_module_uses_only_the_layers_below_it() {
    let layers = layer::Layers::of(&Source::of_all_crates());
    report(Source::all().iter().flat_map(|file| layers.violations(file)));
}

#[test]
fn no_crate_has_import_cycles() {
    for folder in ["src", "crates/ecs/src", "crates/fake-ecs/src"] {
        let sources = Source::under(folder);
        // Roots re-export modules.
        let files = sources
            .iter()
            .filter(|file| folder != "src" || !["lib", "main", "bin"].contains(&file.module()));
        report(cycle::Imports::between(files).cycles().into_iter());
    }
}

#[test]
fn crates_of_interfaces_are_used_only_in_their_modules() {
    report(Source::of_all_crates().iter().flat_map(crates::violations));
}

#[test]
fn the_client_and_the_fake_cloud_depend_on_no_crate_of_this_project() {
    let client = include_str!("../../crates/ecs/Cargo.toml").split("\n[");
    // Its tests and its example use the fake cloud.
    let client = client.filter(|section| section.starts_with("dependencies]"));
    let fake = include_str!("../../crates/fake-ecs/Cargo.toml").split("\n[");
    let fake = fake.filter(|section| section.contains("dependencies]"));
    let sections: Vec<&str> = client.chain(fake).collect();
    assert_eq!(sections.len(), 3, "{sections:?}");
    let lines = sections.into_iter().flat_map(str::lines);
    let is_own = |line: &&str| ["path", "workspace", "git"].iter().any(|word| line.contains(word));
    report(lines.filter(is_own).map(str::to_owned));
}

#[test]
fn the_client_does_not_name_its_callers() {
    let texts = files::texts();
    let own = texts.iter().filter(|text| text.is_below("crates/ecs/src/"));
    report(own.flat_map(|text| text.lines_with(&["CSI", "Kubernetes", "kubelet", "PersistentVolume", "the driver"])));
}

#[test]
fn codes_of_the_cloud_are_classified_in_one_module() {
    let sources = Source::of_all_crates();
    let known = codes::known(&sources);
    assert!(known.len() > 200, "{known:?}");
    report(sources.iter().flat_map(|file| codes::violations(file, &known)));
}

#[test]
fn no_file_is_longer_than_400_lines_without_its_tests() {
    report(Source::of_all_crates().iter().filter_map(files::too_long));
}

#[test]
fn comments_are_not_wider_than_code() {
    assert!(include_str!("../../rustfmt.toml").contains("max_width = 120"));
    report(files::texts().iter().flat_map(files::wide_comments));
}

#[test]
fn the_median_file_is_shorter_than_150_lines() {
    let sources = Source::of_all_crates();
    let median = files::median(sources.iter().map(|file| file.lines).collect());
    assert!(median < 150, "the median file has {median} lines");
}

#[test]
fn no_file_names_a_machine_or_has_unfinished_work() {
    report(files::texts().iter().flat_map(files::forbidden));
}

fn report(violations: impl Iterator<Item = String>) {
    let violations: Vec<String> = violations.collect();
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}
