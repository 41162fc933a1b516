//! Where connections come in, and how the server goes down and comes back.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::super::knobs::Cut;
use super::connection;
use super::site::Site;
use super::tls::Cipher;

/// How long a port may be somebody else's before the server gives up coming back.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Gate {
    wanted: watch::Sender<Wanted>,
    /// Whether it listens.
    listens: watch::Sender<bool>,
    cuts: watch::Sender<(u64, Cut)>,
    accepted: AtomicU64,
    open: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, Debug)]
enum Wanted {
    Up,
    Down,
    DownUntil(Instant),
}

/// What ends all connections, as one of them hears of it.
#[derive(Debug)]
pub(crate) struct Cuts(watch::Receiver<(u64, Cut)>);

/// Counts a connection while it lives.
struct Open(Arc<AtomicUsize>);

// === impl Gate ===

impl Gate {
    pub(crate) fn new() -> Self {
        Self {
            wanted: watch::Sender::new(Wanted::Up),
            listens: watch::Sender::new(true),
            cuts: watch::Sender::new((0, Cut::Close)),
            accepted: AtomicU64::new(0),
            open: Arc::default(),
        }
    }

    pub(crate) fn cuts(&self) -> Cuts {
        Cuts(self.cuts.subscribe())
    }

    /// Ends all connections; new ones are taken.
    pub(crate) fn cut_all(&self, cut: Cut) {
        self.cuts.send_modify(|cuts| *cuts = (cuts.0 + 1, cut));
    }

    /// How many connections were taken, and how many of them live.
    pub(crate) fn count(&self) -> (u64, usize) {
        let accepted = self.accepted.load(Ordering::Relaxed);
        (accepted, self.open.load(Ordering::Relaxed))
    }

    pub(crate) fn down_for(&self, cut: Cut, time: Duration) {
        self.wanted
            .send_replace(Wanted::DownUntil(Instant::now() + time));
        self.cut_all(cut);
    }

    /// Returns once no connection is left and none is taken.
    pub(crate) async fn go_down(&self, cut: Cut) {
        self.wanted.send_replace(Wanted::Down);
        self.settled(false).await;
        self.cut_all(cut);
        while self.open.load(Ordering::Relaxed) > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) async fn come_back(&self) {
        self.wanted.send_replace(Wanted::Up);
        self.settled(true).await;
    }

    async fn settled(&self, listens: bool) {
        let mut seen = self.listens.subscribe();
        // Its sender is this gate's own.
        let _ = seen.wait_for(|now| *now == listens).await;
    }
}

/// Takes connections until the future is dropped.
pub(crate) async fn run(site: Arc<Site>, listener: TcpListener, cipher: Cipher) -> io::Result<()> {
    let address = listener.local_addr()?;
    let mut wanted = site.gate.wanted.subscribe();
    let mut connections = JoinSet::new();
    let mut listener = Some(listener);
    loop {
        let want = *wanted.borrow_and_update();
        match (want, &listener) {
            (Wanted::Up, None) => listener = Some(bind(address).await?),
            (Wanted::Down | Wanted::DownUntil(_), Some(_)) => listener = None,
            _ => {}
        }
        site.gate.listens.send_replace(listener.is_some());
        tokio::select! {
            stream = accept(listener.as_ref()) => {
                connections.spawn(connect(Arc::clone(&site), stream, cipher.clone()));
            }
            _ = wanted.changed() => {}
            () = until(want) => {
                site.gate.wanted.send_replace(Wanted::Up);
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    let Some(listener) = listener else {
        return std::future::pending().await;
    };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // As a rule too many open files: others close some.
            Err(_) => sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn until(want: Wanted) {
    match want {
        Wanted::DownUntil(end) => tokio::time::sleep_until(end).await,
        Wanted::Up | Wanted::Down => std::future::pending().await,
    }
}

async fn connect(site: Arc<Site>, stream: TcpStream, cipher: Cipher) {
    let number = site.gate.accepted.fetch_add(1, Ordering::Relaxed) + 1;
    let _open = Open::new(&site.gate.open);
    let mut cuts = site.gate.cuts();
    // Small answers are not to wait for more.
    let _ = stream.set_nodelay(true);
    let socket = tokio::select! {
        socket = cipher.accept(stream) => socket,
        _ = cuts.next() => return,
    };
    if let Ok(socket) = socket {
        connection::serve(site, socket, number).await;
    }
}

/// Listens on this port of 127.0.0.1.
pub(crate) async fn listen(port: u16) -> io::Result<TcpListener> {
    bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await
}

async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let end = Instant::now() + PATIENCE;
    loop {
        match TcpListener::bind(address).await {
            // A connection from elsewhere can have the port for a while.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < end => {
                sleep(Duration::from_millis(10)).await;
            }
            bound => return bound,
        }
    }
}

// === impl Cuts ===

impl Cuts {
    /// How all connections end, once they do.
    pub(crate) async fn next(&mut self) -> Cut {
        if self.0.changed().await.is_err() {
            return Cut::Close;
        }
        self.0.borrow_and_update().1
    }
}

// === impl Open ===

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
