//! What takes a tool's output out of a FIFO as a planted disk would.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::pipe::fcntl_setpipe_size;

use super::{Disk, PIPE};
use crate::content::TrafficContent;
use crate::host::process;
use crate::packet_order::PacketOrder;

/// How often to look whether a tool has ended, where nothing comes.
const TICK: Duration = Duration::from_millis(20);

/// How long a disk may be held up by other programs; its schedule makes up for that, and the queues before it hold it.
const MOST_LATE: Duration = Duration::from_millis(50);

/// What a planted disk has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Written {
    /// Bytes that were written in all.
    pub bytes: u64,
    /// Packets in them; `None` where they are no capture.
    pub packets: Option<u64>,
    /// How far these are out of order.
    #[serde(default)]
    pub order: Option<PacketOrder>,
    /// The most nanoseconds that something waited which its schedule would have taken.
    pub late_ns: u64,
    /// Bytes that the pipe before it holds.
    pub pipe: u64,
}

impl Written {
    /// Whether it was as fast as it was to be.
    pub(crate) fn is_punctual(&self) -> bool {
        u128::from(self.late_ns) <= MOST_LATE.as_nanos()
    }
}

/// What it does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// All is taken at once.
    Free,
    /// The schedule holds, from this time on.
    Planted(Instant),
    /// The tool has ended: all that is there is taken, and no more comes.
    Closed,
}

/// The phase, which changes while somebody waits.
#[derive(Debug)]
struct DrainPhase {
    phase: Mutex<Phase>,
    changed: Condvar,
}

impl DrainPhase {
    fn phase(&self) -> MutexGuard<'_, Phase> {
        self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, phase: Phase) {
        *self.phase() = phase;
        self.changed.notify_all();
    }

    /// Waits so long, or until another phase begins.
    fn wait(&self, time: Duration) {
        let phase = self.phase();
        let before = *phase;
        let waited = self.changed.wait_timeout_while(phase, time, |now| *now == before);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// A planted disk at work, which ends with this value.
#[derive(Debug)]
pub(crate) struct Drain {
    course: Arc<DrainPhase>,
    thread: Option<JoinHandle<io::Result<Written>>>,
}

impl Drain {
    /// Makes a FIFO that a tool may write to as its file. Until [`Self::begin`] all is taken at once, so that the tool
    /// begins as ever. `captures` are the processors of the tool, `sender` that of the generator.
    pub(crate) fn open(
        disk: Disk,
        path: &Path,
        captures: &[usize],
        sender: usize,
    ) -> anyhow::Result<Self> {
        let said = || format!("cannot make a FIFO in place of {}", path.display());
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).with_context(said)?;
        // Tools give their rights up.
        fs::set_permissions(path, Permissions::from_mode(0o666)).with_context(said)?;
        let nonblock = OFlags::NONBLOCK.bits().cast_signed();
        let pipe = OpenOptions::new().read(true).custom_flags(nonblock).open(path);
        let pipe = pipe.with_context(said)?;
        let size = fcntl_setpipe_size(&pipe, PIPE as usize).with_context(said)?;
        ensure!(size as u64 == PIPE, "pipes hold {size} bytes here, not {PIPE}");
        let course =
            Arc::new(DrainPhase { phase: Mutex::new(Phase::Free), changed: Condvar::new() });
        let paced = Paced {
            disk,
            pipe,
            course: Arc::clone(&course),
            captures: captures.to_vec(),
            sender,
            turn: Duration::ZERO,
            written: Written::default(),
        };
        let thread = thread::Builder::new().name("disk".to_owned()).spawn(|| paced.take_all());
        Ok(Self { course, thread: Some(thread.context("cannot start a thread")?) })
    }

    /// From now on the disk is as slow as it was planted: frames are sent.
    pub(crate) fn begin(&self) {
        self.course.set(Phase::Planted(Instant::now()));
    }

    /// From now on it takes all at once: what is sent is sent, and what waits in queues was not lost.
    pub(crate) fn release(&self) {
        self.course.set(Phase::Free);
    }

    /// What it has taken, once the tool has ended.
    pub(crate) fn finish(mut self) -> anyhow::Result<Written> {
        self.course.set(Phase::Closed);
        let thread = self.thread.take().context("it is finished once")?;
        let written = thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?;
        written.context("cannot read what a tool wrote")
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.course.set(Phase::Closed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The FIFO, read by the schedule.
struct Paced {
    disk: Disk,
    pipe: File,
    course: Arc<DrainPhase>,
    captures: Vec<usize>,
    sender: usize,
    /// The first time, since the schedule holds, at which something is taken again.
    turn: Duration,
    written: Written,
}

impl Paced {
    /// Takes what comes until the tool has ended, and counts its packets.
    fn take_all(mut self) -> io::Result<Written> {
        // No disk takes a processor from a capture. Where there is no other one, the sender shares its own.
        let _ = process::avoid(&self.captures, self.sender);
        let content = TrafficContent::read(&mut self).ok();
        // What is no capture is written, too.
        io::copy(&mut self, &mut io::sink())?;
        let packets = content.map(|content| content.packets);
        let order = content.map(|content| content.order);
        Ok(Written { packets, order, pipe: PIPE, ..self.written })
    }

    /// Waits until it is time to take something. `is_idle` where nothing was there until now: then nothing is made up for.
    fn wait(&mut self, is_idle: bool) {
        loop {
            let Phase::Planted(begin) = *self.course.phase() else { return };
            let now = begin.elapsed();
            if is_idle {
                self.turn = self.turn.max(now);
            }
            self.turn = self.disk.open(self.turn);
            let Some(time) = self.turn.checked_sub(now).filter(|time| !time.is_zero()) else {
                return;
            };
            self.course.wait(time);
        }
    }

    /// So many bytes were taken.
    fn took(&mut self, bytes: usize, is_idle: bool) {
        self.written.bytes += bytes as u64;
        let Phase::Planted(begin) = *self.course.phase() else { return };
        if !is_idle {
            let late = begin.elapsed().saturating_sub(self.turn).as_nanos();
            self.written.late_ns =
                self.written.late_ns.max(u64::try_from(late).unwrap_or(u64::MAX));
        }
        self.turn = self.disk.done(self.turn, bytes as u64);
        if self.disk.rate.is_none() {
            // What comes is taken then: there is nothing to make up for.
            self.turn = self.turn.max(begin.elapsed());
        }
    }

    /// Waits for a moment until something is there.
    fn look(&self) -> io::Result<()> {
        let mut fds = [PollFd::new(&self.pipe, PollFlags::IN)];
        let time = Timespec { tv_sec: 0, tv_nsec: TICK.subsec_nanos().into() };
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Read for Paced {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut is_idle = false;
        loop {
            self.wait(is_idle);
            let is_closed = *self.course.phase() == Phase::Closed;
            let most = buffer.len().min(self.disk.piece());
            match self.pipe.read(buffer.get_mut(..most).unwrap_or_default()) {
                // Nobody has it open; somebody may again, while the tool runs.
                Ok(0) if is_closed => return Ok(0),
                Ok(0) => self.course.wait(TICK),
                Ok(bytes) => {
                    self.took(bytes, is_idle);
                    return Ok(bytes);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock && is_closed => return Ok(0),
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.look()?,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            is_idle = true;
        }
    }
}
