//! Changes are made, taken back, and nothing else is touched.

use std::fs;
use std::path::PathBuf;

use netsniff_testing::{Need, skip};

use super::*;
use crate::kernel::Recorded;

const BACKLOG: &str = "/proc/sys/net/core/netdev_max_backlog";
const BUDGET: &str = "/proc/sys/net/core/netdev_budget";

fn kernel() -> Recorded {
    Recorded::of_files([(BACKLOG, "1000"), (BUDGET, "300"), ("/sys/class/net/eth0/threaded", "0")])
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("netsniff-doctor-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn journal(&self) -> Journal {
        Journal::open(&self.0).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn change(setting: Setting, before: &str, after: &str) -> Change {
    Change { setting, before: before.to_owned(), after: after.to_owned() }
}

fn backlog(before: &str, after: &str) -> Change {
    change(Setting::sysctl("net.core.netdev_max_backlog"), before, after)
}

#[test]
fn what_was_changed_is_taken_back_by_another_process() {
    let (kernel, folder) = (kernel(), Folder::new("revert"));
    let mut journal = folder.journal();
    apply(&kernel, &mut journal, &backlog("1000", "4000")).unwrap();
    apply(&kernel, &mut journal, &backlog("4000", "9000")).unwrap();
    let threaded = change(Setting::of_interface("eth0", "threaded"), "0", "1");
    apply(&kernel, &mut journal, &threaded).unwrap();
    assert!(Journal::open(&folder.0).unwrap_err().to_string().contains("another doctor"));
    drop(journal);
    let mut journal = folder.journal();
    assert_eq!(journal.entries().len(), 3);
    let told = revert(&kernel, &mut journal, false).unwrap();
    assert!(told.iter().all(|(_, outcome)| *outcome == Reverted::Restored), "{told:?}");
    assert_eq!(kernel.read(BACKLOG).unwrap(), "1000");
    assert_eq!(kernel.read("/sys/class/net/eth0/threaded").unwrap(), "0");
    assert_eq!(kernel.read(BUDGET).unwrap(), "300");
    assert!(!journal.path().exists() && revert(&kernel, &mut journal, false).unwrap().is_empty());
}

#[test]
fn what_others_changed_since_is_left_alone() {
    let (kernel, folder) = (kernel(), Folder::new("foreign"));
    let mut journal = folder.journal();
    apply(&kernel, &mut journal, &backlog("1000", "4000")).unwrap();
    kernel.write(BACKLOG, "5000").unwrap();
    let told = revert(&kernel, &mut journal, false).unwrap();
    assert_eq!(told[0].1, Reverted::Foreign("5000".to_owned()));
    assert_eq!((kernel.read(BACKLOG).unwrap().as_str(), journal.entries().len()), ("5000", 1));
    let told = revert(&kernel, &mut journal, true).unwrap();
    assert_eq!((&told[0].1, kernel.read(BACKLOG).unwrap().as_str()), (&Reverted::Restored, "1000"));
}

#[test]
fn a_restart_and_an_interface_that_is_gone_need_nothing() {
    let folder = Folder::new("restart");
    let before = kernel();
    let mut journal = folder.journal();
    apply(&before, &mut journal, &backlog("1000", "4000")).unwrap();
    let threaded = change(Setting::of_interface("eth0", "threaded"), "0", "1");
    apply(&before, &mut journal, &threaded).unwrap();
    let after = Recorded::of_files([(BACKLOG, "1000")]);
    let told = revert(&after, &mut journal, false).unwrap();
    let outcomes: Vec<_> = told.into_iter().map(|(_, outcome)| outcome).collect();
    assert_eq!(outcomes, [Reverted::Gone, Reverted::AsBefore]);
    assert!(after.written().is_empty() && journal.entries().is_empty());
}

#[test]
fn what_the_kernel_does_not_take_is_forgotten() {
    let (kernel, folder) = (kernel(), Folder::new("refused"));
    let mut journal = folder.journal();
    for bad in [
        change(Setting::sysctl("net.core.rmem_max"), "1", "2"),
        change(Setting::sysctl("kernel.panic"), "0", "1"),
        backlog("999", "4000"),
    ] {
        assert!(apply(&kernel, &mut journal, &bad).is_err(), "{bad:?}");
    }
    assert!(journal.entries().is_empty() && kernel.written().is_empty());
}

/// A kernel after this start, in this network namespace, with files.
fn started(boot: &str, namespace: u64, files: &[(&str, &str)]) -> Recorded {
    let mut answers = serde_json::Map::new();
    for (path, text) in files.iter().chain(&[("/proc/sys/kernel/random/boot_id", boot)]) {
        answers.insert(format!("read {path}"), serde_json::json!([{"text": text}]));
    }
    let link = format!("net:[{namespace}]");
    answers.insert("target /proc/self/ns/net".to_owned(), serde_json::json!([{"text": link}]));
    Recorded::new(serde_json::from_value(answers.into()).unwrap())
}

fn outcomes(kernel: &dyn Kernel, journal: &mut Journal) -> Vec<Reverted> {
    let told = revert(kernel, journal, false).unwrap();
    told.into_iter().map(|(_, outcome)| outcome).collect()
}

#[test]
fn several_changes_of_a_setting_are_one_way_back() {
    let (kernel, folder) = (kernel(), Folder::new("chain"));
    let mut journal = folder.journal();
    apply(&kernel, &mut journal, &backlog("1000", "4000")).unwrap();
    apply(&kernel, &mut journal, &backlog("4000", "16000")).unwrap();
    // Somebody has taken the second one back by hand: it is the doctor's value still.
    kernel.write(BACKLOG, "4000").unwrap();
    let [(_, None)] = &preview(&kernel, journal.entries(), false)[..] else { panic!("not ours") };
    let told = revert(&kernel, &mut journal, false).unwrap();
    assert_eq!(told, [(backlog("1000", "16000"), Reverted::Restored)]);
    assert_eq!(kernel.read(BACKLOG).unwrap(), "1000");
    // A restart has taken both back.
    apply(&kernel, &mut journal, &backlog("1000", "4000")).unwrap();
    apply(&kernel, &mut journal, &backlog("4000", "16000")).unwrap();
    let after = Recorded::of_files([(BACKLOG, "1000")]);
    assert_eq!(outcomes(&after, &mut journal), [Reverted::AsBefore]);
    assert!(after.written().is_empty() && !journal.path().exists());
}

#[test]
fn a_restart_begins_anew_unless_a_file_has_made_the_change_again() {
    for (value, way_back) in [("2000", "2000"), ("4000", "1000")] {
        let folder = Folder::new(&format!("boots-{value}"));
        let mut journal = folder.journal();
        let first = started("a", 1, &[(BACKLOG, "1000")]);
        apply(&first, &mut journal, &backlog("1000", "4000")).unwrap();
        let second = started("b", 2, &[(BACKLOG, value)]);
        apply(&second, &mut journal, &backlog(value, "9000")).unwrap();
        drop(journal);
        assert_eq!(outcomes(&second, &mut folder.journal()), [Reverted::Restored]);
        assert_eq!(second.read(BACKLOG).unwrap(), way_back);
    }
}

#[test]
fn changes_of_another_namespace_are_kept() {
    let folder = Folder::new("namespace");
    let mut journal = folder.journal();
    let file = "/sys/class/net/eth0/threaded";
    let inside = started("a", 7, &[(BACKLOG, "1000"), (file, "0")]);
    apply(&inside, &mut journal, &backlog("1000", "4000")).unwrap();
    let threaded = change(Setting::of_interface("eth0", "threaded"), "0", "1");
    apply(&inside, &mut journal, &threaded).unwrap();
    // Its interface of that name is another one, and the backlog is of the whole machine.
    let outside = started("a", 8, &[(BACKLOG, "4000"), (file, "1")]);
    let told = outcomes(&outside, &mut journal);
    assert_eq!(told, [Reverted::Elsewhere, Reverted::Restored]);
    assert_eq!((outside.written().len(), journal.changes()), (1, vec![threaded]));
    // Where it cannot be read here, it may be there.
    apply(&inside, &mut journal, &backlog("4000", "5000")).unwrap();
    let empty = started("a", 8, &[]);
    assert!(matches!(outcomes(&empty, &mut journal)[..], [Reverted::Failed(_), _]));
    assert_eq!(journal.entries().len(), 2);
    assert_eq!(outcomes(&inside, &mut journal), [Reverted::Restored, Reverted::Restored]);
    assert_eq!(inside.read(file).unwrap(), "0");
}

#[test]
fn an_interrupt_of_another_boot_is_another_one() {
    const IRQ: &str = "/proc/irq/38/smp_affinity_list";
    let irq = change(Setting::Irq { number: 38 }, "0-1", "1");
    for (boot, outcome, value) in
        [("b", Reverted::Restarted, "1"), ("a", Reverted::Restored, "0-1")]
    {
        let folder = Folder::new(&format!("irq-{boot}"));
        let mut journal = folder.journal();
        apply(&started("a", 1, &[(IRQ, "0-1")]), &mut journal, &irq).unwrap();
        let now = started(boot, 1, &[(IRQ, "1")]);
        assert_eq!(outcomes(&now, &mut journal), [outcome]);
        assert_eq!((now.read(IRQ).unwrap().as_str(), journal.entries().len()), (value, 0));
    }
}

#[test]
fn lines_without_a_place_are_read() {
    let folder = Folder::new("old");
    let line = r#"{"setting":{"kind":"irq","number":38},"before":"0-1","after":"1"}"#;
    fs::write(folder.0.join("doctor.journal"), format!("{line}\n")).unwrap();
    let now = started("a", 1, &[("/proc/irq/38/smp_affinity_list", "1")]);
    assert_eq!(outcomes(&now, &mut folder.journal()), [Reverted::Restored]);
}

/// A kernel that makes one value of whatever is written, or cannot be read.
struct Stubborn<'a> {
    inner: &'a Recorded,
    makes: &'a str,
    error: Option<i32>,
}

impl netsniff_capture::ethtool::Ethtool for Stubborn<'_> {
    fn ask(&self, interface: &str, words: &mut [u32]) -> std::io::Result<()> {
        self.inner.ask(interface, words)
    }
}

impl Kernel for Stubborn<'_> {
    fn read(&self, path: &str) -> std::io::Result<String> {
        match self.error {
            Some(number) => Err(std::io::Error::from_raw_os_error(number)),
            None => self.inner.read(path),
        }
    }

    fn list(&self, path: &str) -> std::io::Result<Vec<String>> {
        self.inner.list(path)
    }

    fn target(&self, path: &str) -> std::io::Result<String> {
        self.inner.target(path)
    }

    fn write(&self, path: &str, _: &str) -> std::io::Result<()> {
        self.inner.write(path, self.makes)
    }

    fn holders(&self, wanted: &[String]) -> Vec<(u32, Vec<String>)> {
        self.inner.holders(wanted)
    }

    fn packet_sockets(&self) -> std::io::Result<Vec<netsniff_capture::host::PacketSocket>> {
        self.inner.packet_sockets()
    }

    fn qdiscs(&self) -> std::io::Result<Vec<netsniff_capture::host::Qdisc>> {
        self.inner.qdiscs()
    }
}

#[test]
fn only_what_is_read_again_is_restored() {
    let (kernel, folder) = (kernel(), Folder::new("stubborn"));
    let mut journal = folder.journal();
    // A half that cannot be taken back stays in the journal.
    let clamping = Stubborn { inner: &kernel, makes: "2048", error: None };
    let said =
        format!("{:#}", apply(&clamping, &mut journal, &backlog("1000", "4000")).unwrap_err());
    assert!(said.contains("made 2048 of 1000") && said.contains("it stays in"), "{said}");
    assert_eq!(journal.changes(), [backlog("1000", "4000")]);
    kernel.write(BACKLOG, "4000").unwrap();
    let ignoring = Stubborn { inner: &kernel, makes: "4000", error: None };
    let told = outcomes(&ignoring, &mut journal);
    let why = "the kernel made 4000 of 1000 for net.core.netdev_max_backlog".to_owned();
    assert_eq!(told, [Reverted::Failed(why)]);
    // Nothing but a missing setting is gone: EIO, ENODEV.
    let broken = Stubborn { inner: &kernel, makes: "", error: Some(5) };
    assert!(matches!(outcomes(&broken, &mut journal)[..], [Reverted::Failed(_)]));
    assert_eq!(journal.entries().len(), 1);
    let gone = Stubborn { inner: &kernel, makes: "", error: Some(19) };
    assert_eq!(outcomes(&gone, &mut journal), [Reverted::Gone]);
    // What the kernel left as it was is forgotten.
    kernel.write(BACKLOG, "1000").unwrap();
    let refusing = Stubborn { inner: &kernel, makes: "1000", error: None };
    assert!(apply(&refusing, &mut journal, &backlog("1000", "4000")).is_err());
    assert!(journal.entries().is_empty());
}

#[test]
fn a_broken_journal_changes_nothing() {
    let folder = Folder::new("broken");
    fs::write(folder.0.join("doctor.journal"), "{\"setting\":\n").unwrap();
    let said = format!("{:#}", Journal::open(&folder.0).unwrap_err());
    assert!(said.contains("doctor.journal:1") && said.contains("nothing was taken back"), "{said}");
}

/// A driver with queues: one that receives alone, and such as receive and send, of which there can be `most`.
struct Queues {
    rx: std::cell::Cell<u32>,
    combined: std::cell::Cell<u32>,
    most: u32,
}

impl netsniff_capture::ethtool::Ethtool for Queues {
    fn ask(&self, _: &str, words: &mut [u32]) -> std::io::Result<()> {
        match words[0] {
            0x3c => {
                (words[1], words[4]) = (4, self.most);
                (words[5], words[8]) = (self.rx.get(), self.combined.get());
            }
            0x3d => {
                self.rx.set(words[5]);
                self.combined.set(words[8]);
            }
            _ => return Err(std::io::ErrorKind::Unsupported.into()),
        }
        Ok(())
    }
}

impl Kernel for Queues {
    fn read(&self, _: &str) -> std::io::Result<String> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    fn list(&self, _: &str) -> std::io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn target(&self, _: &str) -> std::io::Result<String> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    fn write(&self, _: &str, _: &str) -> std::io::Result<()> {
        Err(std::io::ErrorKind::NotFound.into())
    }

    fn holders(&self, _: &[String]) -> Vec<(u32, Vec<String>)> {
        Vec::new()
    }

    fn packet_sockets(&self) -> std::io::Result<Vec<netsniff_capture::host::PacketSocket>> {
        Ok(Vec::new())
    }

    fn qdiscs(&self) -> std::io::Result<Vec<netsniff_capture::host::Qdisc>> {
        Ok(Vec::new())
    }
}

#[test]
fn queues_are_set_as_they_are_counted() {
    for (combined, most, before, command) in [
        (4, 16, "4", "/usr/sbin/ethtool -L eth0 combined 8"),
        (0, 0, "1", "/usr/sbin/ethtool -L eth0 rx 8"),
    ] {
        let folder = Folder::new(&format!("queues-{most}"));
        let driver = Queues { rx: 1.into(), combined: combined.into(), most };
        let setting = Setting::queues(&driver, "eth0");
        let mut journal = folder.journal();
        let change = change(setting.clone(), &setting.read(&driver).unwrap(), "8");
        assert_eq!(change.before, before);
        apply(&driver, &mut journal, &change).unwrap();
        let now = if most > 0 { (1, 8) } else { (8, 0) };
        assert_eq!((driver.rx.get(), driver.combined.get()), now);
        fs::create_dir_all(folder.0.join("usr/sbin")).unwrap();
        fs::write(folder.0.join("usr/sbin/ethtool"), "").unwrap();
        let files = persist::files(&folder.0, &journal.changes()).unwrap();
        assert!(files.values().any(|text| text.contains(command)), "{files:?}");
        drop(journal);
        assert_eq!(outcomes(&driver, &mut folder.journal()), [Reverted::Restored]);
        assert_eq!((driver.rx.get(), driver.combined.get()), (1, combined));
    }
}

#[test]
fn a_line_that_would_write_more_is_refused() {
    let folder = Folder::new("crafted");
    let crafted = [
        change(Setting::sysctl("net.core.rmem_max"), "1", "2\nkernel.core_pattern = |/tmp/x"),
        change(Setting::of_interface("eth0", "threaded"), "0", "1\", RUN+=\"/tmp/x"),
        change(Setting::sysctl("kernel.core_pattern"), "1", "2"),
    ];
    for crafted in crafted {
        let line = serde_json::to_string(&crafted).unwrap();
        fs::write(folder.0.join("doctor.journal"), format!("{line}\n")).unwrap();
        let said = format!("{:#}", Journal::open(&folder.0).unwrap_err());
        assert!(said.contains("doctor.journal:1: no change of a setting"), "{said}");
        assert!(persist::files(&folder.0, &[crafted]).is_err());
    }
}

#[test]
fn no_link_is_followed() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new("links");
    let at = |name: &str| folder.0.join(name);
    fs::write(at("victim"), "precious").unwrap();
    for name in ["doctor.lock", "doctor.journal"] {
        symlink(at("victim"), at(name)).unwrap();
        let said = format!("{:#}", Journal::open(&folder.0).unwrap_err());
        assert!(said.contains(name) && said.contains("symbolic link"), "{said}");
        fs::remove_file(at(name)).unwrap();
    }
    symlink(at("victim"), at("doctor.new")).unwrap();
    let mut journal = folder.journal();
    apply(&kernel(), &mut journal, &backlog("1000", "4000")).unwrap();
    fs::create_dir_all(at("etc/sysctl.d")).unwrap();
    symlink(at("victim"), at("etc/sysctl.d/90-netsniff-doctor.conf")).unwrap();
    let said = persist::write(&folder.0, &journal.changes()).unwrap_err().to_string();
    assert!(said.contains("symbolic link"), "{said}");
    assert_eq!(fs::read_to_string(at("victim")).unwrap(), "precious");
}

/// Needs root: an ordinary user relies on whatever it can read.
#[test]
fn root_keeps_no_journal_where_others_write() {
    use std::os::unix::fs::{PermissionsExt as _, chown};
    let folder = Folder::new("trust");
    if chown(&folder.0, Some(65_534), None).is_err() {
        skip(Need::Root, "a folder of another user cannot be made");
        return;
    }
    let refused = |words: &str| {
        for state in [folder.0.clone(), folder.0.join("new")] {
            let said = format!("{:#}", Journal::open(&state).unwrap_err());
            assert!(said.contains(words) && said.contains("--state"), "{said}");
            assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "{said}");
        }
    };
    refused("belongs to the user with the number 65534. Say `chown root");
    chown(&folder.0, Some(0), None).unwrap();
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777)).unwrap();
    refused("can be written by everybody. Say `chmod o-w");
    fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o755)).unwrap();
    drop(folder.journal());
    // What was put there before the folder was closed.
    for name in ["doctor.lock", "doctor.journal"] {
        fs::write(folder.0.join(name), "").unwrap();
        chown(folder.0.join(name), Some(65_534), None).unwrap();
        let said = format!("{:#}", Journal::open(&folder.0).unwrap_err());
        assert!(said.contains(name) && said.contains("belongs to the user"), "{said}");
        chown(folder.0.join(name), Some(0), None).unwrap();
    }
}

#[test]
fn files_outlive_a_restart_and_go_again() {
    let folder = Folder::new("persist");
    fs::create_dir_all(folder.0.join("usr/sbin")).unwrap();
    let changes = [
        backlog("1000", "4000"),
        backlog("4000", "9000"),
        change(Setting::of_interface("eth0", "queues/rx-0/rps_cpus"), "0", "2"),
        change(Setting::Ring { interface: "eth0".into() }, "256", "4096"),
        change(Setting::Governor { processor: 1 }, "powersave", "performance"),
    ];
    let said = persist::write(&folder.0, &changes).unwrap_err().to_string();
    assert!(said.contains("ethtool(8) is needed"), "{said}");
    fs::write(folder.0.join("usr/sbin/ethtool"), "").unwrap();
    let written = persist::write(&folder.0, &changes).unwrap();
    assert_eq!(written.len(), 4);
    let text = |path: &str| fs::read_to_string(folder.0.join(path)).unwrap();
    assert!(
        text("etc/sysctl.d/90-netsniff-doctor.conf")
            .ends_with("\nnet.core.netdev_max_backlog = 9000\n")
    );
    let rules = text("etc/udev/rules.d/90-netsniff-doctor.rules");
    let rule = "ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"eth0\", ";
    assert!(rules.contains(&format!("{rule}ATTR{{queues/rx-0/rps_cpus}}=\"2\"\n")), "{rules}");
    assert!(
        rules.contains(&format!("{rule}RUN+=\"/usr/sbin/ethtool -G eth0 rx 4096\"\n")),
        "{rules}"
    );
    let unit = text("etc/systemd/system/netsniff-doctor.service");
    assert!(
        unit.contains("ExecStart=/bin/sh -c \"echo 'performance' > /sys/devices/system/cpu/cpu1/"),
        "{unit}"
    );
    assert!(unit.ends_with("WantedBy=multi-user.target\n"));
    // Fewer changes leave fewer files.
    assert_eq!(persist::write(&folder.0, &changes[..1]).unwrap().len(), 1);
    assert_eq!(persist::remove(&folder.0).unwrap().len(), 1);
    assert!(persist::remove(&folder.0).unwrap().is_empty());
    fs::write(folder.0.join("etc/sysctl.d/90-netsniff-doctor.conf"), "vm.swappiness = 1\n")
        .unwrap();
    let said = persist::remove(&folder.0).unwrap_err().to_string();
    assert!(said.contains("left alone"), "{said}");
    assert!(persist::write(&folder.0, &changes).is_err());
}
