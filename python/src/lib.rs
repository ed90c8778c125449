//! `netsniff._native`: what the Python package is made of.
//!
//! | module | concern |
//! |---|---|
//! | [`failure`] | what becomes an exception |
//! | [`batches`] | rows on their way to batches, and these in Python |
//! | [`values`] | rows of batches as Python's values |
//! | [`stream`] | an analysis in a thread, whose batches wait in a bounded queue |
//! | [`files`] | analyses of files |
//! | [`live`] | analyses of live traffic, by the command as a process |
//! | [`packets`] | packets of connections |

mod batches;
mod failure;
mod files;
mod live;
mod packets;
mod stream;
mod values;

use netsniff_analysis::rows::LOGS;
use pyo3::prelude::*;

/// The names of all logs.
#[pyfunction]
fn logs() -> Vec<&'static str> {
    LOGS.iter().map(|log| log.path).collect()
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<batches::Batch>()?;
    module.add_class::<batches::Table>()?;
    module.add_class::<packets::Packet>()?;
    module.add_class::<packets::Packets>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<stream::StreamRows>()?;
    module.add_class::<values::Rows>()?;
    module.add_function(wrap_pyfunction!(logs, module)?)?;
    module.add_function(wrap_pyfunction!(files::analyse, module)?)?;
    module.add_function(wrap_pyfunction!(live::capture, module)?)?;
    module.add_function(wrap_pyfunction!(packets::packets, module)?)?;
    Ok(())
}
