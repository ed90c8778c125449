//! What a recording says of the machine that made it.

use std::fs;

use netsniff_pcapfile::Section;

/// Processor, operating system and program; what the system does not tell is left out.
#[must_use]
pub fn section() -> Section {
    Section {
        hardware: fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| processor(&text)),
        os: system(),
        application: Some(concat!("netsniff ", env!("CARGO_PKG_VERSION")).to_owned()),
        comments: Vec::new(),
    }
}

fn processor(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn system() -> Option<String> {
    let read = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        Some(text.trim().to_owned())
    };
    Some(format!("{} {}", read("ostype")?, read("osrelease")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_once() {
        let text = "processor\t: 0\nmodel name\t: A CPU @ 2GHz\n\nmodel name\t: A CPU @ 2GHz\n";
        assert_eq!(processor(text).as_deref(), Some("A CPU @ 2GHz"));
        assert_eq!(processor("model name\t:\n"), None);
    }
}
