//! The map is true: what ARCHITECTURE.md and CONTRIBUTING.md promise of the tree holds.

mod rooms;
mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Which crates of ours each crate may use: a star, arrows only downwards.
const ARROWS: &[(&str, &[&str])] = &[
    ("packet", &[]),
    // For tests alone: no crate has it among its dependencies.
    ("testing", &["packet", "pcapfile", "traffic"]),
    ("pcapfile", &["packet"]),
    ("analysis", &["packet"]),
    ("traffic", &["packet"]),
    ("ipfix", &["packet"]),
    ("capture", &["packet"]),
    ("lab", &["packet", "pcapfile", "analysis", "traffic", "capture", "console", "doctor"]),
    ("desk", &["packet", "pcapfile", "analysis", "console", "output"]),
    ("console", &["packet"]),
    ("doctor", &["packet", "capture", "console"]),
    ("output", &["packet", "pcapfile", "analysis", "console"]),
    ("delivery", &["packet", "analysis", "ipfix", "console", "output"]),
    (
        "pipeline",
        &["packet", "pcapfile", "analysis", "traffic", "ipfix", "capture", "console", "output"],
    ),
    (
        "netsniff",
        &[
            "packet", "pcapfile", "analysis", "traffic", "ipfix", "capture", "console", "output",
            "delivery", "pipeline", "doctor", "lab", "desk",
        ],
    ),
];

/// Crates without clock, I/O and printing, which their `clippy.toml` forbids.
const SANS_IO: &[&str] = &["packet", "analysis", "traffic", "ipfix"];

/// The crate that may contain unsafe code, and where in it.
const WITH_UNSAFE: &str = "capture";
const UNSAFE_FOLDER: &str = "crates/capture/src/sys/";

/// Lines of a file up to its tests.
const FILE_BUDGET: usize = 500;

/// Files over the budget, with the lines that they may have and the reason. A file that has come
/// back under the budget must leave.
const OVER_BUDGET: &[(&str, usize, &str)] = &[];

/// The root of the project, or of the tree that `NETSNIFF_TREE` names, for comparisons with another revision.
fn root() -> PathBuf {
    if let Some(tree) = std::env::var_os("NETSNIFF_TREE") {
        return tree.into();
    }
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every file of the project that git would keep, relative to the root, in order.
fn files() -> Vec<String> {
    const LEFT_OUT: &[&str] = &[
        ".git",
        "target",
        "logs",
        "fuzz/target",
        "fuzz/corpus",
        "fuzz/artifacts",
        "fuzz/logs",
        "python/target",
    ];
    fn walk(root: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if LEFT_OUT.contains(&name.as_str()) {
                continue;
            }
            if path.is_dir() {
                walk(root, &path, found);
            } else {
                found.push(name);
            }
        }
    }
    let root = root();
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.sort();
    assert!(found.len() > 100, "the project was not found at {}", root.display());
    found
}

fn rust_files() -> Vec<String> {
    files().into_iter().filter(|file| file.ends_with(".rs")).collect()
}

fn text(file: &str) -> String {
    let bytes = fs::read(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Fails with all sentences at once.
fn check(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// The crates of ours that a manifest names in `[dependencies]` and the like, `dev` or not.
fn own_dependencies(manifest: &str, dev: bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut wanted = false;
    for line in manifest.lines() {
        let line = line.trim();
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            wanted = section.contains("dependencies") && section.contains("dev-") == dev;
            if let Some((_, name)) = section.rsplit_once("dependencies.")
                && wanted
                && let Some(name) = own_name(name)
            {
                found.insert(name);
            }
            continue;
        }
        let name = line.split(['=', '.', ' ']).next().unwrap_or_default();
        if wanted && let Some(name) = own_name(name) {
            found.insert(name);
        }
    }
    found
}

fn own_name(package: &str) -> Option<String> {
    let name = package.trim().trim_matches('"');
    if name == "netsniff" {
        return Some(name.to_owned());
    }
    name.strip_prefix("netsniff-").map(str::to_owned)
}

#[test]
fn crates_use_only_what_is_below_them() {
    let mut complaints = Vec::new();
    let mut crates = 0;
    for file in files() {
        let Some(name) = file.strip_prefix("crates/").and_then(|f| f.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        crates += 1;
        let Some((_, allowed)) = ARROWS.iter().find(|(of, _)| *of == name) else {
            complaints.push(format!("{file}: the crate {name} is not on the map"));
            continue;
        };
        for used in own_dependencies(&text(&file), false) {
            if !allowed.contains(&used.as_str()) {
                complaints.push(format!("{file}: {name} may not use {used}"));
            }
        }
        // Tests of the middle may use each other, but nobody's tests need what is above.
        for used in own_dependencies(&text(&file), true) {
            if ["netsniff", "lab"].contains(&used.as_str()) && name != "netsniff" {
                complaints.push(format!("{file}: the tests of {name} may not use {used}"));
            }
        }
    }
    assert!(crates >= 5);
    check(&complaints);
}

#[test]
fn manifests_are_read_in_all_their_forms() {
    let manifest = "[dependencies]\nnetsniff-packet = { workspace = true }\nclap = \"4\"\n\
        netsniff-traffic.workspace = true\n[dev-dependencies]\nnetsniff-lab = { path = \"x\" }\n\
        [target.'cfg(unix)'.dependencies]\nnetsniff-capture = \"1\"\n\
        [dependencies.netsniff-pcapfile]\npath = \"y\"\n[features]\nnetsniff-none = []\n";
    let found: Vec<_> = own_dependencies(manifest, false).into_iter().collect();
    assert_eq!(found, ["capture", "packet", "pcapfile", "traffic"]);
    let found: Vec<_> = own_dependencies(manifest, true).into_iter().collect();
    assert_eq!(found, ["lab"]);
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let mut complaints = Vec::new();
    for (name, _) in ARROWS {
        let file = format!("crates/{name}/Cargo.toml");
        if !root().join(&file).exists() {
            continue;
        }
        let manifest = text(&file);
        if *name == WITH_UNSAFE {
            // A manifest cannot change one lint of the workspace's: it repeats the others.
            for (kind, level) in [("rust", "deny"), ("clippy", "")] {
                let level = format!("unsafe_code = \"{level}\"");
                let wanted = section(&text("Cargo.toml"), &format!("[workspace.lints.{kind}]"));
                let wanted = wanted.replace("unsafe_code = \"forbid\"", &level);
                if !section(&manifest, &format!("[lints.{kind}]")).starts_with(&wanted) {
                    complaints.push(format!("{file} has other lints for {kind} than Cargo.toml"));
                }
            }
            if !manifest.contains("undocumented_unsafe_blocks = \"deny\"") {
                complaints.push(format!("{file} lets unsafe code be without its argument"));
            }
        } else if !manifest.contains("[lints]\nworkspace = true") {
            complaints.push(format!("{file} lacks `[lints] workspace = true`"));
        }
    }
    if !text("Cargo.toml").contains("unsafe_code = \"forbid\"") {
        complaints.push("Cargo.toml does not forbid unsafe code".to_owned());
    }
    check(&complaints);
}

/// The lines of a manifest from a heading to the next empty line.
fn section(manifest: &str, heading: &str) -> String {
    let rest = manifest.split_once(heading).map(|(_, rest)| rest).unwrap_or_default();
    rest.trim_start().lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn crates_without_io_are_watched() {
    let watched = text(&format!("crates/{}/clippy.toml", SANS_IO[0]));
    for word in ["Instant::now", "fs::File", "std::println", "thread::spawn", "env::var_os"] {
        assert!(watched.contains(word), "clippy.toml says nothing of {word}");
    }
    for name in SANS_IO {
        let file = format!("crates/{name}/clippy.toml");
        assert!(text(&file) == watched, "{file} differs from that of {}", SANS_IO[0]);
    }
}

#[test]
fn every_file_says_what_it_is() {
    let mut complaints = Vec::new();
    for file in rust_files() {
        if !text(&file).starts_with("//! ") {
            complaints.push(format!("{file} does not begin with a `//!` line"));
        }
    }
    check(&complaints);
}

#[test]
fn files_stay_within_their_budget() {
    let mut complaints = Vec::new();
    for file in rust_files().iter().filter(|file| file.contains("/src/")) {
        if file.ends_with("/tests.rs") || file.contains("/tests/") {
            continue;
        }
        let lines = text(file).lines().take_while(|line| *line != "#[cfg(test)]").count();
        let exception = OVER_BUDGET.iter().find(|(name, ..)| name == file);
        match exception {
            None if lines > FILE_BUDGET => complaints.push(format!(
                "{file} has {lines} lines before its tests, {FILE_BUDGET} are the most: split it"
            )),
            Some((_, most, _)) if lines > *most => {
                complaints.push(format!("{file} has grown to {lines} lines: split it"));
            }
            Some(_) if lines <= FILE_BUDGET => complaints.push(format!(
                "{file} is within the budget: strike it off OVER_BUDGET in tests/tidy/main.rs"
            )),
            _ => {}
        }
    }
    for (file, ..) in OVER_BUDGET {
        if !root().join(file).exists() {
            complaints.push(format!("{file} in OVER_BUDGET in tests/tidy/main.rs does not exist"));
        }
    }
    check(&complaints);
}

#[test]
fn nothing_is_unsafe_unfinished_or_ignored() {
    // In pieces, since this file is looked at too.
    let forbidden = [
        [" uns", "afe {"].concat(),
        ["uns", "afe fn "].concat(),
        ["uns", "afe impl "].concat(),
        ["allow(uns", "afe_code"].concat(),
        ["to", "do!("].concat(),
        ["unimple", "mented!("].concat(),
        ["#[ign", "ore"].concat(),
        ["TO", "DO"].concat(),
        ["FIX", "ME"].concat(),
    ];
    let mut complaints = Vec::new();
    for file in rust_files() {
        let forbidden = forbidden.iter().skip(if file.starts_with(UNSAFE_FOLDER) { 4 } else { 0 });
        for (number, line) in (1..).zip(text(&file).lines()) {
            for word in forbidden.clone().filter(|word| line.contains(word.as_str())) {
                complaints.push(format!("{file}:{number} says `{}`", word.trim()));
            }
        }
    }
    check(&complaints);
}

/// A line that the harness swallows is read by nobody, and one that is made by hand is not required.
#[test]
fn tests_are_skipped_by_the_one_who_counts() {
    let word = ["SKIP", "PED"].concat();
    let mut complaints = Vec::new();
    for file in rust_files().iter().filter(|file| !file.starts_with("crates/testing/")) {
        for (number, _) in (1..).zip(text(file).lines()).filter(|(_, line)| line.contains(&word)) {
            complaints.push(format!("{file}:{number} says `{word}`: use netsniff_testing::skip"));
        }
    }
    check(&complaints);
}

#[test]
fn every_file_belongs_to_a_module() {
    let mut complaints = Vec::new();
    for file in rust_files() {
        let Some((krate, inner)) = file.split_once("/src/") else { continue };
        if !krate.starts_with("crates/") || ["lib.rs", "main.rs"].contains(&inner) {
            continue;
        }
        let module = inner.strip_suffix("/mod.rs").or(inner.strip_suffix(".rs")).unwrap();
        let (parents, stem) = match module.rsplit_once('/') {
            Some((folder, stem)) => ([format!("{folder}/mod.rs"), format!("{folder}.rs")], stem),
            None => (["lib.rs".to_owned(), "main.rs".to_owned()], module),
        };
        let declared = parents.iter().any(|parent| {
            let parent = format!("{krate}/src/{parent}");
            root().join(&parent).exists() && declares(&text(&parent), stem)
        });
        if !declared {
            complaints.push(format!("{file} is compiled by nobody: no `mod {stem};` above it"));
        }
    }
    check(&complaints);
}

/// A module with files of its own is the `mod.rs` of their folder, its tests the `tests.rs` there. Tests may say where a
/// module is: they share some with fuzz targets.
#[test]
fn modules_have_one_style() {
    let attribute = ["#[pa", "th ="].concat();
    let mut complaints = Vec::new();
    for file in rust_files() {
        if !file.contains("/tests/") && text(&file).contains(&attribute) {
            complaints
                .push(format!("{file} says where a module is: put it where it is looked for"));
        }
        let folder = file.strip_suffix(".rs").unwrap();
        if file.contains("/src/") && root().join(folder).is_dir() {
            complaints.push(format!("{file} lies beside its folder: make it {folder}/mod.rs"));
        }
    }
    check(&complaints);
}

/// Whether a source has a line such as `pub mod stem;`.
fn declares(source: &str, stem: &str) -> bool {
    let end = format!("mod {stem};");
    source.lines().any(|line| {
        let before = line.trim().strip_suffix(&end);
        before.is_some_and(|before| before.is_empty() || before.ends_with(' '))
    })
}

#[test]
fn every_protocol_is_in_the_list() {
    let folder = "crates/analysis/src/protocol";
    let list = text(&format!("{folder}/list.rs"));
    let begin = list.find("pub const PROTOCOLS").expect("the list PROTOCOLS in protocol/list.rs");
    let entries = &list[begin..begin + list[begin..].find("];").unwrap()];
    let (mut complaints, mut protocols) = (Vec::new(), 0);
    for file in rust_files().iter().filter(|file| file.starts_with(folder)) {
        let source = text(file);
        let made = source.lines().filter_map(|line| line.strip_prefix("impl Protocol for "));
        for name in made.filter_map(|rest| rest.split(' ').next()) {
            let inner = &file[folder.len() + 1..];
            let stem = inner.split(['/', '.']).next().unwrap();
            protocols += 1;
            if !entries.contains(&format!("&super::{stem}::{name},")) {
                complaints.push(format!(
                    "{name} of protocol/{inner} is not in the list PROTOCOLS in protocol/list.rs"
                ));
            }
        }
    }
    check(&complaints);
    assert_eq!(protocols, entries.matches("&super::").count(), "an entry of PROTOCOLS has no file");
}

#[test]
fn the_recipe_for_protocols_tells_all_of_the_interface() {
    let source = text("crates/analysis/src/protocol/mod.rs")
        + &text("crates/analysis/src/protocol/session/mod.rs");
    let page = text("docs/add-a-protocol.md");
    let body = |begin: &str| {
        let at = source.find(begin).unwrap_or_else(|| panic!("{begin} in protocol/"));
        source[at..].split("\n}").next().unwrap().lines().skip(1).collect::<Vec<_>>()
    };
    let name = |rest: &str| {
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned)
    };
    let methods = body("pub trait Protocol");
    let methods = methods.iter().filter_map(|line| name(line.trim().strip_prefix("fn ")?));
    let verdicts = body("pub enum DatagramVerdict");
    let verdicts = verdicts.iter().filter_map(|line| name(line.strip_prefix("    ")?));
    let answers = body("pub enum Progress");
    let answers = answers.iter().filter_map(|line| name(line.strip_prefix("    ")?));
    let names: Vec<String> =
        methods.chain(verdicts).chain(answers).filter(|name| name.len() > 2).collect();
    assert!(names.len() >= 6, "{names:?}");
    let mut complaints = Vec::new();
    for name in names {
        let used = page.contains(&format!("fn {name}("))
            || page.contains(&format!("`{name}`"))
            || page.contains(&format!("`{name}("))
            || page.contains(&format!("DatagramVerdict::{name}"));
        if !used {
            complaints.push(format!("docs/add-a-protocol.md says nothing of `{name}`"));
        }
    }
    check(&complaints);
}

#[test]
fn every_fuzz_target_is_built() {
    let manifest = text("fuzz/Cargo.toml");
    let (mut complaints, mut targets) = (Vec::new(), 0);
    for file in files() {
        let Some(path) = file.strip_prefix("fuzz/").filter(|f| f.starts_with("fuzz_targets/"))
        else {
            continue;
        };
        targets += 1;
        if !manifest.contains(&format!("path = \"{path}\"")) {
            complaints.push(format!("{file} has no [[bin]] in fuzz/Cargo.toml"));
        }
    }
    check(&complaints);
    let bins = manifest.lines().filter(|line| line.starts_with("path = \"fuzz_targets/")).count();
    assert_eq!(targets, bins, "a [[bin]] in fuzz/Cargo.toml has no file");
}

#[test]
fn the_readme_gives_the_commands_that_are_checked() {
    let (readme, script) = (text("README.md"), text(".ci/run"));
    let commands: Vec<&str> = readme
        .split("```")
        .skip(1)
        .step_by(2)
        .map(str::trim)
        .filter(|block| block.starts_with("cargo run") || block.starts_with("cargo test"))
        .collect();
    assert_eq!(commands.len(), 2, "the README has two commands, not {commands:?}");
    for command in commands {
        let run = script.lines().any(|line| {
            let rest = line.trim().strip_prefix(command);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" 2>&1 |"))
        });
        assert!(run, ".ci/run does not run the README's `{command}`");
    }
}

#[test]
fn no_path_of_a_machine_is_left() {
    let forbidden =
        [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"], ["/Us", "ers/"]].map(|s| s.concat());
    const TEXT: &[&str] = &["rs", "md", "toml", "sh", "py", "txt", "tsv", "json", "run"];
    let mut complaints = Vec::new();
    for file in files() {
        let kind = file.rsplit(['.', '/']).next().unwrap();
        if !TEXT.contains(&kind) {
            continue;
        }
        for (number, line) in (1..).zip(text(&file).lines()) {
            for path in forbidden.iter().filter(|path| line.contains(path.as_str())) {
                complaints.push(format!("{file}:{number} names `{path}` of some machine"));
            }
        }
    }
    check(&complaints);
}

#[test]
fn links_lead_somewhere_and_every_page_is_linked() {
    let mut complaints = Vec::new();
    let mut linked = BTreeSet::new();
    for file in files().iter().filter(|file| file.ends_with(".md")) {
        let folder = root().join(Path::new(file).parent().unwrap());
        for target in links(&text(file)) {
            let target = target.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            match folder.join(target).canonicalize() {
                Ok(path) if file == "docs/README.md" => {
                    linked.insert(path);
                }
                Ok(_) => {}
                Err(_) => complaints.push(format!("{file} links to {target}, which is not there")),
            }
        }
    }
    for file in files() {
        let is_page = file.starts_with("docs/") && file.ends_with(".md");
        // Reports that scripts write are linked by their folder.
        let path = root().join(&file);
        let linked = linked.contains(&path) || linked.contains(path.parent().unwrap());
        if is_page && file != "docs/README.md" && !linked {
            complaints.push(format!("{file} is not linked from docs/README.md"));
        }
    }
    check(&complaints);
}

/// The targets of the links of a Markdown page, but not what looks like one in its code.
fn links(page: &str) -> Vec<&str> {
    let prose = page.split("```").step_by(2);
    let ends = prose.flat_map(|part| part.split("](").skip(1));
    ends.filter_map(|rest| rest.split_once(')')).map(|(to, _)| to).collect()
}
