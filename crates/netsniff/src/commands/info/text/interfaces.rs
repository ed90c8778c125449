//! The interfaces of a file. Those that stand together and are alike are one block: a file may have thousands.

use std::fmt::{self, Write};

use netsniff_console::printable::printable;

use super::super::report::{InterfaceReport, Report};
use super::{counted, grouped, line};

/// Interfaces, or groups of them, and sections that are listed.
pub(super) const LISTED: usize = 32;

/// Interfaces that make a group.
const LEAST: usize = 3;

pub(super) fn write(report: &Report, text: &mut String) -> fmt::Result {
    let mut rest = report.interfaces.as_slice();
    for _ in 0..LISTED {
        let Some(first) = rest.first() else { return Ok(()) };
        let alike = rest.iter().take_while(|other| is_alike(first, other)).count();
        let len = if alike < LEAST { 1 } else { alike };
        let (group, behind) = rest.split_at(len);
        let number = report.interfaces.len() - rest.len();
        lines(number, group, foreign_system(report, first), text)?;
        rest = behind;
    }
    if !rest.is_empty() {
        line(text, "", &format!("and {} more interfaces", grouped(rest.len() as u64)))?;
    }
    Ok(())
}

/// Whether all that is told of two interfaces is the same but for their names and counters.
fn is_alike(one: &InterfaceReport, other: &InterfaceReport) -> bool {
    let numbers = |it: &InterfaceReport| {
        (it.section, it.link_type_number, it.snaplen, it.speed, it.name.is_some())
    };
    let texts = |it: &InterfaceReport| {
        let told = [&it.description, &it.filter, &it.os, &it.hardware];
        (told.map(Clone::clone), it.time_unit.clone())
    };
    numbers(one) == numbers(other) && texts(one) == texts(other)
}

/// The interface's operating system, where its section does not say the same.
fn foreign_system<'a>(report: &Report, interface: &'a InterfaceReport) -> Option<&'a String> {
    let of_section = usize::try_from(interface.section).ok();
    let section = of_section.and_then(|section| report.sections.get(section));
    let system = interface.os.as_ref();
    system.filter(|_| section.is_none_or(|section| section.os.as_ref() != system))
}

/// What is told of interfaces that are alike, the first of which has this number.
fn lines(
    number: usize,
    group: &[InterfaceReport],
    system: Option<&String>,
    text: &mut String,
) -> fmt::Result {
    let ([first, ..], [.., last]) = (group, group) else { return Ok(()) };
    let named = |number: usize, interface: &InterfaceReport| match &interface.name {
        Some(name) => format!("{number} {}", printable(name)),
        None => number.to_string(),
    };
    let mut head = named(number, first);
    if group.len() > 1 {
        write!(head, " to {}", named(number + group.len() - 1, last))?;
    }
    write!(head, ": {}, ", first.link_type)?;
    if group.len() > 1 {
        write!(head, "{} alike, ", grouped(group.len() as u64))?;
    }
    let packets = group.iter().fold(0, |sum: u64, it| sum.saturating_add(it.packets));
    write!(head, "{}, unit {}", counted(packets), first.time_unit)?;
    match first.snaplen {
        Some(snaplen) => write!(head, ", snaplen {snaplen}")?,
        None => head.push_str(", no snaplen"),
    }
    line(text, "interface", &head)?;
    let texts = [
        ("description", first.description.as_ref()),
        ("filter", first.filter.as_ref()),
        ("system", system),
        ("hardware", first.hardware.as_ref()),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            line(text, "", &format!("  {name} {}", printable(value)))?;
        }
    }
    // A sum is known where each part of it is.
    let sum = |count: fn(&InterfaceReport) -> Option<u64>| {
        let sum = group.iter().map(count).try_fold(0, |sum: u64, it| sum.checked_add(it?));
        sum.map_or("unavailable".to_owned(), grouped)
    };
    let (interface, system) = (sum(|it| it.dropped_by_interface), sum(|it| it.dropped_by_os));
    line(text, "", &format!("  dropped by the interface {interface}, by the system {system}"))?;
    let (received, between) = (sum(|it| it.received), sum(|it| it.dropped_between_packets));
    line(text, "", &format!("  received {received}, lost between packets {between}"))
}
