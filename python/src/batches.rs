//! Rows on their way to batches, and batches and tables of one log in Python.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array as _, RecordBatch, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use netsniff_analysis::SortKey;
use netsniff_analysis::rows::{LOGS, RowSink};
use netsniff_output::BatchBuilder;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::failure::Failure;
use crate::stream::Books;
use crate::values::Rows;

/// Rows and bytes of a batch, and bytes of all logs that have not become one: what is begun is bounded by that.
const MOST_ROWS: usize = 65_536;
const MOST_BYTES: usize = 4 << 20;
const MOST_BYTES_OF_ALL: usize = 32 << 20;

/// A batch on its way.
pub(crate) struct LogBatch {
    /// The place of its log in the list of logs.
    pub(crate) log: usize,
    pub(crate) batch: RecordBatch,
}

/// Makes batches of rows, and waits until they are taken.
pub(crate) struct BatchSink {
    builders: Vec<Option<BatchBuilder>>,
    /// Bytes of all rows in them.
    bytes: usize,
    taker: SyncSender<LogBatch>,
}

impl BatchSink {
    pub(crate) fn new(taker: SyncSender<LogBatch>) -> Self {
        let builders = LOGS.iter().map(|_| None).collect();
        Self { builders, bytes: 0, taker }
    }

    /// Hands on the rows of a log.
    fn send(&mut self, log: usize) -> anyhow::Result<()> {
        let Some(Some(builder)) = self.builders.get_mut(log) else { return Ok(()) };
        if builder.rows() == 0 {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_sub(builder.bytes());
        let batch = builder.finish()?;
        let gone = |_| anyhow::anyhow!(Failure::Closed.said());
        self.taker.send(LogBatch { log, batch }).map_err(gone)
    }

    fn largest(&self) -> Option<usize> {
        let bytes = |at: &usize| {
            let builder = self.builders.get(*at).and_then(Option::as_ref);
            builder.map_or(0, BatchBuilder::bytes)
        };
        (0..self.builders.len()).max_by_key(bytes)
    }
}

impl RowSink for BatchSink {
    type Error = anyhow::Error;

    fn row(&mut self, log: usize, _: &SortKey, bytes: &[u8]) -> anyhow::Result<()> {
        let (Some(of), Some(builder)) = (LOGS.get(log), self.builders.get_mut(log)) else {
            anyhow::bail!("a row of a log that is not in the list");
        };
        let builder = builder.get_or_insert_with(|| BatchBuilder::new(of));
        let before = builder.bytes();
        builder.push(bytes);
        self.bytes += builder.bytes() - before;
        if builder.rows() >= MOST_ROWS || builder.bytes() >= MOST_BYTES {
            return self.send(log);
        }
        match self.largest().filter(|_| self.bytes >= MOST_BYTES_OF_ALL) {
            Some(largest) => self.send(largest),
            None => Ok(()),
        }
    }

    fn publish(&mut self) -> anyhow::Result<()> {
        (0..self.builders.len()).try_for_each(|log| self.send(log))
    }
}

/// The name of a log by its place.
pub(crate) fn name_of(log: usize) -> &'static str {
    LOGS.get(log).map_or("unknown", |log| log.path)
}

/// Some rows of one log, as columns.
#[pyclass(frozen, module = "netsniff")]
pub(crate) struct Batch {
    log: &'static str,
    batch: RecordBatch,
    /// Whether rows tell their log.
    tells_log: bool,
}

impl Batch {
    pub(crate) fn new(of: LogBatch, tells_log: bool) -> Self {
        Self { log: name_of(of.log), batch: of.batch, tells_log }
    }

    pub(crate) fn told(&self) -> Option<&'static str> {
        self.tells_log.then_some(self.log)
    }

    pub(crate) fn all_rows(&self, py: Python<'_>) -> Rows {
        Rows::new(py, &self.batch.schema(), vec![self.batch.clone()], self.told())
    }
}

#[pymethods]
impl Batch {
    #[getter]
    fn log(&self) -> &'static str {
        self.log
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        columns(&self.batch.schema())
    }

    fn rows(&self, py: Python<'_>) -> Rows {
        self.all_rows(py)
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("<netsniff.Batch: {} rows of {}>", self.batch.num_rows(), self.log)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.batch.schema())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let array = FFI_ArrowArray::new(&StructArray::from(self.batch.clone()).to_data());
        let array = PyCapsule::new_with_value(py, array, c"arrow_array")?;
        Ok((schema_capsule(py, &self.batch.schema())?, array))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        batches_capsule(py, &self.batch.schema(), vec![self.batch.clone()])
    }
}

/// All rows of one log, as columns in batches.
#[pyclass(frozen, module = "netsniff")]
pub(crate) struct Table {
    log: &'static str,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    books: Arc<Books>,
}

impl Table {
    /// The rows of a log that are in these batches.
    pub(crate) fn new(log: usize, batches: Vec<RecordBatch>, books: &Arc<Books>) -> Option<Self> {
        let (of, books) = (LOGS.get(log)?, Arc::clone(books));
        Some(Self { log: of.path, schema: netsniff_output::schema(of), batches, books })
    }

    fn count(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn made_by<'py>(
        this: &Bound<'py, Self>,
        module: &str,
        function: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        this.py().import(module)?.call_method1(function, (this,))
    }
}

#[pymethods]
impl Table {
    #[getter]
    fn log(&self) -> &'static str {
        self.log
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        columns(&self.schema)
    }

    fn rows(&self, py: Python<'_>) -> Rows {
        Rows::new(py, &self.schema, self.batches.clone(), None)
    }

    fn __iter__(&self, py: Python<'_>) -> Rows {
        self.rows(py)
    }

    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.books.summary(py)
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.books.warnings.clone()
    }

    fn to_arrow<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::made_by(this, "pyarrow", "table")
    }

    fn to_polars<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::made_by(this, "polars", "DataFrame")
    }

    fn to_pandas<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = this.py();
        let kept = py.import("pandas")?.getattr("ArrowDtype")?;
        let options = pyo3::types::PyDict::new(py);
        options.set_item("types_mapper", kept)?;
        Self::to_arrow(this)?.call_method("to_pandas", (), Some(&options))
    }

    fn __len__(&self) -> usize {
        self.count()
    }

    fn __repr__(&self) -> String {
        let columns = self.schema.fields().len();
        format!("<netsniff.Table: {} rows of {}, {columns} columns>", self.count(), self.log)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        batches_capsule(py, &self.schema, self.batches.clone())
    }
}

fn columns(schema: &SchemaRef) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

fn batches_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
    batches: Vec<RecordBatch>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = batches.into_iter().map(Ok);
    stream_capsule(py, Box::new(RecordBatchIterator::new(batches, Arc::clone(schema))))
}

/// Batches for whoever reads them through Arrow's C stream interface.
pub(crate) fn stream_capsule(
    py: Python<'_>,
    batches: Box<dyn RecordBatchReader + Send>,
) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(batches);
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// A schema for whoever reads it through Arrow's C data interface.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &SchemaRef,
) -> PyResult<Bound<'py, PyCapsule>> {
    let told = FFI_ArrowSchema::try_from(schema.as_ref());
    let told = told.map_err(|error: ArrowError| Failure::Other(error.to_string()).raised(py))?;
    PyCapsule::new_with_value(py, told, c"arrow_schema")
}
