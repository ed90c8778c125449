//! Templates: which fields the records of a set have.

use std::collections::BTreeMap;
use std::sync::Arc;

use netsniff_packet::Timestamp;

use crate::bytes::Bytes;
use crate::element::{Meaning, REVERSE};
use crate::limits::Limits;
use crate::message::Protocol;

/// The length of a field that stands before its value.
pub(crate) const VARIABLE: u16 = u16::MAX;
/// The least id of a template: smaller ones are those of other sets.
pub(crate) const FIRST_ID: u16 = 256;

/// A field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) meaning: Meaning,
    /// Whether it tells of the reverse direction.
    pub(crate) is_reverse: bool,
    pub(crate) len: u16,
}

/// How the records of a set are to be read.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) fields: Box<[Field]>,
    /// Whether its records tell of the exporter rather than of flows.
    pub(crate) is_options: bool,
    /// Bytes that a record has at least.
    pub(crate) least: usize,
}

/// What a set of templates says.
#[derive(Debug)]
pub(crate) enum Told {
    /// A template.
    Template(u16, Template),
    /// A template holds no longer.
    Withdrawn(u16),
    /// None of this kind does.
    AllWithdrawn,
}

/// The kind of a set of templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Data,
    Options,
}

impl Kind {
    /// The kind that this id of a set stands for.
    pub(crate) const fn of(protocol: Protocol, id: u16) -> Option<Self> {
        match (protocol, id) {
            (Protocol::Netflow9, 0) | (Protocol::Ipfix, 2) => Some(Self::Data),
            (Protocol::Netflow9, 1) | (Protocol::Ipfix, 3) => Some(Self::Options),
            _ => None,
        }
    }
}

/// Takes the next template of a set; `None` at its end, and an error where it makes no sense.
pub(crate) fn next(
    set: &mut Bytes<'_>,
    protocol: Protocol,
    kind: Kind,
    limits: &Limits,
) -> Option<Result<Told, ()>> {
    // What is shorter than a header, and zeros, fill the set up.
    if set.0.len() < 4 || set.0.iter().all(|byte| *byte == 0) {
        return None;
    }
    Some(told(set, protocol, kind, limits).ok_or(()))
}

fn told(set: &mut Bytes<'_>, protocol: Protocol, kind: Kind, limits: &Limits) -> Option<Told> {
    let id = set.u16()?;
    if protocol == Protocol::Ipfix {
        let count = set.u16()?;
        if count == 0 {
            return Some(if id < FIRST_ID { Told::AllWithdrawn } else { Told::Withdrawn(id) });
        }
        if kind == Kind::Options {
            let scopes = set.u16()?;
            if scopes == 0 || scopes > count {
                return None;
            }
        }
        return template(set, id, count.into(), kind, limits, ipfix_field);
    }
    let count = match kind {
        Kind::Data => set.u16()?.into(),
        // Lengths in bytes: of the scope, and of the options behind it.
        Kind::Options => {
            let scope = usize::from(set.u16()?);
            let options = usize::from(set.u16()?);
            if !scope.is_multiple_of(4) || !options.is_multiple_of(4) {
                return None;
            }
            let fields = set.take(scope + options)?;
            let mut read = Bytes(fields);
            // A scope has numbers of its own.
            let is_scope = |at: usize| at < scope / 4;
            let mut at = 0;
            return template(&mut read, id, fields.len() / 4, kind, limits, |set| {
                let field = netflow_field(set)?;
                at += 1;
                Some(if is_scope(at - 1) {
                    Field { meaning: Meaning::Nothing, ..field }
                } else {
                    field
                })
            });
        }
    };
    template(set, id, count, kind, limits, netflow_field)
}

fn template<'a>(
    set: &mut Bytes<'a>,
    id: u16,
    count: usize,
    kind: Kind,
    limits: &Limits,
    mut field: impl FnMut(&mut Bytes<'a>) -> Option<Field>,
) -> Option<Told> {
    if id < FIRST_ID || count == 0 || count > limits.fields {
        return None;
    }
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        // A field without bytes tells nothing, and would cost time in every record.
        fields.extend(Some(field(set)?).filter(|it| it.len > 0));
    }
    let least =
        fields.iter().map(|it| if it.len == VARIABLE { 1 } else { usize::from(it.len) }).sum();
    // Records without bytes would never end.
    if least == 0 {
        return None;
    }
    let template = Template { fields: fields.into(), is_options: kind == Kind::Options, least };
    Some(Told::Template(id, template))
}

fn netflow_field(set: &mut Bytes<'_>) -> Option<Field> {
    let (id, len) = (set.u16()?, set.u16()?);
    Some(Field { meaning: Meaning::of(id), is_reverse: false, len })
}

fn ipfix_field(set: &mut Bytes<'_>) -> Option<Field> {
    let (id, len) = (set.u16()?, set.u16()?);
    if id & 0x8000 == 0 {
        return Some(Field { meaning: Meaning::of(id), is_reverse: false, len });
    }
    let is_reverse = set.u32()? == REVERSE;
    let meaning = if is_reverse { Meaning::of(id & 0x7fff) } else { Meaning::Nothing };
    Some(Field { meaning, is_reverse, len })
}

/// The templates of one exporter and domain.
#[derive(Debug, Default)]
pub(crate) struct Templates {
    known: BTreeMap<u16, (Arc<Template>, Timestamp)>,
    /// Fields of all of them.
    fields: usize,
}

impl Templates {
    pub(crate) const fn fields(&self) -> usize {
        self.fields
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    /// Keeps a template that was told at `now`, in place of an earlier one of this id. Returns whether there is room,
    /// with `others` fields of other exporters.
    pub(crate) fn insert(
        &mut self,
        id: u16,
        template: Template,
        now: Timestamp,
        others: usize,
        limits: &Limits,
    ) -> bool {
        self.remove(id);
        let fields = self.fields + template.fields.len();
        if self.known.len() >= limits.templates || fields.saturating_add(others) > limits.all_fields
        {
            return false;
        }
        self.fields = fields;
        self.known.insert(id, (Arc::new(template), now));
        true
    }

    /// Forgets a template. Returns whether there was one.
    pub(crate) fn remove(&mut self, id: u16) -> bool {
        let removed = self.known.remove(&id);
        self.fields -= removed.as_ref().map_or(0, |(template, _)| template.fields.len());
        removed.is_some()
    }

    /// Forgets all of a kind, and returns how many there were.
    pub(crate) fn remove_all(&mut self, kind: Kind) -> u64 {
        let is_wanted = |template: &Template| template.is_options == (kind == Kind::Options);
        let ids = self.known.iter().filter(|(_, (template, _))| is_wanted(template));
        let ids: Vec<_> = ids.map(|(id, _)| *id).collect();
        ids.iter().for_each(|id| _ = self.remove(*id));
        ids.len() as u64
    }

    /// The template of a set.
    pub(crate) fn of(&self, id: u16) -> Option<Arc<Template>> {
        self.known.get(&id).map(|(template, _)| Arc::clone(template))
    }

    /// Forgets what was last told before `since`, and returns how many those were.
    pub(crate) fn expire(&mut self, since: Timestamp) -> u64 {
        let old = self.known.iter().filter(|(_, (_, told))| *told < since);
        let old: Vec<_> = old.map(|(id, _)| *id).collect();
        old.iter().for_each(|id| _ = self.remove(*id));
        old.len() as u64
    }
}
