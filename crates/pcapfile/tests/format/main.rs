//! Files made byte by byte: what each part of the formats means, and what damage does.

mod bytes;
mod damage;
mod meaning;
mod merge;
mod robust;
mod round_trip;
mod seeds;
