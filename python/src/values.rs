//! Rows of batches as Python's values.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float64Type, Int64Type, TimestampMicrosecondType, UInt16Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

/// Rows, one after the other.
#[pyclass(module = "netsniff")]
pub(crate) struct Rows {
    names: Vec<Py<PyString>>,
    batches: std::vec::IntoIter<RecordBatch>,
    batch: Option<RecordBatch>,
    at: usize,
    /// The log, where rows tell it.
    log: Option<&'static str>,
}

impl Rows {
    pub(crate) fn new(
        py: Python<'_>,
        schema: &SchemaRef,
        batches: Vec<RecordBatch>,
        log: Option<&'static str>,
    ) -> Self {
        let names = schema.fields().iter().map(|it| PyString::new(py, it.name()).unbind());
        Self { names: names.collect(), batches: batches.into_iter(), batch: None, at: 0, log }
    }

    /// The next row.
    pub(crate) fn row<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        loop {
            if let Some(batch) = self.batch.as_ref().filter(|batch| self.at < batch.num_rows()) {
                let row = PyDict::new(py);
                if let Some(log) = self.log {
                    row.set_item("_path", log)?;
                }
                for (name, column) in self.names.iter().zip(batch.columns()) {
                    row.set_item(name, value(py, column, self.at)?)?;
                }
                self.at += 1;
                return Ok(Some(row));
            }
            (self.batch, self.at) = (self.batches.next(), 0);
            if self.batch.is_none() {
                return Ok(None);
            }
        }
    }
}

#[pymethods]
impl Rows {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.row(py)
    }
}

/// A value of a column; None where it is not set.
fn value<'py>(py: Python<'py>, column: &dyn Array, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match column.data_type() {
        DataType::Boolean => {
            let value = column.as_boolean().value(row).into_pyobject(py)?;
            value.to_owned().into_any()
        }
        DataType::UInt16 => {
            column.as_primitive::<UInt16Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::UInt64 => {
            column.as_primitive::<UInt64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Int64 => {
            column.as_primitive::<Int64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Float64 => {
            column.as_primitive::<Float64Type>().value(row).into_pyobject(py)?.into_any()
        }
        DataType::Utf8 => PyString::new(py, column.as_string::<i32>().value(row)).into_any(),
        DataType::Timestamp(..) => {
            time(py, column.as_primitive::<TimestampMicrosecondType>().value(row))?
        }
        DataType::List(_) => {
            let list = column.as_list::<i32>().value(row);
            let values: PyResult<Vec<_>> = (0..list.len()).map(|at| value(py, &list, at)).collect();
            PyList::new(py, values?)?.into_any()
        }
        other => {
            let said = format!("a column of the type {other}");
            return Err(pyo3::exceptions::PyTypeError::new_err(said));
        }
    })
}

/// A time of UTC. One that Python has no date for, as of the year 10000, stays a number of microseconds.
fn time(py: Python<'_>, micros: i64) -> PyResult<Bound<'_, PyAny>> {
    const DAY: i64 = 86_400_000_000;
    let datetime = py.import("datetime")?;
    let utc = datetime.getattr("timezone")?.getattr("utc")?;
    let epoch = datetime.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
    let (days, rest) = (micros.div_euclid(DAY), micros.rem_euclid(DAY));
    let span = datetime.getattr("timedelta")?.call1((days, 0, rest));
    match span.and_then(|span| epoch.add(span)) {
        Ok(time) => Ok(time),
        Err(_) => Ok(micros.into_pyobject(py)?.into_any()),
    }
}
