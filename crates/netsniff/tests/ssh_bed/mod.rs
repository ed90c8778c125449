//! Two namespaces that stand for two machines: one wire for ssh, one that is measured on, and an sshd of the test's own.
#![allow(dead_code, reason = "no test needs all of it")]

use netsniff_testing::{Need, skip};
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub(crate) const NETSNIFF: &str = env!("CARGO_BIN_EXE_netsniff");

/// The wire that is measured on, at the sender and at the receiver.
pub(crate) const WIRE: [&str; 2] = ["w0", "w1"];

/// The wire that ssh takes.
const MANAGEMENT: [(&str, Ipv4Addr); 2] =
    [("m0", Ipv4Addr::new(10, 77, 0, 1)), ("m1", Ipv4Addr::new(10, 77, 0, 2))];

const PORT: u16 = 2222;

/// Where sshd gives up its rights; Debian makes it when the service starts.
const SEPARATION: &str = "/run/sshd";

/// Both machines, which go with this value.
pub(crate) struct Machines {
    name: String,
    pub(crate) directory: PathBuf,
    sshd: Option<Child>,
    made_separation: bool,
}

fn run(program: &str, words: &[&str]) -> io::Result<Output> {
    let out = Command::new(program).args(words).output()?;
    if out.status.success() {
        return Ok(out);
    }
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    Err(io::Error::other(format!("{program} {words:?}: {said}")))
}

fn ip(words: &[&str]) -> io::Result<Output> {
    run("ip", words)
}

impl Machines {
    /// Makes them; `None`, said loudly, where that cannot be.
    pub(crate) fn make(test: &str) -> Option<Self> {
        for program in ["sshd", "ssh", "ssh-keygen"] {
            if where_is(program).is_none() {
                skip(Need::Program(program), format_args!("{test} needs {program}, of OpenSSH"));
                return None;
            }
        }
        let name = format!("nstwo-{}", std::process::id());
        let directory = std::env::temp_dir().join(&name);
        let mut machines = Self { name, directory, sshd: None, made_separation: false };
        if let Err(why) = ip(&["netns", "add", &machines.sender()]) {
            skip(
                Need::Root,
                format_args!("{test} needs the right to make network namespaces: {why}"),
            );
            return None;
        }
        machines.build().unwrap();
        machines.serve().unwrap();
        Some(machines)
    }

    pub(crate) fn sender(&self) -> String {
        format!("{}-a", self.name)
    }

    pub(crate) fn receiver(&self) -> String {
        format!("{}-b", self.name)
    }

    fn build(&self) -> io::Result<()> {
        let ends = [self.sender(), self.receiver()];
        ip(&["netns", "add", &ends[1]])?;
        for [one, other] in [WIRE, MANAGEMENT.map(|(name, _)| name)] {
            let pair = ["link", "add", one, "netns", &ends[0], "type", "veth", "peer"];
            ip(&[&pair[..], &["name", other, "netns", &ends[1]]].concat())?;
        }
        for (at, end) in ends.iter().enumerate() {
            let off = "net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1";
            let quiet = format!("sysctl -qw {off} || true");
            ip(&["netns", "exec", end, "sh", "-c", &quiet])?;
            let (name, address) = MANAGEMENT[at];
            ip(&["-n", end, "addr", "add", &format!("{address}/24"), "dev", name])?;
            for name in ["lo", name] {
                ip(&["-n", end, "link", "set", name, "up"])?;
            }
            ip(&["-n", end, "link", "set", WIRE[at], "arp", "off", "up"])?;
        }
        for (at, end) in ends.iter().enumerate() {
            let state = ["-n", end, "link", "show", "dev", WIRE[at]];
            until("the wire is up", || {
                String::from_utf8_lossy(&ip(&state).unwrap().stdout).contains("state UP")
            });
        }
        Ok(())
    }

    /// Starts sshd with keys of its own, and waits until it listens.
    fn serve(&mut self) -> io::Result<()> {
        let _ = fs::remove_dir_all(&self.directory);
        fs::create_dir_all(self.directory.join("tmp"))?;
        let at = |name: &str| self.directory.join(name).display().to_string();
        for key in ["host", "user"] {
            run("ssh-keygen", &["-q", "-t", "ed25519", "-N", "", "-f", &at(key)])?;
        }
        fs::copy(at("user.pub"), at("authorized"))?;
        let (_, address) = MANAGEMENT[0];
        let server = format!(
            "ListenAddress {address}:{PORT}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
             PermitRootLogin prohibit-password\nUsePAM no\nSetEnv TMPDIR={}\n",
            at("host"),
            at("authorized"),
            at("tmp")
        );
        fs::write(at("sshd_config"), server)?;
        let known = fs::read_to_string(at("host.pub"))?;
        fs::write(at("known"), format!("[{address}]:{PORT} {known}"))?;
        let client = format!(
            "Host far\n HostName {address}\n Port {PORT}\nHost *\n User root\n IdentityFile {}\n IdentitiesOnly yes\n \
             UserKnownHostsFile {}\n",
            at("user"),
            at("known")
        );
        fs::write(at("ssh_config"), client)?;
        self.made_separation = fs::create_dir(SEPARATION).is_ok();
        let sshd = where_is("sshd").unwrap();
        let log = fs::File::create(self.directory.join("log"))?;
        let config = self.directory.join("sshd_config");
        let child = Command::new("ip")
            .args(["netns", "exec", &self.sender()])
            .arg(sshd)
            .args(["-D", "-e", "-f"])
            .arg(config)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()?;
        self.sshd = Some(child);
        let log = self.directory.join("log");
        until("sshd listens", || fs::read_to_string(&log).unwrap().contains("Server listening"));
        Ok(())
    }

    /// What reaches the other machine.
    pub(crate) fn ssh(&self) -> String {
        format!("ssh -F {}", self.directory.join("ssh_config").display())
    }

    /// `netsniff lab WHAT` at the receiver, which lets the other machine send. Control groups are where they were, which
    /// ip-netns(8) hides.
    pub(crate) fn lab(&self, what: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/run/netns/{}", self.receiver()));
        command.args([NETSNIFF, "lab", what, "--ssh", &self.ssh()]);
        command
    }

    /// `netsniff doctor` at the receiver, whose interfaces it finds in /sys.
    pub(crate) fn doctor(&self) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.receiver(), NETSNIFF, "doctor"]);
        command
    }

    /// What runs on the machine that sends, but for sshd itself.
    pub(crate) fn running_there(&self) -> Vec<String> {
        let out = ip(&["netns", "pids", &self.sender()]).unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let sshd = self.sshd.as_ref().map(|sshd| sshd.id().to_string());
        let others = text.lines().filter(|pid| sshd.as_deref() != Some(*pid));
        let line = |pid: &str| fs::read(format!("/proc/{pid}/cmdline")).ok();
        let lines = others.filter_map(line).map(|line| String::from_utf8_lossy(&line).into_owned());
        lines.map(|line| line.replace('\0', " ")).filter(|line| !line.is_empty()).collect()
    }

    /// Files that are left there.
    pub(crate) fn files_there(&self) -> usize {
        fs::read_dir(self.directory.join("tmp")).unwrap().count()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        if let Some(mut sshd) = self.sshd.take() {
            let _ = sshd.kill();
            let _ = sshd.wait();
        }
        for namespace in [self.sender(), self.receiver()] {
            let _ = ip(&["netns", "del", &namespace]);
        }
        let _ = fs::remove_dir_all(&self.directory);
        if self.made_separation {
            let _ = fs::remove_dir(SEPARATION);
        }
    }
}

/// A program, also one of those that only root has in its path.
fn where_is(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    places.map(|at| at.join(program)).find(|path| Path::new(path).is_file())
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "it does not come to that: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}
