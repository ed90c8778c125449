//! Which packets of an interface are wanted: by the kernel where it can tell, by us where it cannot.

use std::num::NonZeroU32;

use netsniff_capture::Interface;
use netsniff_console::UsageError;
use netsniff_packet::filter::Filter;
use netsniff_packet::filter::classic::{self, Instruction, Target};

/// A filter and a sample.
#[derive(Clone, Debug)]
pub struct Wanted {
    filter: Option<Filter>,
    sample: Option<NonZeroU32>,
}

/// A program for the kernel, and what is left to do for us.
#[derive(Clone, Debug)]
pub struct Split {
    /// What the kernel is to run; empty where it is to take everything whole.
    pub program: Vec<Instruction>,
    /// What is asked of each packet in user space, with the reason why the kernel cannot.
    pub rest: Option<(Filter, String)>,
}

impl Wanted {
    /// Packets that match all filters, of one in so many pairs of addresses.
    ///
    /// # Errors
    ///
    /// Where the filters cannot be one.
    pub fn new(filters: &[Filter], sample: Option<NonZeroU32>) -> Result<Self, UsageError> {
        let texts: Vec<_> = filters.iter().map(|filter| format!("({})", filter.text())).collect();
        let filter = match filters {
            [] => None,
            [one] => Some(one.clone()),
            _ => {
                let both = Filter::parse(&texts.join(" and "));
                Some(both.map_err(|error| UsageError(format!("filter: {error}")))?)
            }
        };
        Ok(Self { filter, sample: sample.filter(|sample| sample.get() > 1) })
    }

    /// The text of the filter.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.filter.as_ref().map(Filter::text)
    }

    /// One in so many pairs of addresses is taken.
    #[must_use]
    pub fn sampling(&self) -> u64 {
        self.sample.map_or(1, |sample| sample.get().into())
    }

    /// The same where not all are.
    #[must_use]
    pub fn sampled(&self) -> Option<u64> {
        Some(self.sampling()).filter(|one_in| *one_in > 1)
    }

    /// Shares the work out for one interface.
    ///
    /// # Errors
    ///
    /// Where the filter has no meaning there, or no sample can be taken.
    pub fn split(&self, interface: &Interface, snaplen: u32) -> Result<Split, UsageError> {
        let options = classic::Options {
            target: Target::Kernel,
            snaplen: NonZeroU32::new(snaplen).unwrap_or(NonZeroU32::MAX),
            sample: self.sample,
        };
        let Interface { name, link_type, .. } = interface;
        let compile = |filter: &Filter| {
            filter.compile(*link_type, &options).map(|program| program.instructions().to_vec())
        };
        let Some(filter) = &self.filter else {
            if self.sample.is_none() {
                return Ok(Split { program: Vec::new(), rest: None });
            }
            return all()
                .and_then(|all| compile(&all).map_err(|error| error.to_string()))
                .map(|program| Split { program, rest: None })
                .map_err(|error| UsageError(format!("--sample on {name}: {error}")));
        };
        filter.check(*link_type).map_err(|error| {
            UsageError(format!("the filter refuses every packet of {name}: {error}"))
        })?;
        match compile(filter) {
            Ok(program) => Ok(Split { program, rest: None }),
            Err(error) => {
                // The sample at least is the kernel's.
                let unfiltered = Self { filter: None, sample: self.sample };
                let split = unfiltered.split(interface, snaplen)?;
                Ok(Split { rest: Some((filter.clone(), error.to_string())), ..split })
            }
        }
    }
}

/// The filter that every packet passes.
fn all() -> Result<Filter, String> {
    Filter::parse("").map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(filters: &[&str], sample: Option<u32>) -> Result<Split, UsageError> {
        let filters: Vec<_> = filters.iter().map(|text| Filter::parse(text).unwrap()).collect();
        let lo = Interface::find("lo").unwrap();
        Wanted::new(&filters, sample.and_then(NonZeroU32::new))?.split(&lo, 1000)
    }

    #[test]
    fn the_kernel_does_what_it_can() {
        let nothing = split(&[], None).unwrap();
        assert!(nothing.program.is_empty() && nothing.rest.is_none());
        let both = split(&["tcp", "port 80 or port 443"], None).unwrap();
        let one = split(&["(tcp) and (port 80 or port 443)"], None).unwrap();
        assert_eq!((both.program, both.rest.is_none()), (one.program, true));
        let sampled = split(&[], Some(8)).unwrap();
        assert!(sampled.program.len() > 5);
        assert!(split(&[], Some(1)).unwrap().program.is_empty(), "one in one is all");
    }

    #[test]
    fn what_is_too_long_for_the_kernel_is_left_to_us() {
        let hosts: Vec<_> = (0..3000).map(|n| format!("10.0.{}.{}", n / 250, n % 250)).collect();
        let long = format!("host {}", hosts.join(" or "));
        let split = split(&[&long], Some(2)).unwrap();
        let (_, why) = split.rest.unwrap();
        assert!(why.contains("4096") || why.contains("4,096"), "{why}");
        assert!(!split.program.is_empty(), "the sample is the kernel's all the same");
    }
}
