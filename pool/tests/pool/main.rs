//! The pool as its users see it, over in-memory servers and on a paused clock.

mod cases;
mod defects;
mod drain;
mod held;
mod lifecycle;
mod limits;
mod lists;
mod model;
mod races_attach;
mod races_end;
mod races_start;
mod runtimes;
mod superseded;
mod support;
mod threads;
mod views;
