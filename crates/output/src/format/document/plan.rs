//! The order in which the values of a log stand in its documents, made once for each log.

use core::ops::Deref;
use core::ptr;
use std::sync::LazyLock;

use netsniff_analysis::record::{FieldInfo, LogType, Proto};
use netsniff_analysis::rows::LOGS;

use super::dialect::{Derived, Dialect, Form, Told};
use super::row::Values;
use super::write::Inputs;

/// The plans of a dialect for all logs.
#[derive(Debug)]
pub(in crate::format) struct Plans {
    dialect: &'static Dialect,
    /// By the addresses of the logs.
    known: LazyLock<Known, fn() -> Known>,
}

/// Plans with the addresses of their logs, in order.
pub(in crate::format) type Known = Vec<(usize, Plan)>;

/// The plan of a log.
#[derive(Debug)]
pub(in crate::format) struct Plan {
    zone: &'static [u8],
    /// The column that names the transport protocol.
    proto: Option<u16>,
    /// How each column is written.
    forms: Vec<Form>,
    /// The members of a document.
    pub(super) members: Vec<Member>,
    /// The same of a connection of ICMP.
    pub(super) icmp: Vec<Member>,
}

/// A member of an object, with its name, quotes and colon.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) key: Box<[u8]>,
    pub(super) what: What,
}

/// What a member has.
#[derive(Debug)]
pub(super) enum What {
    Column(u16),
    /// JSON that is always the same.
    Constant(Box<[u8]>),
    /// The time at which the row was written.
    Written,
    Derived(Vec<Option<u16>>, fn(&Inputs<'_>, &mut Vec<u8>)),
    Object(Vec<Member>),
    /// Objects of the values of these columns, one behind the other.
    Items(Vec<(Box<[u8]>, u16)>),
}

/// A plan that is kept, or was made for this call.
pub(super) enum Found {
    Known(&'static Plan),
    Made(Box<Plan>),
}

impl Deref for Found {
    type Target = Plan;

    #[inline]
    fn deref(&self) -> &Plan {
        match self {
            Self::Known(plan) => plan,
            Self::Made(plan) => plan,
        }
    }
}

impl Plans {
    /// Those of a dialect; `make` is [`Self::made`] of it.
    pub(in crate::format) const fn new(dialect: &'static Dialect, make: fn() -> Known) -> Self {
        Self { dialect, known: LazyLock::new(make) }
    }

    /// The plans of all logs.
    pub(in crate::format) fn made(dialect: &'static Dialect) -> Known {
        let plan = |&log: &&'static LogType| (address(log), Plan::new(dialect, log));
        let mut plans: Vec<_> = LOGS.iter().map(plan).collect();
        plans.sort_by_key(|&(address, _)| address);
        plans
    }

    /// The path of each column of a log; `None` where something that follows from it tells it.
    pub(in crate::format) fn paths(&self, log: &'static LogType) -> Vec<Option<String>> {
        paths(self.dialect, log, false)
    }

    #[inline]
    pub(super) fn of(&'static self, log: &'static LogType) -> Found {
        let at = self.known.binary_search_by_key(&address(log), |&(address, _)| address);
        match at.ok().and_then(|at| self.known.get(at)) {
            Some((_, plan)) => Found::Known(plan),
            None => Found::Made(Box::new(Plan::new(self.dialect, log))),
        }
    }
}

fn address(log: &LogType) -> usize {
    ptr::from_ref(log).addr()
}

impl Plan {
    pub(super) fn new(dialect: &'static Dialect, log: &'static LogType) -> Self {
        let forms = log.fields.iter().map(|field| word_for(dialect, log, field.name, false));
        Self {
            zone: dialect.zone.as_bytes(),
            proto: log.fields.iter().position(|field| field.name == "proto").map(|at| at as u16),
            forms: forms.map(|told| told.map_or(Form::Plain, |told| told.form)).collect(),
            members: members(dialect, log, false),
            icmp: members(dialect, log, true),
        }
    }

    #[inline]
    pub(super) fn form(&self, column: usize) -> Form {
        self.forms.get(column).copied().unwrap_or(Form::Plain)
    }

    /// Whether a row is of a connection of ICMP.
    pub(super) fn is_icmp(&self, values: &Values<'_>) -> bool {
        let told = self.proto.and_then(|column| values.get(column));
        values.transport == Some(Proto::Icmp) || told == Some(b"\"icmp\"")
    }

    pub(super) const fn zone(&self) -> &'static [u8] {
        self.zone
    }

    pub(super) const fn columns(&self) -> usize {
        self.forms.len()
    }
}

/// The word of a dialect for a column.
fn word_for(dialect: &Dialect, log: &LogType, column: &str, is_icmp: bool) -> Option<Told> {
    let icmp = dialect.icmp.iter().filter(|_| is_icmp);
    let own = dialect.document(log).columns;
    icmp.chain(own).chain(dialect.common).find(|told| told.column == column).copied()
}

/// The path of each column; `None` where something that follows from it tells it.
fn paths(dialect: &'static Dialect, log: &'static LogType, is_icmp: bool) -> Vec<Option<String>> {
    let derived = || dialect.derived.iter().chain(dialect.document(log).derived);
    let path = |field: &FieldInfo| {
        let is_told = derived().any(|it| it.tells == Some(field.name));
        let told = word_for(dialect, log, field.name, is_icmp);
        let place = || dialect.place_of(log, field);
        (!is_told).then(|| told.map_or_else(place, |told| told.path.to_owned()))
    };
    log.fields.iter().map(path).collect()
}

/// The members of a document of a log.
fn members(dialect: &'static Dialect, log: &'static LogType, is_icmp: bool) -> Vec<Member> {
    let document = dialect.document(log);
    let paths = paths(dialect, log, is_icmp);
    let mut all = Vec::new();
    if let Some(written) = dialect.written {
        place(&mut all, written, What::Written);
    }
    let column = |(index, path): (usize, &Option<String>)| Some((index as u16, path.clone()?));
    let mut columns: Vec<_> = paths.iter().enumerate().filter_map(column).collect();
    columns.sort_by_key(|(_, path)| path != dialect.leading);
    let behind_leading = columns.partition_point(|(_, path)| path == dialect.leading);
    for (index, path) in columns.drain(..behind_leading) {
        place(&mut all, &path, What::Column(index));
    }
    for (path, value) in (dialect.head)(log, document) {
        place(&mut all, path, What::Constant(value.into_bytes().into()));
    }
    for &(path, value) in document.constants {
        place(&mut all, path, What::Constant(value.as_bytes().into()));
    }
    let is_free = |derived: &&Derived| !paths.iter().flatten().any(|path| path == derived.path);
    for derived in dialect.derived.iter().chain(document.derived).filter(is_free) {
        let input = |name: &&str| log.fields.iter().position(|field| field.name == *name);
        let inputs = derived.inputs.iter().map(|name| input(name).map(|at| at as u16)).collect();
        place(&mut all, derived.path, What::Derived(inputs, derived.make));
    }
    for (index, path) in columns {
        place(&mut all, &path, What::Column(index));
    }
    all
}

/// Puts something at its path.
fn place(members: &mut Vec<Member>, path: &str, what: What) {
    let Some((name, rest)) = path.split_once('.') else {
        members.push(Member { key: key(path), what });
        return;
    };
    if let Some(name) = name.strip_suffix("[]") {
        let What::Column(column) = what else { return };
        match &mut named(members, name, || What::Items(Vec::new())).what {
            What::Items(items) => items.push((key(rest), column)),
            _ => members.push(Member { key: key(name), what }),
        }
        return;
    }
    match &mut named(members, name, || What::Object(Vec::new())).what {
        What::Object(inner) => place(inner, rest, what),
        _ => members.push(Member { key: key(path), what }),
    }
}

/// The member with a name, which may be new.
fn named<'a>(
    members: &'a mut Vec<Member>,
    name: &str,
    new: impl FnOnce() -> What,
) -> &'a mut Member {
    let key = key(name);
    let at = members.iter().position(|member| member.key == key).unwrap_or_else(|| {
        members.push(Member { key, what: new() });
        members.len() - 1
    });
    &mut members[at]
}

/// A name with quotes and colon. Names of columns and of dialects need no escapes.
fn key(name: &str) -> Box<[u8]> {
    format!("\"{name}\":").into_bytes().into()
}

#[cfg(test)]
pub(in crate::format) mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Fails where a dialect names what no log has, or puts two things at one place.
    pub(in crate::format) fn check(dialect: &'static Dialect) {
        for document in dialect.documents {
            let log = LOGS.iter().find(|log| log.path == document.log);
            let log = log.unwrap_or_else(|| panic!("there is no log {}", document.log));
            let has = |column: &str| log.fields.iter().any(|field| field.name == column);
            let inputs = document.derived.iter().flat_map(|it| it.inputs.iter().copied());
            for column in document.columns.iter().map(|told| told.column).chain(inputs) {
                assert!(has(column), "{} has no column {column}", log.path);
            }
        }
        for (log, is_icmp) in LOGS.iter().flat_map(|log| [(log, false), (log, true)]) {
            let columns = paths(dialect, log, is_icmp).into_iter().flatten();
            let derived = dialect.derived.iter().chain(dialect.document(log).derived);
            let derived = derived.map(|derived| derived.path.to_owned());
            let constants = dialect.document(log).constants.iter().map(|it| it.0.to_owned());
            let mut all = BTreeSet::new();
            for path in columns.chain(constants) {
                assert!(all.insert(path.clone()), "{}: two values at {path}", log.path);
            }
            all.extend(derived);
            for path in &all {
                let inner = [format!("{path}."), format!("{path}[]")];
                let other = all.iter().find(|it| inner.iter().any(|begin| it.starts_with(begin)));
                assert_eq!(other, None, "{}: {path} is a value and an object", log.path);
                assert!(path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"'));
            }
        }
    }
}
