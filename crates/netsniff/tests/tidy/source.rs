//! The modules of a crate and the paths that each names, read from its sources.
//!
//! This is a reader of tokens, not a compiler: names that macros make are not seen, and what is behind
//! `#[cfg(test)]` is left out.

use std::collections::BTreeMap;
use std::path::Path;

/// A module in a file of its own.
pub(crate) struct Module {
    /// The folders and names that lead to it, as `flow/tracker`; the root's is empty.
    pub path: String,
    /// The module around it; the root is its own.
    pub parent: usize,
    children: BTreeMap<String, usize>,
    /// Names that `use` brings into the module, each with its path; `*` several times.
    imports: Vec<(String, Vec<String>)>,
    /// Paths that the module names, in `use` or elsewhere.
    paths: Vec<Vec<String>>,
}

/// All modules of a crate.
pub(crate) struct Sources {
    pub modules: Vec<Module>,
}

/// The most re-exports that a name is followed through.
const HOPS: usize = 8;

impl Sources {
    /// Reads the crate whose root is `folder/lib.rs`, and the modules that it declares.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut sources = Self { modules: Vec::new() };
        sources.add(folder, "", 0);
        sources
    }

    fn add(&mut self, folder: &Path, path: &str, parent: usize) -> usize {
        let forms = if path.is_empty() {
            vec![folder.join("lib.rs")]
        } else {
            vec![folder.join(format!("{path}.rs")), folder.join(path).join("mod.rs")]
        };
        let file = forms.iter().find(|form| form.exists());
        let file = file.unwrap_or_else(|| panic!("the module {path} has no file"));
        let text = std::fs::read_to_string(file).unwrap();
        let found = Found::of(&tokens(&text));
        let this = self.modules.len();
        self.modules.push(Module {
            path: path.to_owned(),
            parent,
            children: BTreeMap::new(),
            imports: found.imports,
            paths: found.paths,
        });
        for name in found.modules {
            let inner = format!("{path}/{name}");
            let child = self.add(folder, inner.trim_start_matches('/'), this);
            self.modules[this].children.insert(name, child);
        }
        this
    }

    /// The module that each path of `module` leads to, with the name that it takes there.
    pub(crate) fn targets(&self, module: usize) -> Vec<(usize, String)> {
        let paths = self.modules[module].paths.iter().filter(|path| self.is_own(module, path));
        let target = |path: &Vec<String>| {
            (self.resolve(module, path, HOPS), path.last().cloned().unwrap_or_default())
        };
        paths.map(target).collect()
    }

    /// Whether a path in `module` leads to a module of this crate.
    fn is_own(&self, module: usize, path: &[String]) -> bool {
        ["crate", "super", "self"].contains(&path[0].as_str())
            || self.modules[module].children.contains_key(&path[0])
    }

    /// The module in which the thing stands that `path` means in the module `from`.
    fn resolve(&self, from: usize, path: &[String], hops: usize) -> usize {
        let mut at = from;
        for (index, name) in path.iter().enumerate() {
            let module = &self.modules[at];
            match name.as_str() {
                "crate" => at = 0,
                "self" => {}
                "super" => at = module.parent,
                name => match module.children.get(name) {
                    Some(child) => at = *child,
                    None => return self.imported(at, name, &path[index + 1..], hops),
                },
            }
        }
        at
    }

    /// The module in which the thing stands that has this name in the module `at`.
    fn imported(&self, at: usize, name: &str, rest: &[String], hops: usize) -> usize {
        let named = self.modules[at].imports.iter().find(|(as_name, _)| as_name == name);
        match named {
            Some((_, path)) if hops > 0 && self.is_own(at, path) => {
                let whole: Vec<_> = path.iter().chain(rest).cloned().collect();
                self.resolve(at, &whole, hops - 1)
            }
            _ => at,
        }
    }
}

/// What stands in one file.
#[derive(Default)]
struct Found {
    modules: Vec<String>,
    imports: Vec<(String, Vec<String>)>,
    paths: Vec<Vec<String>>,
}

impl Found {
    fn of(tokens: &[String]) -> Self {
        let mut found = Self::default();
        let mut at = 0;
        while at < tokens.len() {
            let rest = &tokens[at..];
            if starts(rest, &["#", "[", "cfg", "(", "test", ")", "]"]) {
                at += 7 + item(&rest[7..]);
            } else if rest[0] == "mod" && starts(&rest[2..], &[";"]) {
                found.modules.push(rest[1].clone());
                at += 3;
            } else if rest[0] == "use" {
                at += 1 + found.tree(&rest[1..], &[]);
            } else if is_name(&rest[0]) && starts(&rest[1..], &["::"]) {
                let (path, length) = path(rest);
                found.paths.push(path);
                at += length;
            } else {
                at += 1;
            }
        }
        found
    }

    /// Takes a tree of `use` with `before` in front, and returns how many tokens it has.
    fn tree(&mut self, tokens: &[String], before: &[String]) -> usize {
        let (path, mut at) = path(tokens);
        let whole: Vec<_> = before.iter().chain(&path).cloned().collect();
        match tokens.get(at).map(String::as_str) {
            Some("{") => {
                at += 1;
                while at < tokens.len() && tokens[at] != "}" {
                    at += if tokens[at] == "," { 1 } else { self.tree(&tokens[at..], &whole) };
                }
                return at + 1;
            }
            Some("as") => {
                self.import(tokens[at + 1].clone(), whole);
                return at + 2;
            }
            Some("*") => {
                self.import("*".to_owned(), whole);
                return at + 1;
            }
            _ => {}
        }
        let mut whole = whole;
        if whole.len() > 1 && whole.last().is_some_and(|last| last == "self") {
            whole.pop();
        }
        if let Some(name) = whole.last().cloned() {
            self.import(name, whole);
        }
        at.max(1)
    }

    fn import(&mut self, name: String, path: Vec<String>) {
        if !path.is_empty() {
            self.paths.push(path.clone());
            self.imports.push((name, path));
        }
    }
}

/// The names of a path from its beginning, and how many tokens it has with a `::` behind.
fn path(tokens: &[String]) -> (Vec<String>, usize) {
    let (mut names, mut at) = (Vec::new(), 0);
    while at < tokens.len() && is_name(&tokens[at]) && tokens[at] != "as" {
        names.push(tokens[at].clone());
        at += 1;
        if !starts(&tokens[at..], &["::"]) {
            break;
        }
        at += 1;
    }
    (names, at)
}

/// How many tokens an item has: up to its `;`, or to the end of its braces.
fn item(tokens: &[String]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 && (token == ";" || token == "}") {
            return at + 1;
        }
    }
    tokens.len()
}

fn starts(tokens: &[String], with: &[&str]) -> bool {
    tokens.len() >= with.len() && tokens.iter().zip(with).all(|(token, with)| token == with)
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Names, `::` and single signs, without comments and literals.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            quoted(rest)
        } else if let Some(length) = raw(rest) {
            length
        } else if first == '\'' {
            character(rest)
        } else if first.is_alphanumeric() || first == '_' {
            let length =
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            found.push(rest[..length].to_owned());
            length
        } else if rest.starts_with("::") {
            found.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                found.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    found
}

/// The length of a string in quotation marks.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// The length of a raw string, if `text` begins with one.
fn raw(text: &str) -> Option<usize> {
    let signs = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = signs.len() - signs.trim_start_matches('#').len();
    signs[hashes..].starts_with('"').then_some(())?;
    let end = format!("\"{}", "#".repeat(hashes));
    let begin = text.len() - signs.len() + hashes + 1;
    Some(text[begin..].find(&end).map_or(text.len(), |at| begin + at + end.len()))
}

/// The length of a character, or of the mark of a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => text[3..].find('\'').map_or(text.len(), |at| at + 4),
        Some((at, c)) if text[at + c.len_utf8()..].starts_with('\'') => at + c.len_utf8() + 1,
        _ => 1,
    }
}

#[test]
fn literals_and_comments_name_nothing() {
    let text = "a /* b */ // c\n \"d\\\"e\" 'f' '\\'' 'g: r#\"h\"i\"# b\"j\" k::l";
    assert_eq!(tokens(text), ["a", "g", ":", "b", "k", "::", "l"]);
}

#[test]
fn paths_are_found_in_all_their_forms() {
    let text = "pub mod a; mod b { } #[cfg(test)] mod tests; #[cfg(test)] mod t { use x::y; }
        use crate::{c::{self, D as E}, f::*}; pub(crate) use super::g; fn h() { self::i::j(k) }";
    let found = Found::of(&tokens(text));
    assert_eq!(found.modules, ["a"]);
    let joined: Vec<_> = found.paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(joined, ["crate::c", "crate::c::D", "crate::f", "super::g", "self::i::j"]);
    let names: Vec<_> = found.imports.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["c", "E", "*", "g"]);
}
