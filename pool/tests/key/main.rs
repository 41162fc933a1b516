//! Who shares a connection with whom.

mod property;
mod table;
