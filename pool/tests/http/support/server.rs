//! The server itself: sockets, HTTP/1.1, and a well-behaved MCP server below what a test
//! changes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    SOON,
    reply::{Reply, Step, answer, result},
};

/// A server on a port of its own. Dropping it closes it and all its connections.
pub(crate) struct Server {
    inner: Arc<Inner>,
    port: u16,
    accepting: JoinHandle<()>,
}

struct Inner {
    behave: Box<Behave>,
    seen: Mutex<Vec<Seen>>,
    /// The connections that ended while nothing was done for them.
    left: Mutex<Vec<usize>>,
    version: &'static str,
}

type Behave = dyn Fn(&Seen) -> Option<Reply> + Send + Sync;

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Value,
    /// Which connection it came on.
    pub(crate) connection: usize,
    pub(crate) at: Instant,
    /// How many of its kind (verb and method) came before it.
    pub(crate) nth: usize,
}

// === impl Server ===

impl Server {
    /// A server that behaves well, with tools `w` and `r`.
    pub(crate) async fn good() -> Self {
        Self::start(|_| None).await
    }

    /// A server that does as `behave` says, and behaves well where that says nothing.
    pub(crate) async fn start(
        behave: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        Self::speaking("2025-11-25", behave).await
    }

    /// The same, speaking this version of the protocol.
    pub(crate) async fn speaking(
        version: &'static str,
        behave: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self::on(listener, version, behave)
    }

    /// The same, on a port that is there already.
    pub(crate) fn on(
        listener: TcpListener,
        version: &'static str,
        behave: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static,
    ) -> Self {
        let port = listener.local_addr().expect("a port").port();
        let inner = Arc::new(Inner {
            behave: Box::new(behave),
            seen: Mutex::default(),
            left: Mutex::default(),
            version,
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&inner)));
        Self {
            inner,
            port,
            accepting,
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// Everything that came so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.inner
            .seen
            .lock()
            .expect("no test panics in it")
            .clone()
    }

    /// What came of one method, or of one verb other than POST.
    pub(crate) fn of(&self, kind: &str) -> Vec<Seen> {
        let mut seen = self.seen();
        seen.retain(|seen| seen.kind() == kind);
        seen
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.of(kind).len()
    }

    /// Waits until so many of a kind have come, and returns them.
    pub(crate) async fn until(&self, kind: &str, count: usize) -> Vec<Seen> {
        let waiting = async {
            while self.count(kind) < count {
                sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let waited = timeout(SOON, waiting).await;
        waited.unwrap_or_else(|_| panic!("not {count} of {kind}: {:#?}", self.kinds()));
        self.of(kind)
    }

    /// Waits until the other side has left a connection that hangs.
    pub(crate) async fn until_left(&self, connection: usize) {
        let left = || {
            self.inner
                .left
                .lock()
                .expect("no test panics in it")
                .contains(&connection)
        };
        let waiting = async {
            while !left() {
                sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, waiting).await.expect("it is held open");
    }

    /// What came, in the order in which it came.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.seen().iter().map(Seen::kind).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

// === impl Seen ===

impl Seen {
    /// The method of a POST, else the verb.
    pub(crate) fn kind(&self) -> String {
        match self.body["method"].as_str() {
            Some(method) => method.to_owned(),
            None => self.verb.clone(),
        }
    }

    /// The tool that it calls.
    pub(crate) fn tool(&self) -> Option<&str> {
        (self.body["method"] == "tools/call").then(|| self.body["params"]["name"].as_str())?
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// The list of a server with tools `w` and `r`.
pub(crate) fn tools(seen: &Seen) -> Value {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    result(seen, &json!({"tools": [tool("w"), tool("r")]}))
}

async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    // Ends them all when it is aborted.
    let mut connections = tokio::task::JoinSet::new();
    for number in 0.. {
        if let Ok((socket, _)) = listener.accept().await {
            connections.spawn(serve(socket, number, Arc::clone(&inner)));
        }
    }
}

async fn serve(socket: TcpStream, connection: usize, inner: Arc<Inner>) {
    let mut socket = BufReader::new(socket);
    while let Some(seen) = receive(&mut socket, connection, &inner).await {
        let reply = (inner.behave)(&seen).unwrap_or_else(|| inner.well(&seen));
        for step in reply.steps {
            match step {
                Step::Write(bytes) => {
                    if socket.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Wait(wait) => sleep(wait).await,
                Step::Close => return,
                Step::Reset => {
                    let _ = socket.get_ref().set_zero_linger();
                    return;
                }
                Step::Hang => {
                    // The other side's end is all there is to come.
                    let _ = socket.read_u8().await;
                    inner
                        .left
                        .lock()
                        .expect("no test panics in it")
                        .push(connection);
                    return;
                }
            }
        }
    }
}

async fn receive(
    socket: &mut BufReader<TcpStream>,
    connection: usize,
    inner: &Inner,
) -> Option<Seen> {
    let mut line = String::new();
    socket.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace();
    let (verb, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length");
    let length = length.map_or(0, |length| length.parse().expect("a length"));
    let mut body = vec![0; length];
    socket.read_exact(&mut body).await.ok()?;
    let mut seen = Seen {
        verb,
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        connection,
        at: Instant::now(),
        nth: 0,
    };
    let mut all = inner.seen.lock().expect("no test panics in it");
    seen.nth = all
        .iter()
        .filter(|other| other.kind() == seen.kind())
        .count();
    all.push(seen.clone());
    Some(seen)
}

// === impl Inner ===

impl Inner {
    /// What a server does that behaves well.
    fn well(&self, seen: &Seen) -> Reply {
        if seen.verb == "DELETE" {
            return Reply::status(200, &[], "");
        }
        if seen.verb == "GET" {
            return Reply::status(405, &[], "");
        }
        if seen.body["id"].is_null() || seen.body["method"].is_null() {
            return Reply::status(202, &[], "");
        }
        match seen.kind().as_str() {
            "initialize" => {
                let body = result(seen, &self.about(json!({"protocolVersion": self.version})));
                let id = format!("session-{}", seen.nth + 1);
                let headers = [
                    ("content-type", "application/json"),
                    ("mcp-session-id", id.as_str()),
                ];
                Reply::status(200, &headers, &body.to_string())
            }
            "server/discover" => {
                let versions = json!({"supportedVersions": [self.version]});
                Reply::json(&result(seen, &self.about(versions)))
            }
            "tools/list" => Reply::json(&tools(seen)),
            "tools/call" => Reply::json(&answer(seen, "done")),
            "subscriptions/listen" => Reply::status(404, &[], ""),
            _ => Reply::json(&result(seen, &json!({}))),
        }
    }

    fn about(&self, mut about: Value) -> Value {
        about["capabilities"] = json!({"tools": {"listChanged": true}});
        about["serverInfo"] = json!({"name": "test", "version": "1"});
        about["resultType"] = json!("complete");
        about["ttlMs"] = json!(0);
        about["cacheScope"] = json!("private");
        about
    }
}
