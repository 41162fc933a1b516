//! A connector that lets a test look at the wires of a pool.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _};
use steadfast::{
    Failure, ServerConfig,
    pool::{AnyConnect, Connect, Host, Link, process::Grace},
};
use tokio::time::Instant;

/// Connects as [`AnyConnect`] does, and remembers the links it made.
#[derive(Clone, Debug)]
pub(crate) struct Spy {
    inner: AnyConnect,
    links: Arc<Mutex<Vec<Weak<dyn Link>>>>,
}

// === impl Spy ===

impl Spy {
    pub(crate) fn new() -> Self {
        let short = Duration::from_millis(300);
        Self {
            inner: AnyConnect::new(Grace::new(short, short, Duration::from_secs(1))),
            links: Arc::default(),
        }
    }

    /// A counter of the newest wire that is left: `pending`, `late_answers`,
    /// `stray_progress`, `junk`, `oversized`. They are printed, and have no other name.
    pub(crate) fn count(&self, counter: &str) -> u64 {
        let links = self.links.lock().unwrap();
        let link = links.iter().rev().find_map(Weak::upgrade);
        let printed = format!("{:?}", link.expect("a connection"));
        let (_, rest) = printed
            .split_once(&format!("{counter}: "))
            .expect("it counts that");
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().expect("a number")
    }
}

impl Connect for Spy {
    fn connect(
        &self,
        config: &ServerConfig,
        deadline: Instant,
        host: &Host,
    ) -> BoxFuture<'static, Result<Arc<dyn Link>, Failure>> {
        let made = self.inner.connect(config, deadline, host);
        let links = Arc::clone(&self.links);
        async move {
            let link = made.await?;
            links.lock().unwrap().push(Arc::downgrade(&link));
            Ok(link)
        }
        .boxed()
    }

    fn kill_all(&self) {
        self.inner.kill_all();
    }
}
