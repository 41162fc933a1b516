//! The probe over HTTP, spoken to in bare bytes.

mod client;
mod cuts;
mod faults;
mod lifecycles;
mod outages;
mod streams;
