//! Numbers from which on something is found.

/// A number from which on something is found.
#[derive(Debug)]
pub struct Threshold {
    /// Its name, as `--notice-thresholds` has it.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub doc: &'static str,
    /// Its value unless told.
    pub default: u64,
}

/// The thresholds that somebody set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thresholds(Vec<(&'static str, u64)>);

impl Thresholds {
    /// The value of a threshold.
    #[must_use]
    pub fn get(&self, threshold: &Threshold) -> u64 {
        let set = self.0.iter().rev().find(|(name, _)| *name == threshold.name);
        set.map_or(threshold.default, |&(_, value)| value)
    }

    /// Reads thresholds as `scan_ports=15,scan_hosts=25`, of those that are `known`.
    ///
    /// # Errors
    ///
    /// A sentence, where a name is unknown or a value is no whole number above 0.
    pub fn parse(text: &str, known: &[&'static Threshold]) -> Result<Self, String> {
        text.split(',').map(|part| one(part, known)).collect::<Result<_, _>>().map(Self)
    }
}

fn one(part: &str, known: &[&'static Threshold]) -> Result<(&'static str, u64), String> {
    let (name, value) =
        part.split_once('=').ok_or_else(|| format!("{part:?} is no NAME=NUMBER"))?;
    let (name, value) = (name.trim(), value.trim());
    let Some(found) = known.iter().find(|threshold| threshold.name == name) else {
        let names: Vec<_> = known.iter().map(|threshold| threshold.name).collect();
        return Err(format!("unknown threshold {name:?}; there are {}", names.join(", ")));
    };
    match value.parse() {
        Ok(value) if value > 0 => Ok((found.name, value)),
        _ => Err(format!("{name}: {value:?} is no whole number above 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PORTS: Threshold = Threshold { name: "ports", doc: "Ports.", default: 15 };

    #[test]
    fn thresholds_are_read_or_refused_by_name() {
        let parse = |text| Thresholds::parse(text, &[&PORTS]);
        assert_eq!(Thresholds::default().get(&PORTS), 15);
        assert_eq!(parse(" ports = 3,ports=4").unwrap().get(&PORTS), 4);
        for (text, said) in [
            ("ports", "is no NAME=NUMBER"),
            ("scans=3", "unknown threshold \"scans\"; there are ports"),
            ("ports=0", "is no whole number above 0"),
            ("ports=-1", "is no whole number above 0"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
