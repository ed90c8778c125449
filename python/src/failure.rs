//! Failures, and the exceptions that they become.

use netsniff_console::UsageError;
use pyo3::prelude::*;

/// Why something cannot go on.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// Options that make no sense.
    Usage(String),
    /// A file of which nothing can be read.
    Unreadable { file: String, said: String, is_missing: bool },
    /// A file that is damaged, where that is not to be put up with.
    Damaged { file: String, packet: u64, offset: u64, said: String },
    /// Connections that are not in the files.
    Missing(Vec<String>),
    /// All else, in a sentence.
    Other(String),
    /// The stream was closed.
    Closed,
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        match error.downcast::<UsageError>() {
            Ok(UsageError(said)) => Self::Usage(said),
            Err(error) => Self::Other(format!("{error:#}")),
        }
    }
}

impl From<UsageError> for Failure {
    fn from(UsageError(said): UsageError) -> Self {
        Self::Usage(said)
    }
}

impl Failure {
    /// What it says.
    pub(crate) fn said(&self) -> String {
        match self {
            Self::Usage(said) | Self::Other(said) => said.clone(),
            Self::Unreadable { file, said, .. } | Self::Damaged { file, said, .. } => {
                format!("{file}: {said}")
            }
            Self::Missing(uids) => format!(
                "not in the files: {}; uids are those of the same files, with the same timeout and tunnel_ports",
                uids.join(", ")
            ),
            Self::Closed => "it was closed".to_owned(),
        }
    }

    /// The exception of `netsniff._errors` that it is.
    pub(crate) fn raised(&self, py: Python<'_>) -> PyErr {
        self.exception(py).unwrap_or_else(|error| error)
    }

    fn exception(&self, py: Python<'_>) -> PyResult<PyErr> {
        let said = self.said();
        let errors = py.import("netsniff._errors")?;
        let exception = match self {
            Self::Usage(_) => errors.getattr("UsageError")?.call1((said,))?,
            Self::Unreadable { file, is_missing, .. } => {
                let kind = if *is_missing { "MissingFile" } else { "CaptureError" };
                errors.getattr(kind)?.call1((said, file))?
            }
            Self::Damaged { file, packet, offset, .. } => {
                errors.getattr("CaptureError")?.call1((said, file, *packet, *offset))?
            }
            Self::Missing(_) => errors.getattr("NotFound")?.call1((said,))?,
            Self::Other(_) | Self::Closed => errors.getattr("Error")?.call1((said,))?,
        };
        Ok(PyErr::from_value(exception))
    }
}
