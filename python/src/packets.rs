//! Packets of connections, by what `netsniff extract` runs.

use std::ffi::OsString;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use netsniff::commands::extract::{ExtractArgs, Extracted, Extraction};
use netsniff::words;
use netsniff_pipeline::carving::{Carved, TakeCarved};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure::Failure;

/// Packets that wait: at most some 256 KiB each.
const QUEUE: usize = 64;
/// How often whoever waits for a packet looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// A packet of a connection.
#[pyclass(frozen, get_all, module = "netsniff")]
pub(crate) struct Packet {
    /// Nanoseconds since 1970.
    time_ns: i64,
    data: Py<PyBytes>,
    /// Its bytes on the wire.
    orig_len: u32,
    link_type: u16,
    /// Packets that were lost before it, as the capture tells.
    lost: u64,
}

#[pymethods]
impl Packet {
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.data.bind(py).len()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let (captured, wire) = (self.data.bind(py).len()?, self.orig_len);
        Ok(format!("<netsniff.Packet: {captured} of {wire} bytes at {} ns>", self.time_ns))
    }
}

/// A packet on its way to Python.
struct Taken {
    time_ns: i64,
    data: Vec<u8>,
    orig_len: u32,
    link_type: u16,
    lost: u64,
}

struct Taker(SyncSender<Taken>);

impl TakeCarved for Taker {
    fn packet(&mut self, carved: &Carved<'_>) -> io::Result<()> {
        let packet = &carved.packet;
        let taken = Taken {
            time_ns: packet.timestamp.nanos(),
            data: packet.data.to_vec(),
            orig_len: packet.wire_len,
            link_type: packet.link_type.0,
            lost: carved.lost,
        };
        self.0.send(taken).map_err(|_| io::Error::other(Failure::Closed.said()))
    }
}

type End = Arc<Mutex<Option<Result<Extracted, Failure>>>>;

/// Packets in their order.
#[pyclass(frozen, module = "netsniff")]
pub(crate) struct Packets {
    packets: Mutex<Option<Receiver<Taken>>>,
    end: End,
}

/// Starts an extraction, for which `words` are the arguments of `netsniff extract`.
#[pyfunction]
pub(crate) fn packets(py: Python<'_>, words: Vec<OsString>) -> PyResult<Packets> {
    py.detach(|| started(words)).map_err(|failure| failure.raised(py))
}

fn started(words: Vec<OsString>) -> Result<Packets, Failure> {
    let args: ExtractArgs = words::arguments("extract", words)?;
    let extraction = Extraction::open(&args)?;
    let (sender, receiver) = sync_channel(QUEUE);
    let end = End::default();
    let own = Arc::clone(&end);
    let run = move || {
        let mut taker = Taker(sender);
        let extracted = extraction.run(&mut taker).map_err(|it| Failure::Other(it.to_string()));
        *own.lock().unwrap_or_else(PoisonError::into_inner) = Some(extracted);
        // Whoever finds it gone looks for the end.
        drop(taker);
    };
    let thread = thread::Builder::new().name("netsniff extract".to_owned()).spawn(run);
    thread.map_err(|error| Failure::Other(format!("cannot start a thread: {error}")))?;
    Ok(Packets { packets: Mutex::new(Some(receiver)), end })
}

impl Packets {
    fn next(&self, py: Python<'_>) -> PyResult<Option<Taken>> {
        loop {
            let received = py.detach(|| {
                let packets = self.packets.lock().unwrap_or_else(PoisonError::into_inner);
                packets.as_ref().map(|packets| packets.recv_timeout(LOOK))
            });
            match received {
                None => return Ok(None),
                Some(Ok(taken)) => return Ok(Some(taken)),
                Some(Err(RecvTimeoutError::Timeout)) => py.check_signals()?,
                Some(Err(RecvTimeoutError::Disconnected)) => {
                    self.close(py);
                    return self.ended().map(|_| None).map_err(|failure| failure.raised(py));
                }
            }
        }
    }

    fn ended(&self) -> Result<Extracted, Failure> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let broken = || Err(Failure::Other("it ended before its time".to_owned()));
        let extracted = end.unwrap_or_else(broken)?;
        if extracted.missing.is_empty() {
            return Ok(extracted);
        }
        Err(Failure::Missing(extracted.missing.iter().map(ToString::to_string).collect()))
    }
}

#[pymethods]
impl Packets {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Packet>> {
        let packet = |Taken { time_ns, data, orig_len, link_type, lost }| {
            let data = PyBytes::new(py, &data).unbind();
            Packet { time_ns, data, orig_len, link_type, lost }
        };
        Ok(self.next(py)?.map(packet))
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyAny>) {
        self.close(py);
    }

    fn close(&self, py: Python<'_>) {
        py.detach(|| *self.packets.lock().unwrap_or_else(PoisonError::into_inner) = None);
    }

    /// What is wrong with the files, once all was read.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).clone();
        end.and_then(Result::ok).map(|extracted| extracted.damage).unwrap_or_default()
    }
}
