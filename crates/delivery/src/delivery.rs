//! A target with its spool and its sender.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use netsniff_analysis::rows::LOGS;

use crate::sender::Sender;
use crate::spool::Spool;
use crate::target::{self, Opened};
use crate::{Address, Books};

/// The file in a spool that tells its target.
const URL: &str = "url";
/// How often it is looked whether all is delivered.
const LOOK: Duration = Duration::from_millis(10);
/// How long a sender that was told to end may take, before it is left to itself: it waits for a receiver.
const GRACE: Duration = Duration::from_millis(500);

/// Where spools lie, and how large they become.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of all spools.
    pub spools: PathBuf,
    /// Bytes of each of them at most.
    pub spool_bytes: u64,
}

/// A receiver that was found, and which rows it gets.
#[derive(Debug)]
pub struct Target {
    opened: Opened,
    text: String,
    /// The logs whose rows it gets; all where there is no list.
    logs: Option<Vec<String>>,
}

impl Target {
    /// Finds the receiver of a URL, and reads what is needed to send to it. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// Where the URL makes no sense.
    pub fn open(url: &str) -> anyhow::Result<Self> {
        let mut address = Address::parse(url)?;
        let text = address.text.clone();
        let logs =
            address.take("log").map(|list| list.split(',').map(str::to_owned).collect::<Vec<_>>());
        for name in logs.iter().flatten() {
            ensure!(
                LOGS.iter().any(|log| log.path == name),
                "log={name} is no log; netsniff schema lists them"
            );
        }
        let opened = target::open(address)?;
        let logs = match opened.receiver.logs() {
            None => logs,
            Some(told) => {
                for name in logs.iter().flatten() {
                    ensure!(
                        told.contains(&name.as_str()),
                        "log={name} has no form there; {} has",
                        told.join(", ")
                    );
                }
                Some(logs.unwrap_or_else(|| told.iter().map(|&name| name.to_owned()).collect()))
            }
        };
        Ok(Self { opened, text, logs })
    }

    /// The ports of TCP that it connects to.
    #[must_use]
    pub fn ports(&self) -> &[u16] {
        &self.opened.ports
    }

    /// Whether it gets rows of a log.
    #[must_use]
    pub fn wants(&self, log: &str) -> bool {
        self.logs.as_ref().is_none_or(|logs| logs.iter().any(|name| name == log))
    }

    /// The URL.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The folder of its spool, beside those of other targets.
    #[must_use]
    pub fn folder(&self) -> String {
        let fit = |sign: char| if sign.is_ascii_alphanumeric() || sign == '.' { sign } else { '-' };
        let short: String =
            self.text.split('?').next().unwrap_or_default().chars().map(fit).take(60).collect();
        format!("{short}-{:08x}", crc32fast::hash(self.text.as_bytes()))
    }
}

/// A target that is being sent to.
#[derive(Debug)]
pub struct Delivery {
    spool: Arc<Spool>,
    thread: Option<JoinHandle<()>>,
}

impl Delivery {
    /// Opens the spool of a target, and starts to send what is in it.
    ///
    /// # Errors
    ///
    /// Where the spool cannot be used.
    pub fn start(target: Target, settings: &Settings) -> anyhow::Result<Self> {
        let Target { opened, text, .. } = &target;
        let folder = settings.spools.join(target.folder());
        let spool = Spool::open(&folder, settings.spool_bytes, text)?;
        tell_url(&folder, text)
            .with_context(|| format!("cannot write {}", folder.join(URL).display()))?;
        let bounds = opened.bounds;
        let sender = Sender::new(Arc::clone(&spool), target.opened.receiver, bounds, target.text);
        let thread = std::thread::Builder::new().name("deliver".to_owned());
        let thread =
            thread.spawn(move || sender.run()).context("cannot start a thread to deliver")?;
        Ok(Self { spool, thread: Some(thread) })
    }

    /// Its spool.
    #[must_use]
    pub const fn spool(&self) -> &Arc<Spool> {
        &self.spool
    }

    /// Waits until everything is delivered, as long as something was delivered within `patience`, or the end `begun` not
    /// longer ago; what is left then stays in the spool. No rows must come any more.
    #[must_use]
    pub fn finish(mut self, begun: Instant, patience: Duration) -> Books {
        let is_done = |this: &Self| this.thread.as_ref().is_none_or(JoinHandle::is_finished);
        while !is_done(&self) && self.spool.idle().min(begun.elapsed()) < patience {
            std::thread::sleep(LOOK);
        }
        self.spool.give_up();
        let end = Instant::now() + GRACE;
        while !is_done(&self) && Instant::now() < end {
            std::thread::sleep(LOOK);
        }
        if is_done(&self)
            && let Some(thread) = self.thread.take()
        {
            // A panic was told by its hook; the books have what was delivered before.
            let _ = thread.join();
        }
        self.spool.books()
    }
}

/// Writes down whom a spool is for, where it does not stand there yet. A disk that is full leaves what was there.
fn tell_url(folder: &Path, text: &str) -> std::io::Result<()> {
    let (path, new) = (folder.join(URL), folder.join("url.new"));
    let line = format!("{text}\n");
    if fs::read(&path).is_ok_and(|before| before == line.as_bytes()) {
        return Ok(());
    }
    // What a run left that was killed may be anything, also a link.
    let _ = fs::remove_file(&new);
    let mut file = fs::File::create_new(&new)?;
    file.write_all(line.as_bytes())?;
    fs::rename(new, path)
}

/// The URLs of the spools in a folder.
///
/// # Errors
///
/// Where the folder, or what is in it, cannot be read.
pub fn targets(spools: &Path) -> anyhow::Result<Vec<String>> {
    let read = || -> std::io::Result<Vec<String>> {
        let mut urls = Vec::new();
        for entry in fs::read_dir(spools)? {
            let path = entry?.path().join(URL);
            if path.is_file() {
                urls.push(fs::read_to_string(path)?.trim_end().to_owned());
            }
        }
        urls.sort();
        Ok(urls)
    };
    read().with_context(|| format!("cannot read the spools in {}", spools.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_of_a_spool_is_written_once_and_as_a_whole() {
        let folder = std::env::temp_dir().join(format!("netsniff-url-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let elsewhere = folder.join("elsewhere");
        fs::write(&elsewhere, "mine").unwrap();
        let url = folder.join(URL);
        std::os::unix::fs::symlink(&elsewhere, &url).unwrap();
        tell_url(&folder, "http://a/").unwrap();
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mine", "a link led out of the spool");
        assert_eq!(fs::read_to_string(&url).unwrap(), "http://a/\n");
        let written = || fs::metadata(&url).unwrap().modified().unwrap();
        let before = written();
        std::thread::sleep(Duration::from_millis(20));
        tell_url(&folder, "http://a/").unwrap();
        assert_eq!(written(), before, "what is there is written again");
        fs::remove_dir_all(&folder).unwrap();
    }
}
