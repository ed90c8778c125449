//! An analysis in a thread, whose batches wait in a bounded queue until they are taken.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use netsniff_analysis::rows::LOGS;
use netsniff_output::LogSet;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::batches::{Batch, LogBatch, Table, name_of, schema_capsule, stream_capsule};
use crate::failure::Failure;
use crate::values::Rows;

/// Batches that wait.
const QUEUE: usize = 2;
/// How often whoever waits for a batch looks for signals, such as that of Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// What an analysis leaves behind its last batch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    /// The summary as JSON, where there is one.
    pub(crate) summary: Option<String>,
    /// What must be known to believe the logs.
    pub(crate) warnings: Vec<String>,
}

impl Books {
    /// The summary as Python's values.
    pub(crate) fn summary<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(summary) = &self.summary else { return Ok(None) };
        py.import("json")?.call_method1("loads", (summary,)).map(Some)
    }
}

type End = Result<Books, Failure>;

/// What the thread and whoever reads have in common.
#[derive(Default)]
pub(crate) struct Shared {
    end: Mutex<Option<End>>,
    is_stopped: std::sync::atomic::AtomicBool,
    stop: Mutex<Option<Box<dyn FnMut() + Send>>>,
}

impl Shared {
    /// Whether nobody wants more.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Lets `stop` be called once nobody wants more; at once if that is so.
    pub(crate) fn on_stop(&self, mut stop: impl FnMut() + Send + 'static) {
        let mut kept = lock(&self.stop);
        if self.is_stopped() {
            stop();
        } else {
            *kept = Some(Box::new(stop));
        }
    }

    /// Forgets what was to be called.
    pub(crate) fn forget_stop(&self) {
        *lock(&self.stop) = None;
    }

    fn stop(&self) {
        self.is_stopped.store(true, std::sync::atomic::Ordering::Relaxed);
        if let Some(stop) = &mut *lock(&self.stop) {
            stop();
        }
    }

    fn end(&self) -> End {
        let broken = || Err(Failure::Other("the analysis ended before its time".to_owned()));
        lock(&self.end).clone().unwrap_or_else(broken)
    }
}

/// Batches of the logs that are wanted, in the order in which they come.
#[pyclass(frozen, module = "netsniff")]
pub(crate) struct Stream {
    batches: Mutex<Option<Receiver<LogBatch>>>,
    shared: Arc<Shared>,
    logs: LogSet,
}

impl Stream {
    /// Starts `work` in a thread of its own.
    pub(crate) fn start(
        logs: LogSet,
        work: impl FnOnce(SyncSender<LogBatch>, &Shared) -> End + Send + 'static,
    ) -> Result<Self, Failure> {
        let (sender, receiver) = sync_channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let run = move || {
            // The sender goes behind the end, which whoever finds it gone looks for.
            let keeper = sender.clone();
            let end = work(sender, &own);
            *lock(&own.end) = Some(end);
            drop(keeper);
        };
        let thread = thread::Builder::new().name("netsniff".to_owned()).spawn(run);
        thread.map_err(|error| Failure::Other(format!("cannot start a thread: {error}")))?;
        Ok(Self { batches: Mutex::new(Some(receiver)), shared, logs })
    }

    /// The next batch; waits for it as long as no signal says otherwise.
    fn next(&self, py: Python<'_>) -> PyResult<Option<LogBatch>> {
        loop {
            let received = py.detach(|| {
                let batches = lock(&self.batches);
                let Some(batches) = &*batches else { return Err(RecvTimeoutError::Disconnected) };
                batches.recv_timeout(LOOK)
            });
            match received {
                Ok(batch) => return Ok(Some(batch)),
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().inspect_err(|_| self.stop(py))?;
                }
                Err(RecvTimeoutError::Disconnected) if self.is_taken(py) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => {
                    return self.shared.end().map(|_| None).map_err(|it| it.raised(py));
                }
            }
        }
    }

    /// Whether others read it, or nobody.
    fn is_taken(&self, py: Python<'_>) -> bool {
        py.detach(|| lock(&self.batches).is_none())
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| {
            self.shared.stop();
            *lock(&self.batches) = None;
        });
    }

    fn schema(&self, py: Python<'_>) -> PyResult<SchemaRef> {
        let mut places = self.logs.places();
        match (places.next().and_then(|at| LOGS.get(at)), places.next()) {
            (Some(log), None) => Ok(netsniff_output::schema(log)),
            _ => {
                let said =
                    "a stream of Arrow has one log: name it, as log='conn', or use the batches";
                Err(Failure::Usage(said.to_owned()).raised(py))
            }
        }
    }

    fn is_of_many(&self) -> bool {
        self.logs.places().nth(1).is_some()
    }
}

#[pymethods]
impl Stream {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        Ok(self.next(py)?.map(|batch| Batch::new(batch, self.is_of_many())))
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyAny>) {
        self.stop(py);
    }

    fn close(&self, py: Python<'_>) {
        self.stop(py);
    }

    fn rows(this: Bound<'_, Self>) -> StreamRows {
        StreamRows { stream: this.unbind(), rows: None }
    }

    /// The logs that are wanted.
    #[getter]
    fn logs(&self) -> Vec<&'static str> {
        self.logs.places().map(name_of).collect()
    }

    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let end = lock(&self.shared.end).clone();
        end.and_then(Result::ok).map_or(Ok(None), |books| books.summary(py))
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        let end = lock(&self.shared.end).clone();
        end.and_then(Result::ok).map(|books| books.warnings).unwrap_or_default()
    }

    /// All that comes, as tables by the names of their logs: those that have rows, and with `named` also the others.
    #[pyo3(signature = (named=false))]
    fn collect<'py>(&self, py: Python<'py>, named: bool) -> PyResult<Bound<'py, PyDict>> {
        let mut batches: HashMap<usize, Vec<RecordBatch>> = HashMap::new();
        while let Some(LogBatch { log, batch }) = self.next(py)? {
            batches.entry(log).or_default().push(batch);
        }
        let tables = PyDict::new(py);
        let books = Arc::new(self.shared.end().unwrap_or_default());
        for log in self.logs.places() {
            let own = batches.remove(&log);
            if let Some(own) = own.or_else(|| named.then(Vec::new))
                && let Some(table) = Table::new(log, own, &books)
            {
                tables.set_item(name_of(log), table)?;
            }
        }
        Ok(tables)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema(py)?)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let schema = self.schema(py)?;
        let Some(batches) = py.detach(|| lock(&self.batches).take()) else {
            let said =
                "it is read by others, or closed: a stream can be read once; read() gives tables";
            return Err(Failure::Other(said.to_owned()).raised(py));
        };
        let shared = Arc::clone(&self.shared);
        stream_capsule(py, Box::new(Reader { schema, batches: Some(batches), shared }))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // Others may read what was taken over, until they have enough.
        if lock(&self.batches).take().is_some() {
            self.shared.stop();
        }
    }
}

/// Rows of all batches.
#[pyclass(module = "netsniff")]
pub(crate) struct StreamRows {
    stream: Py<Stream>,
    rows: Option<Rows>,
}

#[pymethods]
impl StreamRows {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        loop {
            if let Some(rows) = &mut self.rows
                && let Some(row) = rows.row(py)?
            {
                return Ok(Some(row));
            }
            let stream = self.stream.get();
            let Some(batch) = stream.next(py)? else { return Ok(None) };
            self.rows = Some(Batch::new(batch, stream.is_of_many()).all_rows(py));
        }
    }
}

/// Batches for whoever reads them through Arrow's C stream interface, in any thread.
struct Reader {
    schema: SchemaRef,
    batches: Option<Receiver<LogBatch>>,
    shared: Arc<Shared>,
}

impl Iterator for Reader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Ok(LogBatch { batch, .. }) = self.batches.as_ref()?.recv() {
            return Some(Ok(batch));
        }
        self.batches = None;
        let failure = self.shared.end().err()?;
        Some(Err(ArrowError::ExternalError(failure.said().into())))
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
