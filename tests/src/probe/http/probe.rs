//! The probe as a library: an HTTP server in this process, with a handle to turn its knobs.

use std::io;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::super::knobs::{Cut, HttpKnobs, Knobs};
use super::super::server::Server;
use super::gate;
use super::requests::HttpRequest;
use super::site::Site;
use super::tls::Cipher;

/// A probe that serves streamable HTTP on 127.0.0.1 until it is dropped.
///
/// ```
/// use serde_json::json;
/// use steadfast_tests::probe::{Cut, HttpProbe, Knobs};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// let knobs = json!({"http": {"faults": [{"on": ["tools/call"], "times": 2, "status": 503}]}});
/// let probe = HttpProbe::start(Knobs::from_json(&knobs.to_string()).unwrap()).await?;
/// assert!(probe.url().starts_with("http://127.0.0.1:"));
///
/// probe.go_down(Cut::Reset).await;
/// probe.come_back().await;
/// assert!(probe.requests().is_empty());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct HttpProbe {
    site: Arc<Site>,
    address: Address,
    task: JoinHandle<()>,
    exited: watch::Receiver<Option<i32>>,
}

/// Where a probe is found, and what it shows.
#[derive(Debug)]
pub(crate) struct Address {
    pub(crate) scheme: &'static str,
    pub(crate) port: u16,
    certificate: Option<String>,
}

// === impl HttpProbe ===

impl HttpProbe {
    /// Starts to listen, as the knob `http` says; without it on any port.
    ///
    /// # Errors
    /// When the port cannot be listened on or a file of the knobs cannot be opened.
    pub async fn start(knobs: Knobs) -> io::Result<Self> {
        let (site, address, serving) = begin(Server::start(knobs)?, true).await?;
        let (exit, exited) = watch::channel(None);
        let running = Arc::clone(&site);
        let task = tokio::spawn(async move {
            let code = tokio::select! {
                code = running.server.exited() => code,
                _ = serving => 1,
            };
            running.sessions.stop();
            exit.send_replace(Some(code));
        });
        Ok(Self {
            site,
            address,
            task,
            exited,
        })
    }

    /// Where it is found.
    #[must_use]
    pub fn url(&self) -> String {
        self.address.url()
    }

    /// The port it listens on, also while it is down.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.address.port
    }

    /// Its certificate as PEM, if it speaks TLS.
    #[must_use]
    pub fn certificate(&self) -> Option<&str> {
        self.address.certificate.as_deref()
    }

    /// The requests received so far.
    #[must_use]
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.site.recorder.noted()
    }

    /// How many of them carried this JSON-RPC method.
    #[must_use]
    pub fn received(&self, rpc: &str) -> usize {
        self.requests().iter().filter(|seen| seen.is(rpc)).count()
    }

    /// How many connections it took so far.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.site.gate.count().0
    }

    /// How many connections live.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.site.gate.count().1
    }

    /// How many sessions it knows.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.site.sessions.count()
    }

    /// How many tool calls run.
    #[must_use]
    pub fn running(&self) -> usize {
        self.site.sessions.running()
    }

    /// Turns knobs; faults count from anew. The port and TLS stay as they were.
    pub fn change(&self, turn: impl FnOnce(&mut HttpKnobs)) {
        self.site.rules.change(turn);
    }

    /// Forgets all sessions; what runs in them goes on.
    pub fn forget_sessions(&self) {
        self.site.sessions.forget();
    }

    /// Ends all connections, and takes new ones.
    pub fn cut_all(&self, cut: Cut) {
        self.site.gate.cut_all(cut);
    }

    /// Ends all connections and refuses new ones from now on. Sessions and calls live on.
    ///
    /// Returns once none is left.
    pub async fn go_down(&self, cut: Cut) {
        self.site.gate.go_down(cut).await;
    }

    /// Listens again, on the same port.
    pub async fn come_back(&self) {
        self.site.gate.come_back().await;
    }

    /// The code with which a knob ended the server, once one did.
    pub async fn exited(&self) -> i32 {
        let mut exited = self.exited.clone();
        let code = exited.wait_for(Option::is_some).await;
        code.ok().and_then(|code| *code).unwrap_or(1)
    }
}

impl Drop for HttpProbe {
    fn drop(&mut self) {
        self.task.abort();
        self.site.sessions.stop();
    }
}

/// Listens; the future serves until it is dropped.
pub(crate) async fn begin(
    server: Arc<Server>,
    remembers: bool,
) -> io::Result<(Arc<Site>, Address, impl Future<Output = io::Result<()>>)> {
    let knobs = server.knobs.http.clone().unwrap_or_default();
    let (cipher, certificate) = Cipher::new(&knobs)?;
    let listener = gate::listen(knobs.port).await?;
    let address = Address {
        scheme: cipher.scheme(),
        port: listener.local_addr()?.port(),
        certificate,
    };
    if let Some(path) = &knobs.port_file {
        address.write(path)?;
    }
    let site = Site::new(server, knobs, remembers)?;
    let serving = gate::run(Arc::clone(&site), listener, cipher);
    Ok((site, address, serving))
}

// === impl Address ===

impl Address {
    pub(crate) fn url(&self) -> String {
        format!("{}://127.0.0.1:{}/mcp", self.scheme, self.port)
    }

    /// In one step, so that nobody reads half of it.
    fn write(&self, path: &std::path::Path) -> io::Result<()> {
        let part = path.with_extension("part");
        std::fs::write(&part, self.port.to_string())?;
        std::fs::rename(part, path)
    }
}
