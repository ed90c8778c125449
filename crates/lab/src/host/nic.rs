//! What drives the interfaces of a testbed, and what it does with packets: figures depend on both (PAPERS F12).

use netsniff_capture::Interface;

/// Facts about an interface. `None` is what its driver does not tell.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Nic {
    /// Name of the interface.
    pub interface: String,
    /// Name of the driver.
    pub driver: Option<String>,
    /// The version of that.
    pub version: Option<String>,
    /// Offloads by their names in ethtool(8), and whether they are on; without those that the driver does not tell of.
    pub offloads: Vec<(String, bool)>,
}

impl Nic {
    /// An interface of this network namespace, if there is one of that name.
    pub(crate) fn look(name: &str) -> Option<Self> {
        let interface = Interface::find(name).ok()?;
        let offloads = interface.offloads();
        let told = [
            ("rx-checksumming", offloads.rx_checksum),
            ("tx-checksumming", offloads.tx_checksum),
            ("tso", offloads.tso),
            ("gso", offloads.gso),
            ("gro", offloads.gro),
            ("lro", offloads.lro),
            ("rxvlan", offloads.rxvlan),
        ];
        let told = told.into_iter().filter_map(|(name, is_on)| Some((name.to_owned(), is_on?)));
        Some(Self {
            version: interface.driver_version(),
            interface: interface.name,
            driver: interface.driver,
            offloads: told.collect(),
        })
    }

    /// Its driver in words.
    #[must_use]
    pub fn driven(&self) -> Option<String> {
        let version = self.version.as_ref().map_or_else(String::new, |it| format!(" {it}"));
        self.driver.as_ref().map(|driver| driver.clone() + &version)
    }

    /// Its offloads in words.
    #[must_use]
    pub fn offloaded(&self) -> Option<String> {
        let word = |(name, is_on): &(String, bool)| {
            format!("{name} {}", if *is_on { "on" } else { "off" })
        };
        let words: Vec<_> = self.offloads.iter().map(word).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}
