//! Holds the house to its plan: who may use whom, which crate is named where, how long a file is.
//!
//! What stands under `#[cfg(test)]` is free: it may bring in the fake world.

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
    let house = layer::House::survey(&Source::of_all_crates());
    report(Source::all().iter().flat_map(|file| house.refused(file)));
}

#[test]
fn these_modules_have_no_import_cycles() {
    let sources = Source::all();
    let modules = [
        "app",
        "base",
        "cli",
        "cluster",
        "csi",
        "disk",
        "http",
        "linux",
        "model",
        "node",
        "ops",
        "telemetry",
    ];
    let files = sources.iter();
    let files = files.filter(|file| modules.contains(&file.module()));
    report(cycle::Imports::between(files).cycles().into_iter());
}

#[test]
fn the_client_and_the_fake_cloud_have_no_import_cycles() {
    for folder in ["crates/ecs/src", "crates/fake-ecs/src"] {
        let sources = Source::under(folder);
        let imports = cycle::Imports::between(sources.iter());
        report(imports.cycles().into_iter());
    }
}

#[test]
fn every_border_crate_is_named_only_at_its_border() {
    report(Source::of_all_crates().iter().flat_map(crates::refused));
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
fn the_client_names_nothing_of_its_callers() {
    let texts = files::texts();
    let own = texts.iter().filter(|text| text.is_below("crates/ecs/src/"));
    report(own.flat_map(|text| text.lines_with(&["CSI", "Kubernetes", "kubelet", "PersistentVolume", "the driver"])));
}

#[test]
fn codes_of_the_cloud_are_judged_in_one_place() {
    let sources = Source::of_all_crates();
    let known = codes::known(&sources);
    assert!(known.len() > 200, "{known:?}");
    report(sources.iter().flat_map(|file| codes::refused(file, &known)));
}

#[test]
fn no_file_is_longer_than_400_lines_without_its_tests() {
    report(Source::of_all_crates().iter().filter_map(files::too_long));
}

#[test]
fn comments_are_as_wide_as_the_code() {
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
fn no_file_names_a_machine_or_leaves_work_undone() {
    report(files::texts().iter().flat_map(files::unfit));
}

fn report(refused: impl Iterator<Item = String>) {
    let refused: Vec<String> = refused.collect();
    assert!(refused.is_empty(), "\n{}\n", refused.join("\n"));
}
