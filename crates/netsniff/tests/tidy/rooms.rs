//! Folders of a crate are small and form no circle, and what a command needs does not know the commands.
//!
//! The test compares files and folders that lie side by side. A folder's `mod.rs` stands for the folder, so it
//! may share names with the files in it; and files of one folder may need each other.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Sources;
use super::{check, root, rust_files};

/// Arrows from module to module, with the names that are taken.
type Arrows = BTreeMap<(String, String), BTreeSet<String>>;

fn arrows(krate: &str) -> Arrows {
    let sources = Sources::read(&root().join("crates").join(krate).join("src"));
    let mut arrows = Arrows::new();
    for (from, module) in sources.modules.iter().enumerate() {
        for (to, name) in sources.targets(from) {
            if to != from {
                let to = sources.modules[to].path.clone();
                arrows.entry((module.path.clone(), to)).or_default().insert(name);
            }
        }
    }
    arrows
}

/// Crates with a library.
fn crates() -> Vec<String> {
    let mut found: Vec<_> = std::fs::read_dir(root().join("crates"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().join("src/lib.rs").exists())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    found.sort();
    found
}

/// The folder that both modules lie in, and what lies there and has each. None where one has the other.
fn parted<'m>(from: &'m str, to: &'m str) -> Option<(&'m str, &'m str, &'m str)> {
    let mut at = 0;
    loop {
        let next = |module: &'m str| module[at..].split('/').next().unwrap_or_default();
        let (of, into) = (next(from), next(to));
        if of.is_empty() || into.is_empty() {
            return None;
        }
        if of != into {
            return Some((&from[..at], of, into));
        }
        at = (at + of.len() + 1).min(from.len()).min(to.len());
    }
}

/// What lies side by side and reaches itself over others, with at least one folder in it.
fn circles(arrows: &Arrows) -> BTreeSet<(String, Vec<String>)> {
    let mut folders: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    let mut inner = BTreeSet::new();
    for (from, to) in arrows.keys() {
        if let Some((folder, of, into)) = parted(from, to) {
            folders.entry(folder).or_default().entry(of).or_default().insert(into);
            for (module, part) in [(from, of), (to, into)] {
                if module.len() > folder.len() + part.len() {
                    inner.insert((folder, part));
                }
            }
        }
    }
    let mut found = BTreeSet::new();
    for (folder, graph) in &folders {
        let reached: BTreeMap<_, _> =
            graph.keys().map(|from| (*from, reach(graph, from))).collect();
        for (from, there) in &reached {
            let returns = |to: &&&str| reached.get(*to).is_some_and(|back| back.contains(from));
            let circle: Vec<&str> = there.iter().filter(returns).copied().collect();
            if circle.len() > 1 && circle.iter().any(|part| inner.contains(&(*folder, *part))) {
                let circle = circle.into_iter().map(str::to_owned).collect();
                found.insert(((*folder).trim_end_matches('/').to_owned(), circle));
            }
        }
    }
    found
}

/// Everything that arrows lead to from one, near or far.
fn reach<'g>(graph: &BTreeMap<&str, BTreeSet<&'g str>>, from: &str) -> BTreeSet<&'g str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![from];
    while let Some(next) = open.pop() {
        for to in graph.get(next).into_iter().flatten() {
            if reached.insert(*to) {
                open.push(to);
            }
        }
    }
    reached
}

/// The arrows inside of a circle, in words.
fn arrows_inside(arrows: &Arrows, folder: &str, circle: &[String]) -> String {
    let mut inside_it = String::new();
    for ((from, to), names) in arrows {
        let Some((at, of, into)) = parted(from, to) else { continue };
        let inside = |name: &str| circle.iter().any(|member| member == name);
        if at.trim_end_matches('/') == folder && inside(of) && inside(into) {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            inside_it += &format!("\n    {from} -> {to}: {}", names.join(", "));
        }
    }
    inside_it
}

#[test]
fn folders_form_no_circle() {
    let mut complaints = Vec::new();
    for krate in crates() {
        let arrows = arrows(&krate);
        for (folder, circle) in circles(&arrows) {
            let inside = arrows_inside(&arrows, &folder, &circle);
            complaints.push(format!("crates/{krate}/{folder} has the circle {circle:?}:{inside}"));
        }
    }
    check(&complaints);
}

fn is_command(module: &str) -> bool {
    module.split('/').next() == Some("commands")
}

#[test]
fn only_commands_import_commands() {
    let mut complaints = Vec::new();
    for krate in crates() {
        let upward = arrows(&krate)
            .into_keys()
            .filter(|(from, to)| is_command(to) && !is_command(from) && from != "cli");
        for (from, to) in upward {
            complaints.push(format!("crates/{krate}/{from} imports {to}, a command above it"));
        }
    }
    check(&complaints);
}

/// Files of one folder at most, its `mod.rs` not counted.
const MOST_FILES: usize = 13;

/// Folders whose files are all of one level, and what each of them is.
const OF_ONE_LEVEL: &[(&str, &str)] = &[
    ("crates/packet/src/wire", "the header of one protocol"),
    ("crates/capture/src/sys", "calls of the system for one purpose"),
];

#[test]
fn folders_hold_about_a_dozen_files() {
    let mut held: BTreeMap<String, usize> = BTreeMap::new();
    for file in rust_files().iter().filter(|file| file.contains("/src/")) {
        let (folder, name) = file.rsplit_once('/').unwrap_or_default();
        let stands_for_folder = ["mod.rs", "lib.rs", "main.rs", "tests.rs"].contains(&name);
        *held.entry(folder.to_owned()).or_default() += usize::from(!stands_for_folder);
    }
    let is_of_one_level = |folder: &str| OF_ONE_LEVEL.iter().any(|(known, _)| *known == folder);
    let mut complaints = Vec::new();
    for (folder, files) in &held {
        if *files > MOST_FILES && !is_of_one_level(folder) {
            complaints.push(format!(
                "{folder} holds {files} files, {MOST_FILES} are the most: give what belongs together a folder"
            ));
        }
    }
    for (folder, what) in OF_ONE_LEVEL {
        if held.get(*folder).is_none_or(|files| *files <= MOST_FILES) {
            complaints.push(format!(
                "{folder} (each file: {what}) needs no place in OF_ONE_LEVEL of tests/tidy/rooms.rs"
            ));
        }
    }
    check(&complaints);
}

#[test]
fn circles_are_found_at_every_level() {
    let arrows = |pairs: &[(&str, &str)]| -> Arrows {
        let arrow = |(from, to): &(&str, &str)| ((*from).to_owned(), (*to).to_owned());
        pairs.iter().map(|pair| (arrow(pair), BTreeSet::new())).collect()
    };
    // Over a third room, and inside of a folder.
    let found = circles(&arrows(&[
        ("a/b/x", "a/c/y"),
        ("a/c/z", "a/d"),
        ("a/d", "a/b"),
        ("a/b/x", "e"),
        ("a/bc", "a/b/x"),
    ]));
    let circle = ["b", "c", "d"].map(str::to_owned).to_vec();
    assert_eq!(found, BTreeSet::from([("a".to_owned(), circle)]));
    // A folder and its own files; files of one folder; the root.
    let none = arrows(&[
        ("a", "a/b"),
        ("a/b", "a"),
        ("a/b", "a/c"),
        ("a/c", "a/b"),
        ("a/b", ""),
        ("", "a/b"),
    ]);
    assert_eq!(circles(&none), BTreeSet::new());
}

#[test]
fn re_exports_are_followed_to_where_a_thing_stands() {
    let arrows = arrows("packet");
    assert!(arrows.len() > 100, "{}", arrows.len());
    // `use crate::{LinkType, Packet}`, which the root takes from two modules.
    for to in ["link_type", "packet"] {
        let arrow = ("filter".to_owned(), to.to_owned());
        assert!(arrows.contains_key(&arrow), "no arrow from filter to {to}");
    }
}
