//! Metrics as text, as Prometheus and OpenMetrics have them.

use std::fmt::{Display, Write as _};

/// Which text is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// The text format of Prometheus, version 0.0.4.
    #[default]
    Prometheus,
    /// OpenMetrics, version 1.0.0.
    OpenMetrics,
}

impl Dialect {
    /// What a client takes that says so in `Accept`.
    #[must_use]
    pub fn accepted(by: &str) -> Self {
        if by.contains("application/openmetrics-text") {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// The type of the content.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only rises.
    Counter,
    /// It rises and falls.
    Gauge,
    /// Its labels tell something, and its value is 1.
    Info,
}

impl Kind {
    /// What the names of its samples end with.
    const fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Gauge => "",
            Self::Info => "_info",
        }
    }
}

/// Metrics on their way to a text.
#[derive(Debug)]
pub struct Exposition {
    dialect: Dialect,
    text: String,
}

impl Exposition {
    /// Nothing yet.
    #[must_use]
    pub const fn new(dialect: Dialect) -> Self {
        Self { dialect, text: String::new() }
    }

    /// Adds a metric with its samples, each with its labels and value. What has no sample is absent, since a 0 would be a claim.
    pub fn add<V: Display>(
        &mut self,
        kind: Kind,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels, V)>,
    ) {
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        let suffix = kind.suffix();
        let (family, called) = match (self.dialect, kind) {
            (Dialect::OpenMetrics, Kind::Counter) => (name.to_owned(), "counter"),
            (Dialect::OpenMetrics, Kind::Info) => (name.to_owned(), "info"),
            (Dialect::Prometheus, Kind::Counter) => (format!("{name}{suffix}"), "counter"),
            (_, Kind::Gauge | Kind::Info) => (format!("{name}{suffix}"), "gauge"),
        };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "# HELP {family} {}", help.replace('\\', "\\\\"));
        let _ = writeln!(self.text, "# TYPE {family} {called}");
        for (Labels(labels), value) in samples {
            let _ = match labels.is_empty() {
                true => writeln!(self.text, "{name}{suffix} {value}"),
                false => writeln!(self.text, "{name}{suffix}{{{labels}}} {value}"),
            };
        }
    }

    /// The text.
    #[must_use]
    pub fn finish(mut self) -> String {
        if self.dialect == Dialect::OpenMetrics {
            self.text += "# EOF\n";
        }
        self.text
    }
}

/// Labels of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(String);

impl Labels {
    /// Adds one. Its value may be anything: it is escaped.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let _ = write!(self.0, "{name}=\"{value}\"");
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(dialect: Dialect) -> String {
        let mut all = Exposition::new(dialect);
        let labels = Labels::default().with("path", "a\\b\"c\nd").with("n", "1");
        all.add(Kind::Counter, "rows", "Rows \\ here.", [(labels, 3)]);
        all.add(Kind::Gauge, "open_files", "Files.", [(Labels::default(), 0.5)]);
        all.add(Kind::Info, "build", "What.", [(Labels::default().with("version", "1"), 1)]);
        all.add(Kind::Gauge, "nothing", "Absent.", [] as [(Labels, u64); 0]);
        all.finish()
    }

    #[test]
    fn each_dialect_names_what_it_has_in_its_way() {
        let sample = "rows_total{path=\"a\\\\b\\\"c\\nd\",n=\"1\"} 3\n";
        let prometheus = format!(
            "# HELP rows_total Rows \\\\ here.\n# TYPE rows_total counter\n{sample}\
             # HELP open_files Files.\n# TYPE open_files gauge\nopen_files 0.5\n\
             # HELP build_info What.\n# TYPE build_info gauge\nbuild_info{{version=\"1\"}} 1\n"
        );
        assert_eq!(text(Dialect::Prometheus), prometheus);
        let open = format!(
            "# HELP rows Rows \\\\ here.\n# TYPE rows counter\n{sample}\
             # HELP open_files Files.\n# TYPE open_files gauge\nopen_files 0.5\n\
             # HELP build What.\n# TYPE build info\nbuild_info{{version=\"1\"}} 1\n# EOF\n"
        );
        assert_eq!(text(Dialect::OpenMetrics), open);
    }

    #[test]
    fn a_client_gets_what_it_asks_for() {
        let scraper = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4";
        assert_eq!(Dialect::accepted(scraper), Dialect::OpenMetrics);
        assert_eq!(Dialect::accepted("text/html, */*"), Dialect::Prometheus);
    }
}
