//! Server processes that cannot be left behind.
//!
//! A server is rarely one process: `npx` starts `sh`, `sh` starts the server, the server starts
//! helpers. This module starts such a tree in a process group of its own and takes the *whole*
//! tree down again, however it ends:
//!
//! | what happens | what is done |
//! |---|---|
//! | [`Process::shutdown`] | stdin is closed → [`Grace::eof`] → `SIGTERM` → [`Grace::term`] → `SIGKILL`, to the group and to what left it |
//! | the server crashes, or exits and leaves children | the same for what is left; the dead leader stays unreaped until then, so that its group id cannot be reused |
//! | [`Process`] is dropped, or a shutdown is dropped halfway | `SIGKILL` to all of it, synchronously, in a runtime or not |
//! | the host itself is killed | the [`Watchdog`] does it |
//!
//! Descendants that left the group (`setsid`) are found in the process table. What counts as proof
//! of descent: a chain of parents up to the server, or the mark that each server gets in its
//! environment (`STEADFAST_POOL`), which stays readable after the parent died. A process is
//! signalled only if its start time is still the one it was found with. Not found is one that left
//! the group, lost its parent *and* wiped its environment. A browser or daemon that a server starts
//! is its descendant too, and ends with it.
//!
//! What is left alive 6 s after a client's end, of a shell, its server and two helpers of that.
//! Ours is what the test `of_the_trees_that_others_leave_behind_nothing_is_left` measures, and
//! prints as this table; the others were measured once, in November 2026 on Linux:
//!
//! | | ours | Python SDK 1.30, 2.3 | TypeScript SDK 1.32, 2.4 | qwen pool 0.24 |
//! |---|---|---|---|---|
//! | C1 the server exits at the end of its input | 0 | 0 | 0 | 0 |
//! | C2 the same, with helpers | 0 | 2 | 2 | 0 |
//! | C3 it ignores that end | 0 | 0 | 1 | 0 |
//! | C4 it ignores `SIGTERM` too, with a helper | 0 | 0 | 2 | 1 |
//! | C5 the host is killed, helpers | 0 | 2 | 2 | 2 |
//! | C6 helpers with `setsid` | 0 | 2 | 2 | 0 |
//! | C7 the server crashed, helpers | 0 | 2 | 2 | 2 |
//!
//! ```no_run
//! use steadfast_pool::process::{Grace, InheritedEnv, Spec, Watchdog, spawn};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let watchdog = Watchdog::new();
//! let env = InheritedEnv::capture().with([("API_TOKEN".into(), "…".into())]);
//! let spec = Spec::new("npx").with_args(["-y", "some-server"]).with_env(env);
//!
//! let server = spawn(&spec, &watchdog, 8 * 1024)?;
//! // … speak over server.stdin and server.stdout …
//! drop(server.stdin);
//! let end = server.process.shutdown(Grace::default()).await;
//! println!("{:?} after {:?}", end.step, end.took);
//! # Ok(())
//! # }
//! ```

mod census;
mod env;
mod error;
mod exit;
mod grace;
mod handle;
mod kill;
mod shutdown;
mod spawn;
mod spec;
mod stderr;
mod sweep;
mod sys;
mod table;
mod watchdog;

#[cfg(all(test, target_os = "linux"))]
mod tests;

#[cfg(all(test, target_os = "linux"))]
pub(crate) use self::table::{Identity, ProcessTable, Row};
pub use self::{
    env::InheritedEnv,
    error::SpawnError,
    exit::Exit,
    grace::Grace,
    handle::Process,
    shutdown::{Shutdown, Step},
    spawn::{Spawned, spawn},
    spec::Spec,
    stderr::StderrTail,
    sweep::SweepReport,
    watchdog::Watchdog,
};
