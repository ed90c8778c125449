//! Pictures of a paper that are no curves over something that was varied.

/// A picture of what was run or searched.
#[derive(Clone, Debug)]
pub enum Picture {
    /// The path of packets: what each stage lost, of the run of an experiment that lost the most.
    Path {
        /// What it shows, with the paper's own number.
        title: &'static str,
        /// The experiment.
        of: &'static str,
    },
    /// By how much the highest rates of some tools are above those of others, for each size of frames.
    Improvements {
        /// What it shows, with the paper's own number.
        title: &'static str,
        /// What the paper's has.
        caption: &'static str,
        /// The experiment of searches.
        of: &'static str,
        /// Which tools are compared: from the first to the second one.
        pairs: Vec<[&'static str; 2]>,
    },
}
