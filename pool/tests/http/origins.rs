//! Where requests go, and what goes with them.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use steadfast_classify::Class;
use steadfast_pool::{HttpConnect, HttpRefused, ServerConfig};

use crate::support::{Reply, Server, Step, acquired, call, config, pool, pool_with, soon, text};

fn redirect(status: u16, to: &str) -> Reply {
    Reply::status(status, &[("location", to)], "elsewhere")
}

#[tokio::test]
async fn k05_a_redirect_to_another_origin_is_not_followed_http() {
    let other = Server::good().await;
    let to = other.url();
    let server = Server::start(move |seen| {
        seen.tool()
            .map(|_| redirect(if seen.nth == 0 { 307 } else { 308 }, &to))
    })
    .await;
    let pool = pool();
    let config = ServerConfig::http("s", server.url())
        .header("authorization", "Bearer canary")
        .build()
        .unwrap();
    let lease = acquired(&pool, &config).await;

    for status in [307, 308] {
        let failure = call(&lease, "w").await.unwrap_err();
        assert_eq!(failure.class(), Class::Answered, "{failure}");
        assert!(!failure.may_have_run(), "{failure}");
        let refused = failure.find_source::<HttpRefused>().expect("the status");
        assert_eq!(refused.status(), status);
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn k05_a_redirect_within_the_origin_keeps_method_and_body_http() {
    for status in [307, 308] {
        let server = Server::start(move |seen| {
            seen.tool()?;
            match seen.path.as_str() {
                "/mcp" => Some(redirect(status, "/moved?a=b")),
                "/moved?a=b" => Some(redirect(status, "again")),
                _ => None,
            }
        })
        .await;
        let pool = pool();
        let lease = acquired(&pool, &config(&server)).await;

        assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");

        let calls = server.of("tools/call");
        let paths: Vec<_> = calls.iter().map(|seen| seen.path.as_str()).collect();
        assert_eq!(paths, ["/mcp", "/moved?a=b", "/again"]);
        assert!(calls.iter().all(|seen| seen.verb == "POST"));
        assert!(calls.iter().all(|seen| seen.body == calls[0].body));
    }
}

#[tokio::test]
async fn k05_other_redirects_are_errors_and_loops_are_bounded_http() {
    for (status, asked) in [(301, 1), (302, 1), (303, 1), (307, 4), (308, 4)] {
        let server = Server::start(move |seen| seen.tool().map(|_| redirect(status, "/mcp"))).await;
        let pool = pool();
        let lease = acquired(&pool, &config(&server)).await;

        let failure = call(&lease, "w").await.unwrap_err();

        assert_eq!(failure.class(), Class::Answered, "{failure}");
        assert_eq!(server.count("tools/call"), asked, "HTTP status {status}");
    }
}

/// Finds its server until that has redirected a call.
struct Resolver(Arc<AtomicBool>, u16);

impl Resolve for Resolver {
    fn resolve(&self, _: Name) -> Resolving {
        let (gone, port) = (self.0.load(Ordering::SeqCst), self.1);
        Box::pin(async move {
            if gone {
                return Err(io::Error::other("it is gone").into());
            }
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            Ok(Box::new(std::iter::once(address)) as Addrs)
        })
    }
}

#[tokio::test]
async fn redirect_to_where_nobody_is_any_more_ran_nothing() {
    // Each connection is used once, so that the second request needs another.
    let gone = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&gone);
    let server = Server::start(move |seen| {
        if seen.verb == "GET" {
            return Some(Reply::status(405, &[], "").then(Step::Close));
        }
        seen.tool()?;
        switch.store(true, Ordering::SeqCst);
        Some(redirect(307, "/mcp").then(Step::Close))
    })
    .await;
    let port = server.port();
    let http = HttpConnect::new().with_client(move |client| {
        let client = client.pool_max_idle_per_host(0);
        client
            .dns_resolver(Resolver(Arc::clone(&gone), port))
            .no_proxy()
    });
    let pool = pool_with(http);
    let config = ServerConfig::http("s", format!("http://some.example:{port}/mcp"));
    let lease = acquired(&pool, &config.build().unwrap()).await;

    let failure = call(&lease, "w").await.unwrap_err();

    // The first server refused it, and the second was never sent it.
    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert!(failure.to_string().contains("it is gone"), "{failure}");
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn login_in_the_address_becomes_a_header_and_is_printed_nowhere() {
    let server = Server::good().await;
    let pool = pool();
    let url = server
        .url()
        .replace("127.0.0.1", "us%40er:canary@127.0.0.1");
    let config = ServerConfig::http("s", url).build().unwrap();
    let lease = acquired(&pool, &config).await;
    call(&lease, "w").await.unwrap();

    for seen in server.seen() {
        // "us@er:canary"
        assert_eq!(seen.header("authorization"), Some("Basic dXNAZXI6Y2FuYXJ5"));
        assert!(!seen.path.contains("canary"));
    }
    drop(server);
    tokio::time::sleep(Duration::from_millis(50)).await;
    let failure = soon(call(&lease, "w")).await.unwrap_err();
    assert!(!format!("{failure} {failure:?}").contains("canary"));
}

#[tokio::test]
async fn login_in_the_address_beside_one_in_the_headers_is_refused() {
    let pool = pool();
    let config = ServerConfig::http("s", "http://user:canary@127.0.0.1:9/mcp")
        .header("Authorization", "Bearer canary")
        .build()
        .unwrap();

    let session = pool.session("a");
    let failure = soon(session.acquire(&config)).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent);
    assert!(failure.is_permanent());
    let told = format!("{failure} {failure:?}");
    assert!(
        told.contains("authorization") && !told.contains("canary"),
        "{told}"
    );
}

#[tokio::test]
async fn address_that_is_none_is_refused() {
    let pool = pool();
    for url in [
        "http://[::canary]/",
        "http://127.0.0.1:canary/",
        "http://a%00canary/",
    ] {
        let config = ServerConfig::http("s", url).build().unwrap();
        let session = pool.session("a");
        let failure = soon(session.acquire(&config)).await.unwrap_err();
        assert_eq!(failure.class(), Class::NotSent, "{url}");
        assert!(failure.is_permanent(), "{url}");
        assert!(
            !format!("{failure} {failure:?}").contains("canary"),
            "{url}"
        );
    }
}

#[test]
fn headers_of_the_transport_are_not_the_configurations() {
    for name in [
        "Accept",
        "Content-Type",
        "Content-Length",
        "Host",
        "Connection",
        "Transfer-Encoding",
        "Mcp-Session-Id",
        "Mcp-Method",
        "Mcp-Param-Region",
        "Last-Event-ID",
    ] {
        let config = ServerConfig::http("s", "http://127.0.0.1/").header(name, "x");
        let errors = config.build().unwrap_err().to_string();
        assert!(
            errors.contains("the transport sets this header"),
            "{errors}"
        );
    }
}

#[tokio::test]
async fn k01_each_connection_sends_its_own_headers_only_http() {
    let server = Server::good().await;
    let pool = pool();
    let config = |token: &str| {
        let config = ServerConfig::http("s", server.url()).shared(true);
        config
            .header("authorization", token.to_owned())
            .build()
            .unwrap()
    };
    let first = acquired(&pool, &config("one")).await;
    let second = acquired(&pool, &config("two")).await;
    for _ in 0..3 {
        call(&first, "w").await.unwrap();
        call(&second, "r").await.unwrap();
    }

    assert_eq!(server.count("initialize"), 2);
    for seen in server.of("tools/call") {
        let own = if seen.tool() == Some("w") {
            "one"
        } else {
            "two"
        };
        assert_eq!(seen.header("authorization"), Some(own));
    }
}
