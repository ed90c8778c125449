//! The sans-IO brain of netsniff: flows, reassembly, protocols and the records they yield.
