//! Two things that the lab measured, side by side (PAPERS F10): what changed from A to B, and how sure that is.
//!
//! | module | concern |
//! |---|---|
//! | `mod.rs` | which of what was measured a side is, and what it is paired by |
//! | [`rates`] | the highest rates without loss, for each size of frames |
//! | [`runs`] | the runs of sweeps, for each of their points |
//! | [`interval`] | how sure a difference is |
//! | [`facts`] | what else the two sides differ in, which may be why (PAPERS F12) |
//!
//! All changes are from A to B: the difference is B - A, the ratio B / A, and the improvement 100 (B / A - 1) percent.

pub mod facts;
pub mod interval;
pub mod rates;
pub mod runs;

use std::fmt;

use serde::Serialize;

use crate::search::lossless::Cell;
use crate::search::sweep::Run;
use crate::tools::Setting;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Side {
    /// What is compared with.
    A,
    /// The report that is compared with it.
    B,
}

impl Side {
    const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The letter that names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which part of what was measured a side is. What it names is not what points are paired by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Selection {
    /// A tool; `None` for all.
    pub tool: Option<String>,
    /// Values of the settings that were varied.
    pub settings: Vec<Setting>,
}

impl Selection {
    /// It of words as users write them: a tool, and settings as `ring=2M`.
    ///
    /// # Errors
    ///
    /// A sentence, where something is named twice or not at all.
    pub fn of_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut selection = Self::default();
        for word in words {
            match word.split_once('=') {
                _ if word.is_empty() => return Err("there is nothing after a colon".to_owned()),
                None if selection.tool.is_some() => {
                    return Err(format!("{word} is a second tool: a side has one, or all"));
                }
                None => selection.tool = Some(word.to_owned()),
                Some((name, value)) => {
                    let name = name.trim_start_matches('-');
                    if selection.names(name) {
                        return Err(format!("{name} is given twice"));
                    }
                    selection.settings.push(setting(name, value));
                }
            }
        }
        Ok(selection)
    }

    fn names(&self, name: &str) -> bool {
        self.settings.iter().any(|setting| setting.name == name)
    }

    /// What is left of settings that it does not name.
    fn rest(&self, settings: Vec<&Setting>) -> Vec<Setting> {
        settings.into_iter().filter(|setting| !self.names(&setting.name)).cloned().collect()
    }
}

fn setting(name: &str, value: &str) -> Setting {
    Setting { name: name.to_owned(), value: value.to_owned() }
}

/// Something that the lab measured.
pub trait Measured: PartialEq {
    /// Name of the tool that captured.
    fn tool(&self) -> &str;
    /// Other values of options: its own, the generator's, the testbed's.
    fn settings(&self) -> Vec<&Setting>;
}

impl Measured for Run {
    fn tool(&self) -> &str {
        &self.point.tool
    }

    fn settings(&self) -> Vec<&Setting> {
        let point = &self.point;
        [&point.settings, &point.load.options, &point.host].into_iter().flatten().collect()
    }
}

impl Measured for Cell {
    fn tool(&self) -> &str {
        &self.tool
    }

    fn settings(&self) -> Vec<&Setting> {
        Vec::new()
    }
}

/// A side: what was selected, and all of that.
#[derive(Clone, Debug)]
pub struct Chosen<'a, T> {
    /// What was selected, also where there was no choice.
    pub selection: Selection,
    /// The measurements that are of it.
    pub of: Vec<&'a T>,
}

/// Something that has no partner.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOut<P> {
    /// The report that has it.
    pub side: Side,
    /// Name of the tool that captured.
    pub tool: String,
    /// The point that has no partner.
    pub point: P,
    /// Why it is left out.
    pub why: String,
}

/// Chooses what the two sides are. What one of them names, the other has one of, or must name, too.
///
/// # Errors
///
/// A sentence, where there is nothing of what is named, too much, or the same on both sides.
pub fn choose<T: Measured>(sides: [(Selection, &[T]); 2]) -> Result<[Chosen<'_, T>; 2], String> {
    let [first, second] = sides;
    let mut a = chosen(Side::A, first.0, first.1)?;
    let mut b = chosen(Side::B, second.0, second.1)?;
    let (of_a, of_b) = (a.selection.clone(), b.selection.clone());
    complete(Side::B, &mut b, &of_a)?;
    complete(Side::A, &mut a, &of_b)?;
    if a.of == b.of {
        return Err("A and B are the same: name a tool or a setting of each, as DIR:TOOL:ring=2M"
            .to_owned());
    }
    Ok([a, b])
}

fn chosen<T: Measured>(
    side: Side,
    selection: Selection,
    all: &[T],
) -> Result<Chosen<'_, T>, String> {
    if all.is_empty() {
        return Err(format!("nothing was measured in {side}"));
    }
    let mut of: Vec<&T> = all.iter().collect();
    if let Some(tool) = &selection.tool {
        let there = distinct(of.iter().map(|it| it.tool()));
        of.retain(|it| it.tool() == tool);
        if of.is_empty() {
            return Err(format!(
                "there is no tool {tool} in {side}; there are {}",
                there.join(", ")
            ));
        }
    }
    for wanted in &selection.settings {
        let Setting { name, value } = wanted;
        let there = distinct(of.iter().flat_map(|it| it.settings()).map(|it| it.name.as_str()));
        let values = distinct(of.iter().filter_map(|it| value_of(*it, name)));
        if values.is_empty() {
            let there = if there.is_empty() { vec!["none"] } else { there };
            let there = there.join(", ");
            return Err(format!("there is no setting {name} in {side}; there are {there}"));
        }
        of.retain(|it| it.settings().contains(&wanted));
        if of.is_empty() {
            let values = values.join(", ");
            return Err(format!("there is no {name}={value} in {side}; {name} is {values}"));
        }
    }
    Ok(Chosen { selection, of })
}

/// Selects what the other side names and this one has no choice of.
fn complete<T: Measured>(
    side: Side,
    chosen: &mut Chosen<'_, T>,
    other: &Selection,
) -> Result<(), String> {
    let several = |what: &str, values: &[&str], example: &str| {
        let (values, other) = (values.join(", "), side.other());
        format!("{other} names a {what}, and {side} has several: {values}; name one, as {example}")
    };
    if other.tool.is_some() && chosen.selection.tool.is_none() {
        match distinct(chosen.of.iter().map(|it| it.tool()))[..] {
            [tool] => chosen.selection.tool = Some(tool.to_owned()),
            ref tools => return Err(several("tool", tools, &format!("DIR:{}", tools[0]))),
        }
    }
    for Setting { name, .. } in &other.settings {
        if chosen.selection.names(name) {
            continue;
        }
        match distinct(chosen.of.iter().filter_map(|it| value_of(*it, name)))[..] {
            // All of it is as the tool comes.
            [] => {}
            [value] => chosen.selection.settings.push(setting(name, value)),
            ref values => {
                let example = format!("DIR:{name}={}", values[0]);
                return Err(several(&format!("value of {name}"), values, &example));
            }
        }
    }
    Ok(())
}

fn value_of<'a>(of: &'a impl Measured, name: &str) -> Option<&'a str> {
    of.settings()
        .into_iter()
        .find(|setting| setting.name == name)
        .map(|setting| setting.value.as_str())
}

/// Each of them once, in their order.
fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut distinct = Vec::new();
    for it in all {
        if !distinct.contains(&it) {
            distinct.push(it);
        }
    }
    distinct
}

/// The tools that are paired: those that are selected, or each with itself. Those without a partner, too.
fn pairs<T: Measured>(sides: &[Chosen<'_, T>; 2]) -> Vec<[Option<String>; 2]> {
    let [a, b] = sides;
    if let (Some(first), Some(second)) = (&a.selection.tool, &b.selection.tool) {
        return vec![[Some(first.clone()), Some(second.clone())]];
    }
    let [first, second] = [a, b].map(|side| distinct(side.of.iter().map(|it| it.tool())));
    let there = |tools: &[&str], tool: &str| tools.contains(&tool).then(|| tool.to_owned());
    distinct(first.iter().chain(&second))
        .into_iter()
        .map(|tool| [there(&first, tool), there(&second, tool)])
        .collect()
}

/// Sorts what two sides have into what they share, by its order in A, and what one alone has.
fn paired<P: PartialEq + Clone>(a: &[P], b: &[P]) -> (Vec<P>, Vec<(Side, P)>) {
    let (both, alone): (Vec<_>, Vec<_>) = a.iter().cloned().partition(|point| b.contains(point));
    let of_b = b.iter().filter(|point| !a.contains(point)).cloned();
    let alone = alone.into_iter().map(|point| (Side::A, point));
    (both, alone.chain(of_b.map(|point| (Side::B, point))).collect())
}

#[cfg(test)]
mod tests;
