//! Settings that a doctor may change: nothing that is not of a kind of this list is ever written.

use core::fmt;
use core::str::FromStr;
use std::io;

use anyhow::{Context as _, bail};
use netsniff_capture::ethtool::{self, ChannelKind};
use serde::{Deserialize, Serialize};

use crate::kernel::Kernel;

/// THE list of settings of the kernel that rule how packets are received.
pub const SYSCTLS: [&str; 12] = [
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.dev_weight",
    "net.core.netdev_max_backlog",
    "net.core.rps_sock_flow_entries",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.core.optmem_max",
    "net.core.busy_poll",
    "net.core.busy_read",
];

/// THE list of files of an interface in sysfs; those of queues are told apart by a number.
const OF_INTERFACE: [&str; 3] = ["threaded", "gro_flush_timeout", "napi_defer_hard_irqs"];
const OF_QUEUE: [(&str, &str); 3] =
    [("rx-", "rps_cpus"), ("rx-", "rps_flow_cnt"), ("tx-", "xps_cpus")];

/// Something that can be changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Setting {
    /// A setting of the kernel, as sysctl(8) names it.
    Sysctl {
        /// Its name.
        name: String,
    },
    /// A file of an interface in sysfs.
    Interface {
        /// Name of the interface.
        interface: String,
        /// The file, as `threaded` or `queues/rx-0/rps_cpus`.
        file: String,
    },
    /// Processors that an interrupt may come to.
    Irq {
        /// Its number.
        number: u32,
    },
    /// Who chooses the frequency of a processor.
    Governor {
        /// Number of the processor.
        processor: u32,
    },
    /// Frames that the receive ring of an interface has room for.
    Ring {
        /// Name of the interface.
        interface: String,
    },
    /// When interrupts of an interface come.
    Coalescing {
        /// Name of the interface.
        interface: String,
    },
    /// Queues that an interface receives with.
    Queues {
        /// Name of the interface.
        interface: String,
        /// Those that are counted and set.
        #[serde(default)]
        of: ChannelKind,
    },
    /// Something that an interface does by itself.
    Feature {
        /// Name of the interface.
        interface: String,
        /// The kernel's name of the feature.
        name: String,
    },
}

fn is_interface(name: &str) -> bool {
    // As the kernel's `dev_valid_name`, and without what a shell or a rule of udev would read otherwise.
    let is_fine = |letter: char| letter.is_ascii_alphanumeric() || "._-@".contains(letter);
    !name.is_empty() && name.len() < 16 && name != "." && name != ".." && name.chars().all(is_fine)
}

fn is_file(file: &str) -> bool {
    if OF_INTERFACE.contains(&file) {
        return true;
    }
    let Some((queue, name)) = file.strip_prefix("queues/").and_then(|it| it.split_once('/')) else {
        return false;
    };
    OF_QUEUE.iter().any(|(kind, of)| {
        let number = queue.strip_prefix(kind).unwrap_or_default();
        *of == name && number.parse::<u16>().is_ok_and(|it| it.to_string() == number)
    })
}

impl Setting {
    /// A setting of the kernel.
    #[must_use]
    pub fn sysctl(name: &str) -> Self {
        Self::Sysctl { name: name.to_owned() }
    }

    /// The queues of an interface, of the kind that its driver lets change.
    #[must_use]
    pub fn queues(kernel: &dyn Kernel, interface: &str) -> Self {
        let channels = ethtool::channels(kernel, interface).unwrap_or_default();
        Self::Queues { interface: interface.to_owned(), of: channels.kind() }
    }

    /// A file of an interface.
    #[must_use]
    pub fn of_interface(interface: &str, file: &str) -> Self {
        Self::Interface { interface: interface.to_owned(), file: file.to_owned() }
    }

    /// Whether it is of the list, with names that lead nowhere else.
    #[must_use]
    pub fn is_known(&self) -> bool {
        match self {
            Self::Sysctl { name } => SYSCTLS.contains(&name.as_str()),
            Self::Interface { interface, file } => is_interface(interface) && is_file(file),
            Self::Irq { .. } | Self::Governor { .. } => true,
            Self::Ring { interface }
            | Self::Coalescing { interface }
            | Self::Queues { interface, .. } => is_interface(interface),
            Self::Feature { interface, name } => {
                let is_fine = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
                is_interface(interface) && !name.is_empty() && name.chars().all(is_fine)
            }
        }
    }

    /// Whether it lets more queues or processors take flows.
    #[must_use]
    pub fn spreads_flows(&self) -> bool {
        match self {
            Self::Queues { .. } => true,
            Self::Interface { file, .. } => file.ends_with("rps_cpus"),
            _ => false,
        }
    }

    /// Whether it is of the list and this is a value of it. Values come from a journal, and go to the kernel, to a shell, and to
    /// files of sysctl.d(5), udev(7) and systemd(1), none of which may read more in them.
    ///
    /// # Errors
    ///
    /// What is wrong with which.
    pub fn check(&self, value: &str) -> anyhow::Result<()> {
        if !self.is_known() {
            bail!("{self} is no setting that netsniff changes");
        }
        match self {
            Self::Interface { file, .. } if file.ends_with("_cpus") => mask(value),
            Self::Irq { .. } => list(value),
            Self::Governor { .. } => governor(value),
            Self::Coalescing { .. } => coalescing(value).map(drop),
            Self::Feature { .. } => switch(value).map(drop),
            Self::Ring { .. } | Self::Queues { .. } => number::<u32>(value).map(drop),
            Self::Sysctl { .. } | Self::Interface { .. } => number::<u64>(value).map(drop),
        }
        .with_context(|| format!("no value of {self}"))
    }

    /// The file that has it, where one has.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        match self {
            Self::Sysctl { name } => Some(format!("/proc/sys/{}", name.replace('.', "/"))),
            Self::Interface { interface, file } => {
                Some(format!("/sys/class/net/{interface}/{file}"))
            }
            Self::Irq { number } => Some(format!("/proc/irq/{number}/smp_affinity_list")),
            Self::Governor { processor } => {
                Some(format!("/sys/devices/system/cpu/cpu{processor}/cpufreq/scaling_governor"))
            }
            _ => None,
        }
    }

    /// Its value now, in the words in which it is set.
    ///
    /// # Errors
    ///
    /// Where the kernel does not tell.
    pub fn read(&self, kernel: &dyn Kernel) -> io::Result<String> {
        let is_on = |is_on: bool| if is_on { "on" } else { "off" };
        match self {
            Self::Ring { interface } => Ok(ethtool::rings(kernel, interface)?.rx.to_string()),
            Self::Queues { interface, of } => {
                Ok(ethtool::channels(kernel, interface)?.count(*of).to_string())
            }
            Self::Coalescing { interface } => {
                let now = ethtool::coalescing(kernel, interface)?;
                let ethtool::Coalescing { rx_usecs, rx_frames, is_adaptive } = now;
                Ok(format!(
                    "adaptive-rx {} rx-usecs {rx_usecs} rx-frames {rx_frames}",
                    is_on(is_adaptive)
                ))
            }
            Self::Feature { interface, name } => {
                let all = ethtool::features(kernel, interface)?;
                let feature = all.iter().find(|feature| feature.name == *name);
                let feature = feature.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
                Ok(is_on(feature.is_on).to_owned())
            }
            _ => kernel.read(&self.path().unwrap_or_default()),
        }
    }

    /// Sets it.
    ///
    /// # Errors
    ///
    /// Where it is not of the list, the value is none, or the kernel does not take it.
    pub fn write(&self, kernel: &dyn Kernel, value: &str) -> anyhow::Result<()> {
        self.check(value)?;
        let taken = match self {
            Self::Ring { interface } => ethtool::set_rings(kernel, interface, number(value)?),
            Self::Queues { interface, of } => {
                let now =
                    ethtool::channels(kernel, interface).with_context(|| self.refusal(value))?;
                ethtool::set_channels(kernel, interface, now.with(*of, number(value)?))
            }
            Self::Coalescing { interface } => {
                ethtool::set_coalescing(kernel, interface, coalescing(value)?)
            }
            Self::Feature { interface, name } => {
                ethtool::set_feature(kernel, interface, name, switch(value)?)
            }
            // The kernel takes an empty value for none at all, and then changes nothing.
            _ => kernel.write(&self.path().unwrap_or_default(), &format!("{value}\n")),
        };
        taken.with_context(|| self.refusal(value))
    }

    fn refusal(&self, value: &str) -> String {
        format!("the kernel does not take {value} for {self}")
    }

    /// What an administrator would type to set it.
    #[must_use]
    pub fn command(&self, value: &str) -> String {
        match self {
            Self::Sysctl { name } => format!("sysctl -w {name}='{value}'"),
            Self::Ring { interface } => format!("ethtool -G {interface} rx {value}"),
            Self::Coalescing { interface } => format!("ethtool -C {interface} {value}"),
            Self::Queues { interface, of } => {
                format!("ethtool -L {interface} {} {value}", of.name())
            }
            Self::Feature { interface, name } => format!("ethtool -K {interface} {name} {value}"),
            _ => format!("echo '{value}' > {}", self.path().unwrap_or_default()),
        }
    }

    /// Whether two values mean the same: masks have commas and leading zeros, which the kernel writes as it likes.
    #[must_use]
    pub fn is_same(&self, one: &str, other: &str) -> bool {
        let plain = |value: &str| match self {
            Self::Interface { file, .. } if file.ends_with("_cpus") => {
                let digits = value.replace(',', "");
                let digits = digits.trim_start_matches('0');
                if digits.is_empty() { "0".to_owned() } else { digits.to_owned() }
            }
            _ => value.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        plain(one) == plain(other)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sysctl { name } => f.write_str(name),
            Self::Interface { interface, file } => write!(f, "{file} of {interface}"),
            Self::Irq { number } => write!(f, "the affinity of interrupt {number}"),
            Self::Governor { processor } => write!(f, "the governor of processor {processor}"),
            Self::Ring { interface } => write!(f, "the receive ring of {interface}"),
            Self::Coalescing { interface } => write!(f, "the coalescing of {interface}"),
            Self::Queues { interface, .. } => write!(f, "the queues of {interface}"),
            Self::Feature { interface, name } => write!(f, "{name} of {interface}"),
        }
    }
}

/// Digits alone: a number that is written otherwise is none of the kernel's.
fn number<T: FromStr>(value: &str) -> anyhow::Result<T> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = value.parse().ok().filter(|_| is_plain);
    number.with_context(|| format!("{value:?} is no number"))
}

/// A mask of processors, as `00000000,00000003`.
fn mask(value: &str) -> anyhow::Result<()> {
    let is_word =
        |word: &str| (1..=8).contains(&word.len()) && word.bytes().all(|it| it.is_ascii_hexdigit());
    if !value.split(',').all(is_word) {
        bail!("{value:?} is no mask of processors, as `00000000,00000003`");
    }
    Ok(())
}

/// A list of processors, as `0-3,8`.
fn list(value: &str) -> anyhow::Result<()> {
    let is_range = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        number::<u32>(first).is_ok() && number::<u32>(last).is_ok()
    };
    if !value.split(',').all(is_range) {
        bail!("{value:?} is no list of processors, as `0-3,8`");
    }
    Ok(())
}

/// The name of a governor, with the bound of the kernel's `CPUFREQ_NAME_LEN`.
fn governor(value: &str) -> anyhow::Result<()> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    if value.is_empty() || value.len() >= 16 || !value.bytes().all(is_fine) {
        bail!("{value:?} is no name of a governor, as `performance`");
    }
    Ok(())
}

fn switch(value: &str) -> anyhow::Result<bool> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => bail!("{value:?} is neither on nor off"),
    }
}

/// Reads what [`Setting::read`] gives.
fn coalescing(value: &str) -> anyhow::Result<ethtool::Coalescing> {
    let words: Vec<_> = value.split(' ').collect();
    let ["adaptive-rx", adaptive, "rx-usecs", usecs, "rx-frames", frames] = words[..] else {
        bail!("{value:?} is no coalescing, as `adaptive-rx off rx-usecs 50 rx-frames 0`");
    };
    Ok(ethtool::Coalescing {
        rx_usecs: number(usecs)?,
        rx_frames: number(frames)?,
        is_adaptive: switch(adaptive)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Recorded;

    #[test]
    fn nothing_else_is_ever_written() {
        let kernel = Recorded::of_files([("/proc/sys/kernel/panic", "0")]);
        let sysctl = Setting::sysctl;
        let file = |file: &str| Setting::of_interface("eth0", file);
        let feature = |name: &str| Setting::Feature { interface: "eth0".into(), name: name.into() };
        for bad in [
            sysctl("kernel.panic"),
            sysctl("net.core.../../kernel.panic"),
            file("mtu"),
            file("queues/rx-0/../../mtu"),
            file("queues/rx-00/rps_cpus"),
            file("queues/tx-0/rps_cpus"),
            Setting::of_interface("../eth0", "threaded"),
            Setting::of_interface("..", "threaded"),
            Setting::Ring { interface: "a;reboot".into() },
            feature("a b"),
        ] {
            assert!(
                bad.write(&kernel, "1").unwrap_err().to_string().contains("no setting"),
                "{bad}"
            );
        }
        for good in [
            sysctl("net.core.netdev_budget"),
            file("threaded"),
            file("queues/rx-12/rps_cpus"),
            file("queues/tx-0/xps_cpus"),
            feature("rx-gro"),
        ] {
            assert!(good.is_known(), "{good}");
        }
        assert!(kernel.written().is_empty());
    }

    #[test]
    fn values_have_the_form_of_their_setting() {
        let file = |file: &str| Setting::of_interface("eth0", file);
        let name = || "eth0".to_owned();
        let all = [
            (Setting::sysctl("net.core.netdev_budget"), "600"),
            (file("gro_flush_timeout"), "20000"),
            (file("queues/rx-0/rps_cpus"), "00000000,00000003"),
            (file("queues/tx-0/xps_cpus"), "f"),
            (Setting::Irq { number: 38 }, "0-3,8"),
            (Setting::Governor { processor: 0 }, "schedutil"),
            (Setting::Ring { interface: name() }, "4096"),
            (Setting::Queues { interface: name(), of: ChannelKind::Rx }, "4"),
            (Setting::Coalescing { interface: name() }, "adaptive-rx off rx-usecs 50 rx-frames 0"),
            (Setting::Feature { interface: name(), name: "rx-gro".into() }, "off"),
        ];
        for (setting, good) in &all {
            setting.check(good).unwrap();
            // A line more, a command, a substitution of udev or systemd, another word, and nothing.
            for bad in [
                format!("{good}\nkernel.core_pattern = |/bin/x"),
                format!("{good}; reboot"),
                format!("{good}\", RUN+=\"/bin/x"),
                format!("{good}'"),
                format!("{good}$(x)"),
                format!("{good}%k"),
                format!("+{good}"),
                format!("{good} "),
                String::new(),
            ] {
                let said = format!("{:#}", setting.check(&bad).unwrap_err());
                assert!(said.contains("no value of"), "{setting} {bad:?}: {said}");
            }
        }
    }

    #[test]
    fn commands_are_those_of_an_administrator() {
        let queues = |of| Setting::Queues { interface: "eth0".into(), of };
        let said = [
            (
                Setting::sysctl("net.core.netdev_budget"),
                "600",
                "sysctl -w net.core.netdev_budget='600'",
            ),
            (
                Setting::of_interface("eth0", "threaded"),
                "1",
                "echo '1' > /sys/class/net/eth0/threaded",
            ),
            (Setting::Irq { number: 38 }, "0-1", "echo '0-1' > /proc/irq/38/smp_affinity_list"),
            (Setting::Ring { interface: "eth0".into() }, "4096", "ethtool -G eth0 rx 4096"),
            (queues(ChannelKind::Combined), "8", "ethtool -L eth0 combined 8"),
            (queues(ChannelKind::Rx), "2", "ethtool -L eth0 rx 2"),
        ];
        for (setting, value, command) in said {
            assert_eq!(setting.command(value), command);
        }
        let now = "adaptive-rx off rx-usecs 50 rx-frames 0";
        assert_eq!(coalescing(now).unwrap().rx_usecs, 50);
        assert!(coalescing("50").is_err() && switch("1").is_err() && number::<u32>("-1").is_err());
        let mask = Setting::of_interface("eth0", "queues/rx-0/rps_cpus");
        assert!(
            mask.is_same("00000000,00000003", "3")
                && mask.is_same("00", "0")
                && !mask.is_same("1", "2")
        );
    }
}
