//! How a testbed is made: who pays for receiving, what a capture has, and what is planted.

use std::path::PathBuf;

use super::line::Wire;
use super::processors;
use super::tap::Tap;
use crate::disk::Disk;
use crate::host::memory;
use crate::host::neighbour;
use crate::host::quota;
use crate::host::sysctl;
use crate::tools::{Setting, Tool};

/// Who pays for receiving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The sender's processor also runs the receiver's softirq; the capture has its own processor for itself.
    None,
    /// The softirq runs on the processor of the capture, as where a card interrupts that: the usual case.
    #[default]
    Rps,
    /// As [`Self::Rps`], by a NAPI thread on the processor of the capture.
    Thread,
    /// As [`Self::None`], by the NAPI of the interface, which has a ring of its own (256 frames for a veth).
    Napi,
    /// Whoever the machine has for it: of a wire that is there nothing is changed.
    AsFound,
}

impl Placement {
    /// THE list of those that a bed can be made with.
    pub const ALL: [Self; 4] = [Self::None, Self::Rps, Self::Thread, Self::Napi];

    /// The word for it on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Rps => "rps",
            Self::Thread => "thread",
            Self::Napi => "napi",
            Self::AsFound => "as-found",
        }
    }

    /// The one of this name.
    ///
    /// # Errors
    ///
    /// A sentence, where there is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|placement| placement.name() == text);
        found.ok_or_else(|| {
            format!("no placement {text:?}: there are {}", Self::ALL.map(Self::name).join(", "))
        })
    }
}

/// How a bed is made.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Layout {
    /// Who pays for receiving.
    pub placement: Placement,
    /// How many processors capture, and receive for it where the placement has that on the processor of the capture:
    /// from [`CAPTURE_CPU`](super::CAPTURE_CPU) on, and the sender's as the last one.
    pub processors: u32,
    /// How many of them receive, where these are others than those that capture: flows are spread over them by RPS, or by
    /// NAPI threads, one for each queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receivers: Option<u32>,
    /// The share of its processor that a capture gets; `None` for all of it.
    pub quota: Option<f64>,
    /// Bytes of memory that a capture may have, beside its ring; `None` for all there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Busy processes on each processor that captures, which the scheduler prefers.
    #[serde(skip_serializing_if = "is_none")]
    pub neighbours: u32,
    /// Queues of each interface.
    pub queues: u32,
    /// Settings of the kernel (sysctl(8)) that are changed while it stands.
    pub sysctls: Vec<Setting>,
    /// A tap that the capture is behind, with losses that are planted; without it the capture is on the wire itself.
    pub tap: Option<Tap>,
    /// A slower disk that tools write their files to; without it they are in memory.
    pub disk: Option<Disk>,
    /// A directory that tools write their files in; `None` for memory.
    pub files: Option<PathBuf>,
    /// The wire to another machine that sends; without it all is made on this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<Wire>,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            placement: Placement::default(),
            processors: 1,
            receivers: None,
            quota: None,
            memory: None,
            neighbours: 0,
            queues: 1,
            sysctls: Vec::new(),
            tap: None,
            disk: None,
            files: None,
            wire: None,
        }
    }
}

// Reports of beds without them are as they were.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
const fn is_none(neighbours: &u32) -> bool {
    *neighbours == 0
}

/// Queues that an interface may have.
pub const MOST_QUEUES: u32 = 64;

/// What is of the capture, and not of the way to it.
const OF_CAPTURES: [&str; 4] = ["quota", "memory", "processors", "neighbours"];

impl Layout {
    /// A wire that is there.
    #[must_use]
    pub fn of_wire(wire: Wire) -> Self {
        Self { placement: Placement::AsFound, wire: Some(wire), ..Self::default() }
    }

    /// The same with other values: `placement`, `processors` and `receivers` (a number, or `all` of this machine's), `quota` in
    /// percent, `memory` in bytes, `neighbours` on each processor that captures, `queues`, `tap` and the losses planted at it
    /// (`loss-before`, `loss-at`, `loss-behind`, in percent), `disk` and `disk-stall`, settings of the kernel by their names,
    /// which have dots, and `profile` for several of these (`default`, `skopko64`).
    ///
    /// # Errors
    ///
    /// A sentence, where there is no such name or value, and for what is changed of no wire that is there.
    pub fn with(&self, settings: &[Setting]) -> Result<Self, String> {
        let mut layout = self.clone();
        for Setting { name, value } in settings {
            if self.wire.is_some() && !OF_CAPTURES.contains(&name.as_str()) {
                return Err(format!(
                    "{name} is of a testbed that the lab makes: of a wire between machines it changes neither the \
                     interfaces nor the kernel; only {} are left",
                    OF_CAPTURES.join(", ")
                ));
            }
            match name.as_str() {
                "placement" => layout.placement = Placement::parse(value)?,
                "processors" => layout.processors = processors::parse(value, processors::there())?,
                "receivers" => {
                    layout.receivers = Some(processors::parse(value, processors::there())?);
                }
                "quota" => layout.quota = quota::parse(value)?,
                "memory" => layout.memory = memory::parse(value)?,
                "neighbours" => layout.neighbours = neighbour::parse(value)?,
                "queues" => {
                    let number =
                        value.parse().ok().filter(|number| (1..=MOST_QUEUES).contains(number));
                    let said = || format!("{value:?} is no number of queues up to {MOST_QUEUES}");
                    layout.queues = number.ok_or_else(said)?;
                }
                name if let Some(disk) = Disk::with(layout.disk, name, value) => {
                    layout.disk = disk?;
                }
                name if sysctl::is_name(name) && value.is_empty() => {
                    return Err(format!("{name} has no value: {name}=VALUE"));
                }
                name if sysctl::is_name(name) => {
                    layout.change(Setting { name: name.to_owned(), value: value.clone() });
                }
                "profile" => {
                    sysctl::profile(value)?.into_iter().for_each(|setting| layout.change(setting));
                }
                name => {
                    layout.tap = Tap::with(layout.tap, name, value).ok_or_else(|| {
                        format!(
                            "a testbed has no {name:?}: it has placement, processors, receivers, quota, memory, neighbours, queues, tap, \
                             loss-before, loss-at, loss-behind, disk, disk-stall, profile, and settings of the kernel with dots in \
                             their names, as net.core.netdev_max_backlog"
                        )
                    })??;
                }
            }
        }
        if layout.disk.is_some() && layout.files.is_some() {
            return Err("files are in a directory or on a planted disk, and not both".to_owned());
        }
        Ok(layout)
    }

    /// Another setting of the kernel, instead of one of the same name.
    fn change(&mut self, setting: Setting) {
        self.sysctls.retain(|old| old.name != setting.name);
        self.sysctls.push(setting);
    }

    /// How many processors receive, where the placement has that on those of the capture.
    #[must_use]
    pub fn receiving(&self) -> u32 {
        self.receivers.unwrap_or(self.processors)
    }

    /// Whether flows are spread over queues: there are several, and receiving is a matter of the interface.
    pub(super) const fn has_spread_queues(&self) -> bool {
        self.queues > 1 && !matches!(self.placement, Placement::None | Placement::AsFound)
    }

    /// Whether a tool can be tried on it, and nothing in it is without effect.
    ///
    /// # Errors
    ///
    /// A sentence, where it cannot.
    pub fn suits(&self, tool: &Tool) -> Result<(), String> {
        let is_chosen = matches!(self.placement, Placement::Rps | Placement::Thread);
        if self.receivers.is_some() && !is_chosen {
            return Err(format!(
                "receivers are of placement {} and {}: with {} the sender's processor receives",
                Placement::Rps.name(),
                Placement::Thread.name(),
                self.placement.name()
            ));
        }
        match self.disk {
            Some(_) if !tool.writes_file() => Err(format!(
                "{} writes no capture file, so that no disk can be planted under it",
                tool.name
            )),
            _ => Ok(()),
        }
    }
}
