//! Making packets: dialogues in virtual time, impairment, and the workloads of the benchmarks.
//!
//! Everything here is sans-IO and seeded: packets go in, packets come out, and the same seed gives the same bytes.
//!
//! | module | concern |
//! |---|---|
//! | [`addresses`] | the addresses of a capture, and others for clones of its hosts |
//! | [`dialogue`] | scripted conversations of two TCP ends, losses and their truth included |
//! | [`edit`] | other Ethernet addresses, VLAN tags, networks and ports for every frame |
//! | [`frame`] | whole frames of TCP and UDP |
//! | [`impair`] | what a capture suffers: lost, late and doubled packets |
//! | [`ledger`] | which stamped frames arrived |
//! | [`pace`] | what happens to a plan where frames are late |
//! | [`plan`] | when each frame is to leave |
//! | [`probe`] | stamped frames of many flows |
//! | [`random`] | [`Random`]: the one source of chance, seeded |
//! | [`resegment`] | the same streams of TCP in smaller or larger segments |
//! | [`rewrite`] | new IP addresses for a frame, everywhere in it, with right checksums |
//! | [`sessions`] | hosts that hold sessions of well-known protocols |
//! | [`sides`] | which hosts of a capture are clients, and which are servers |
//! | [`stamp`] | what proves that a frame arrived |
//! | [`steady`] | times of a capture whose clock went back |
//! | [`workload`] | `small64` and `mix`, the files that benchmarks read |

pub mod addresses;
pub mod dialogue;
pub mod edit;
pub mod frame;
pub mod impair;
pub mod ledger;
pub mod pace;
pub mod plan;
pub mod probe;
pub mod random;
pub mod resegment;
pub mod rewrite;
pub mod sessions;
pub mod sides;
pub mod stamp;
pub mod steady;
pub mod workload;

pub use random::Random;
