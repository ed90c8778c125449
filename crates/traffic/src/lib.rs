//! Making packets: dialogues in virtual time, impairment, and the workloads of the benchmarks.
