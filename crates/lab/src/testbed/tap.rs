//! A passive tap on the wire, with losses that are planted before, at and behind it. Each is counted by the kernel, so
//! that what a tool does not have can be laid at the right door, to the packet.
//!
//! ```text
//! rx0 ──┬─ before ─▶ lost0      the network lost it: the receiver has no more of it than the tap
//!       ├─ at ─────▶ lost0      the tap made no copy: the receiver has the frame
//!       └─ copy ───▶ tap0 ──┬─ behind ─▶ lost0      the copy was lost on its way to where the tool captures
//!                           └───────────▶ mon0      the tool captures here
//! ```
//!
//! Classic BPF of traffic control takes frames out at random, and its actions count them. No module that plants losses
//! (`netem`) is needed, nor an action that drops (`gact`).

use std::process::Command;

use anyhow::{Context as _, anyhow, bail};
use netsniff_capture::interface::LinkReader;
use netsniff_capture::{Interface, in_namespace};
use serde_json::Value;

use crate::host::namespace;

/// Where copies leave the tap, and where a tool captures them.
const PORT: &str = "tap0";
pub(crate) const MONITOR: &str = "mon0";

/// Where lost frames go, and its other end, which nothing comes to.
const SINK: [&str; 2] = ["lost0", "lost1"];

/// The wire's end that the tap is at.
const WIRE: &str = "rx0";

/// Numbers that random ones of BPF are below.
const ALL: f64 = 4_294_967_296.0;

/// Losses that are planted, as shares from 0 to 1 of what comes there, frame by frame and independent of each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Tap {
    /// Of what is sent: lost in the network, so that neither the receiver nor the tap get it.
    pub before: f64,
    /// Of what the receiver gets: the tap makes no copy.
    pub at: f64,
    /// Of the copies: lost on their way to where the tool captures.
    pub behind: f64,
}

/// Frames that the tap's stations have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Planted {
    /// Lost before the tap.
    pub before: u64,
    /// Lost at the tap.
    pub at: u64,
    /// Lost behind the tap.
    pub behind: u64,
    /// Copies that the tap has made.
    pub copied: u64,
    /// Frames that came to the interface that the tool captures on.
    pub monitored: u64,
}

impl Planted {
    /// All that was lost on purpose.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.before + self.at + self.behind
    }

    /// What was counted since an earlier time.
    const fn since(&self, earlier: &Self) -> Self {
        Self {
            before: self.before.wrapping_sub(earlier.before),
            at: self.at.wrapping_sub(earlier.at),
            behind: self.behind.wrapping_sub(earlier.behind),
            copied: self.copied.wrapping_sub(earlier.copied),
            monitored: self.monitored.wrapping_sub(earlier.monitored),
        }
    }

    /// Whether every frame of those that arrived on the wire is counted exactly once, and every copy, but for at most
    /// `dropped`, which a processor's backlog may have dropped before they came to the monitor.
    pub(crate) const fn closes(&self, arrived: u64, dropped: u64) -> bool {
        let came = self.behind + self.monitored;
        self.before + self.at + self.copied == arrived
            && came <= self.copied
            && self.copied - came <= dropped
    }
}

/// How many of 2^32 random numbers lose a frame of which a share is to be lost; `None` where that is less than one, and
/// yet not nothing.
fn chances(share: f64) -> Option<u64> {
    let chances = (share * ALL).round() as u64;
    (chances > 0 || share <= 0.0).then_some(chances)
}

/// Loads a random number (`SKF_AD_RANDOM`, Linux) and matches the highest ones, so many of 2^32.
fn random(chances: u64) -> String {
    const SKF_AD_OFF: u32 = 0x1000_u32.wrapping_neg();
    const SKF_AD_RANDOM: u32 = 56;
    let (random, least) = (SKF_AD_OFF.wrapping_add(SKF_AD_RANDOM), (1 << 32) - chances);
    // ld rand; jge least; ret "matches"; ret 0
    format!("4,32 0 0 {random},53 0 1 {least},6 0 0 4294967295,6 0 0 0,")
}

/// A program that returns a number whatever comes.
fn always(result: u32) -> String {
    format!("1,6 0 0 {result},")
}

/// What a filter of traffic control that acts by itself returns to drop a frame (`TC_ACT_SHOT`).
const SHOT: u32 = 2;

/// A place where frames are sent elsewhere, and counted.
struct Station {
    /// The number of its action, by which its count is found; also its turn at its hook.
    number: u32,
    /// The interface and the hook.
    hook: [&'static str; 2],
    program: String,
    /// Where frames that match are copied to.
    to: &'static str,
    /// What becomes of such a frame itself.
    then: &'static str,
}

const BEFORE: u32 = 1;
const AT: u32 = 2;
const COPY: u32 = 3;
const BEHIND: u32 = 4;

impl Tap {
    /// The same with another value of a setting: `tap`, `loss-before`, `loss-at`, `loss-behind`; `None` where it is no
    /// setting of a tap.
    ///
    /// # Errors
    ///
    /// A sentence, where it has no such value.
    pub(crate) fn with(
        tap: Option<Self>,
        name: &str,
        value: &str,
    ) -> Option<Result<Option<Self>, String>> {
        if name == "tap" {
            let said = || Err(format!("a tap is on or off, not {value:?}"));
            return Some(match value {
                "on" => Ok(Some(tap.unwrap_or_default())),
                "off" => Ok(None),
                _ => said(),
            });
        }
        let mut tap = tap.unwrap_or_default();
        let place = match name {
            "loss-before" => &mut tap.before,
            "loss-at" => &mut tap.at,
            "loss-behind" => &mut tap.behind,
            _ => return None,
        };
        Some(match share(value) {
            Ok(share) => {
                *place = share;
                Ok(Some(tap))
            }
            Err(said) => Err(said),
        })
    }

    /// One line of text for reports.
    #[must_use]
    pub fn words(&self) -> String {
        let Self { before, at, behind } = self;
        let lost = [(before, "before"), (at, "at"), (behind, "behind")];
        let lost = lost.iter().filter(|(share, _)| **share > 0.0);
        let words: Vec<_> =
            lost.map(|(share, place)| format!("{} % lost {place} it", *share * 100.0)).collect();
        std::iter::once("a tap".to_owned()).chain(words).collect::<Vec<_>>().join(", ")
    }

    /// Makes it in a namespace whose `rx0` is there; interfaces get so many queues.
    pub(crate) fn build(&self, namespace: &str, queues: &str) -> anyhow::Result<()> {
        for [one, other] in [[PORT, MONITOR], SINK] {
            let queues = ["numtxqueues", queues, "numrxqueues", queues];
            let (begin, peer) = (["-n", namespace, "link", "add", "name", one], ["name", other]);
            namespace::ip(
                &[&begin[..], &queues, &["type", "veth", "peer"], &peer, &queues].concat(),
            )?;
            for name in [one, other] {
                namespace::raise(namespace, name, &[])?;
            }
        }
        for device in [WIRE, PORT, SINK[0]] {
            traffic_control(namespace, &["qdisc", "add", "dev", device, "clsact"])?;
        }
        // What comes to the sink has been counted. Further on it would take room in the processor's backlog.
        let drop = &always(SHOT);
        let end = ["filter", "add", "dev", SINK[0], "egress", "bpf", "bytecode", drop];
        traffic_control(namespace, &[&end[..], &["direct-action"]].concat())?;
        self.stations()?.iter().try_for_each(|station| station.build(namespace))
    }

    /// What is to be built, in the order in which frames come there. A share of 0 needs nothing.
    fn stations(&self) -> anyhow::Result<Vec<Station>> {
        let (wire, port) = ([WIRE, "ingress"], [PORT, "egress"]);
        let mut stations = vec![Station {
            number: COPY,
            hook: wire,
            program: always(u32::MAX),
            to: PORT,
            then: "pass",
        }];
        for (number, share, hook, then) in [
            (BEFORE, self.before, wire, "drop"),
            (AT, self.at, wire, "pass"),
            (BEHIND, self.behind, port, "drop"),
        ] {
            let Some(chances) = chances(share).filter(|chances| *chances <= ALL as u64) else {
                bail!("a loss of {share} cannot be planted: it is from one in 2^32 to 1, or 0");
            };
            if chances > 0 {
                stations.push(Station {
                    number,
                    hook,
                    program: random(chances),
                    to: SINK[0],
                    then,
                });
            }
        }
        stations.sort_by_key(|station| station.number);
        Ok(stations)
    }
}

impl Station {
    /// A frame itself is never sent elsewhere, but copied: a device that drops what was redirected to it makes some
    /// kernels free it twice (before Linux 6.8).
    fn build(&self, namespace: &str) -> anyhow::Result<()> {
        let Self { number, hook: [device, hook], program, to, then } = self;
        let number = &number.to_string();
        let filter = ["filter", "add", "dev", device, hook, "protocol", "all", "prio", number];
        let matching = ["bpf", "bytecode", program, "action"];
        let action = ["mirred", "egress", "mirror", "index", number, "dev", to, then];
        traffic_control(namespace, &[&filter[..], &matching, &action].concat())
    }
}

/// A share in percent.
fn share(value: &str) -> Result<f64, String> {
    let percent = value.trim_end_matches('%').trim_end().parse::<f64>().ok();
    let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
    let share = percent.ok_or_else(|| format!("{value:?} is no percentage"))? / 100.0;
    match chances(share) {
        Some(_) => Ok(share),
        None => Err(format!(
            "{value} are less than one frame in 2^32, the least loss that can be planted"
        )),
    }
}

fn traffic_control(namespace: &str, arguments: &[&str]) -> anyhow::Result<()> {
    namespace::ip(&[&["netns", "exec", namespace, "tc"][..], arguments].concat())
}

/// Reads what a tap has counted.
pub(crate) struct Meter {
    namespace: String,
    tap: Tap,
    monitor: LinkReader,
}

impl Meter {
    pub(crate) fn open(namespace: &str, tap: Tap) -> anyhow::Result<Self> {
        let open = || LinkReader::new(Interface::find(MONITOR)?.index);
        let monitor = in_namespace(namespace, open).context("cannot enter a namespace")?;
        let monitor = monitor.context("cannot read counters of the tap")?;
        Ok(Self { namespace: namespace.to_owned(), tap, monitor })
    }

    pub(crate) fn read(&mut self) -> anyhow::Result<Reading> {
        let arguments = ["-s", "-j", "actions", "list", "action", "mirred"];
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, "tc"]).args(arguments);
        let out = command.output().context("cannot run tc(8), of iproute2, which reads the tap")?;
        let text = String::from_utf8_lossy(&out.stdout);
        let said = String::from_utf8_lossy(&out.stderr);
        let actions: Value = serde_json::from_str(&text)
            .with_context(|| format!("tc does not tell what the tap has counted: {said}"))?;
        let of = |number, is_built: bool| match packets(&actions, number) {
            Some(packets) => Ok(packets),
            None if !is_built => Ok(0),
            None => Err(anyhow!("tc tells nothing of action {number} of the tap")),
        };
        let Tap { before, at, behind } = self.tap;
        Ok(Reading(Planted {
            before: of(BEFORE, before > 0.0)?,
            at: of(AT, at > 0.0)?,
            behind: of(BEHIND, behind > 0.0)?,
            copied: of(COPY, true)?,
            monitored: self.monitor.counters()?.context("mon0 is gone")?.rx_packets,
        }))
    }
}

/// What was counted since the tap was made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading(Planted);

impl Reading {
    pub(crate) const fn since(&self, earlier: &Self) -> Planted {
        self.0.since(&earlier.0)
    }
}

/// The packets that the action with a number has had, wherever it stands in what tc(8) prints.
fn packets(printed: &Value, number: u32) -> Option<u64> {
    match printed {
        Value::Array(all) => all.iter().find_map(|inner| packets(inner, number)),
        Value::Object(object) => {
            let is_it = object.get("index").and_then(Value::as_u64) == Some(number.into());
            let counted = printed["stats"]["packets"].as_u64().filter(|_| is_it);
            counted.or_else(|| object.values().find_map(|inner| packets(inner, number)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_chances_of_2_32() {
        assert_eq!(chances(0.0), Some(0));
        assert_eq!(chances(0.01), Some(42_949_673));
        assert_eq!(chances(0.5), Some(1 << 31));
        assert_eq!(chances(1.0), Some(1 << 32));
        assert_eq!((chances(1.0 / ALL), chances(0.4 / ALL)), (Some(1), None));
        // As classic BPF of tc(8): SKF_AD_OFF + SKF_AD_RANDOM is 0xfffff038.
        let half = "4,32 0 0 4294963256,53 0 1 2147483648,6 0 0 4294967295,6 0 0 0,";
        assert_eq!(random(1 << 31), half);
        // All numbers are at least 0, and one is the highest.
        assert!(random(1 << 32).contains(",53 0 1 0,"));
        assert!(random(1).contains(",53 0 1 4294967295,"));
        let of_a_hundredth = random(chances(0.01).unwrap());
        assert!(of_a_hundredth.contains(",53 0 1 4252017623,"), "{of_a_hundredth}");
    }

    #[test]
    fn settings_imply_a_tap() {
        let with = |tap, name: &str, value: &str| Tap::with(tap, name, value).unwrap();
        let tap = with(None, "loss-at", "1%").unwrap();
        assert_eq!(tap, Some(Tap { at: 0.01, ..Tap::default() }));
        let both = with(tap, "loss-behind", "0.5").unwrap().unwrap();
        assert_eq!((both.before, both.at, both.behind), (0.0, 0.01, 0.005));
        assert_eq!(both.words(), "a tap, 1 % lost at it, 0.5 % lost behind it");
        assert_eq!(with(tap, "tap", "on"), Ok(tap));
        assert_eq!(with(tap, "tap", "off"), Ok(None));
        assert_eq!(with(None, "tap", "on").unwrap().unwrap().words(), "a tap");
        for wrong in ["-1", "101%", "x", "NaN", "1e-9%"] {
            assert!(with(None, "loss-before", wrong).is_err(), "{wrong}");
        }
        assert!(with(None, "tap", "maybe").is_err() && Tap::with(None, "queues", "2").is_none());
    }

    #[test]
    fn only_what_loses_is_built() {
        let numbers = |tap: Tap| -> Vec<_> {
            tap.stations().unwrap().iter().map(|station| station.number).collect()
        };
        assert_eq!(numbers(Tap::default()), [COPY]);
        assert_eq!(numbers(Tap { before: 0.1, behind: 0.1, at: 0.0 }), [BEFORE, COPY, BEHIND]);
        assert!(Tap { at: 1.5, ..Tap::default() }.stations().is_err());
        assert!(Tap { at: 1e-12, ..Tap::default() }.stations().is_err());
    }

    #[test]
    fn what_tc_prints_is_understood() {
        // Of iproute2 6.1.
        let printed = r#"[{"total acts":2},{"actions":[
            {"order":0,"kind":"mirred","mirred_action":"mirror","direction":"egress","to_dev":"lost0",
             "control_action":{"type":"drop"},"index":1,"ref":1,"bind":1,
             "stats":{"bytes":20500,"packets":205,"drops":0,"overlimits":205,"requeues":0}},
            {"order":1,"kind":"mirred","to_dev":"tap0","index":3,"stats":{"bytes":1,"packets":19795}}]}]"#;
        let printed = serde_json::from_str(printed).unwrap();
        assert_eq!(packets(&printed, BEFORE), Some(205));
        assert_eq!((packets(&printed, COPY), packets(&printed, AT)), (Some(19_795), None));
        assert_eq!(packets(&Value::Null, COPY), None);
    }

    #[test]
    fn every_frame_is_counted_once() {
        let planted = Planted { before: 10, at: 20, copied: 970, behind: 30, monitored: 940 };
        assert_eq!(planted.lost(), 60);
        assert!(planted.closes(1000, 0));
        assert!(!planted.closes(1001, 9) && !planted.closes(999, 9));
        // What the backlog may have dropped explains what is missing, and not what is too many.
        let missing = Planted { monitored: 938, ..planted };
        assert!(!missing.closes(1000, 1) && missing.closes(1000, 2));
        assert!(!Planted { monitored: 941, ..planted }.closes(1000, 9));
    }
}
