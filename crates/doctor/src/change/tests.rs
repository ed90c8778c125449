//! Changes are made, taken back, and nothing else is touched.

use std::fs;
use std::path::PathBuf;

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
    assert_eq!(journal.changes().len(), 3);
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
    assert_eq!((kernel.read(BACKLOG).unwrap().as_str(), journal.changes().len()), ("5000", 1));
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
    assert!(after.written().is_empty() && journal.changes().is_empty());
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
    assert!(journal.changes().is_empty() && kernel.written().is_empty());
}

#[test]
fn a_broken_journal_changes_nothing() {
    let folder = Folder::new("broken");
    fs::write(folder.0.join("doctor.journal"), "{\"setting\":\n").unwrap();
    let said = format!("{:#}", Journal::open(&folder.0).unwrap_err());
    assert!(said.contains("doctor.journal:1") && said.contains("nothing was taken back"), "{said}");
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
    let rule = "ACTION==\"add\", SUBSYSTEM==\"net\", KERNEL==\"eth0\", ";
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
