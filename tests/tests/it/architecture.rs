//! The direction of dependencies, read from `cargo metadata`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use serde_json::Value;

/// For each package its normal and build dependencies, all features on.
fn graph() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let about = String::from_utf8(rustc.stdout).unwrap();
    let host = about.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--all-features", "--filter-platform", host])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: BTreeMap<&str, &str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (package["id"].as_str().unwrap(), package["name"].as_str().unwrap()))
        .collect();
    let mut graph = BTreeMap::new();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let normal = node["deps"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|dep| dep["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"] != "dev"));
        let normal = normal.map(|dep| names[dep["pkg"].as_str().unwrap()].to_owned()).collect();
        graph.insert(names[node["id"].as_str().unwrap()].to_owned(), normal);
    }
    graph
}

fn reachable<'a>(graph: &'a BTreeMap<String, BTreeSet<String>>, from: &'a str) -> BTreeSet<&'a str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(name) = open.pop() {
        for next in graph.get(name).into_iter().flatten() {
            if seen.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    seen
}

#[test]
fn dependencies_point_down() {
    let graph = graph();
    let below: &[(&str, &[&str])] = &[
        ("animaworks-core", &[]),
        ("animaworks-memory", &["animaworks-core"]),
        ("animaworks-exec", &["animaworks-core"]),
        ("animaworks-tools", &["animaworks-core"]),
        ("animaworks-server", &["animaworks-core", "animaworks-exec", "animaworks-memory", "animaworks-tools"]),
    ];
    for (name, allowed) in below {
        let ours: BTreeSet<&str> =
            reachable(&graph, name).into_iter().filter(|name| name.starts_with("animaworks-")).collect();
        assert_eq!(ours, allowed.iter().copied().collect(), "{name}");
    }
    let core = reachable(&graph, "animaworks-core");
    for heavy in ["axum", "reqwest", "hyper", "sqlx", "candle-core", "clap", "tokenizers", "rustls"] {
        assert!(!core.contains(heavy), "core pulls {heavy}");
    }
    println!("animaworks-core stands on {} crates", core.len());
}
