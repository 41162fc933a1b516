//! Connections that cannot be made: nothing was sent, and it is known soon.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use futures::future::join_all;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use reqwest::{
    Certificate,
    dns::{Name, Resolve, Resolving},
};
use steadfast_classify::{Class, Failure, Phase};
use steadfast_pool::{HttpConnect, HttpFailed, ServerConfig};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    task::JoinHandle,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, rustls};

use crate::support::{Reply, Server, acquired, call, pool_with, soon, text};

const LIMIT: Duration = Duration::from_millis(500);

/// The failure of a connection to `url` within the connect limit.
async fn refused(url: &str, http: HttpConnect) -> Failure {
    let pool = pool_with(http.with_connect_timeout(LIMIT));
    let config = ServerConfig::http("s", url).build().unwrap();
    let session = pool.session("a");

    let failure = soon(session.acquire(&config)).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert_eq!(failure.phase(), Some(Phase::Connect), "{failure}");
    let failed = failure.find_source::<HttpFailed>().expect("how it failed");
    assert!(failed.is_connect(), "{failure}");
    failure
}

#[tokio::test]
async fn refused_connection_was_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);

    let failure = refused(&format!("http://127.0.0.1:{port}/"), HttpConnect::new()).await;

    assert!(!failure.is_permanent());
    assert!(failure.to_string().contains("refused"), "{failure}");
}

#[tokio::test]
async fn host_that_nobody_knows_was_not_sent_to() {
    struct Nobody;
    impl Resolve for Nobody {
        fn resolve(&self, _: Name) -> Resolving {
            Box::pin(async { Err(io::Error::other("no such host").into()) })
        }
    }
    let http = HttpConnect::new().with_client(|client| client.dns_resolver(Nobody).no_proxy());

    let failure = refused("http://nobody.example/", http).await;

    assert!(!failure.is_permanent());
    assert!(failure.to_string().contains("no such host"), "{failure}");
}

#[tokio::test]
async fn host_that_does_not_answer_is_given_up_in_time() {
    // A backlog that is full: whoever comes now is not answered at all.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let fill = (0..8).map(|_| timeout(Duration::from_millis(200), TcpStream::connect(address)));
    let waiting = join_all(fill).await;
    assert!(waiting.iter().any(Result::is_err), "it takes all of them");

    let failure = refused(&format!("http://{address}/"), HttpConnect::new()).await;

    assert!(failure.to_string().contains("in time"), "{failure}");
}

#[tokio::test]
async fn encryption_that_is_not_agreed_on_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();

    let failure = refused(&format!("https://{address}/"), HttpConnect::new()).await;

    assert!(failure.to_string().contains("in time"), "{failure}");
    assert!(!failure.is_permanent());
}

#[tokio::test]
async fn server_that_speaks_no_encryption_was_not_sent_to() {
    let server = Server::start(|_| Some(Reply::status(400, &[], ""))).await;

    let url = server.url().replace("http:", "https:");
    let failure = refused(&url, HttpConnect::new()).await;

    assert!(server.seen().is_empty(), "{failure}");
}

#[tokio::test]
async fn bad_certificate_is_permanent() {
    let tls = Tls::start().await;

    let failure = refused(&tls.url, HttpConnect::new()).await;

    assert!(failure.is_permanent(), "{failure}");
    assert!(failure.to_string().contains("certificate"), "{failure}");
}

#[tokio::test]
async fn encrypted_server_with_a_root_of_ours_is_spoken_to() {
    let tls = Tls::start().await;
    let root = tls.root.clone();
    let http = HttpConnect::new().with_client(move |client| {
        let root = Certificate::from_pem(root.as_bytes()).expect("a certificate");
        client.tls_certs_only([root])
    });
    let pool = pool_with(http);
    let config = ServerConfig::http("s", tls.url.clone()).build().unwrap();

    let lease = acquired(&pool, &config).await;

    assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");
}

/// A good server behind encryption.
struct Tls {
    url: String,
    root: String,
    _server: Server,
    accepting: JoinHandle<()>,
}

impl Tls {
    async fn start() -> Self {
        let server = Server::good().await;
        let inside = SocketAddr::from(([127, 0, 0, 1], server.port()));
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = rustls::pki_types::PrivateKeyDer::try_from(signing_key.serialize_der());
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key.unwrap())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepting = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut outside) = acceptor.accept(socket).await else {
                        return;
                    };
                    let mut inside = TcpStream::connect(inside).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
        Self {
            url: format!("https://localhost:{port}/mcp"),
            root: cert.pem(),
            _server: server,
            accepting,
        }
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
