//! Retry, breaker and timeout around an HTTP client, without MCP.
//!
//! ```text
//! cargo run --example http_client --features http
//! ```
//!
//! A flaky server on loopback answers 503 inside an `Ok`, asks with 429 and `Retry-After`
//! (in seconds and as a date) to be left alone, and breaks connections.

use std::{error::Error, io, time::Duration};

use http_body_util::Full;
use hyper_util::{
    client::legacy::{self, Client},
    rt::TokioExecutor,
};
use steadfast::{
    Class, ClassifyLayer, Failure, Phase,
    circuit_breaker::{self, CircuitBreakerLayer},
    classify::http::{IDEMPOTENCY_KEY, classify_response},
    retry::{self, Backoff, Jitter, RetryLayer},
    timeout::{DeadlineLayer, Settings, TimeoutLayer},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::Instant,
};
use tower::{Service, ServiceBuilder, ServiceExt};

type Body = Full<bytes::Bytes>;
type Request = http::Request<Body>;
type BoxError = Box<dyn Error + Send + Sync>;

/// What is asked, with a key or without, and what is to come out after how many attempts.
type Line = (&'static str, &'static str, bool, &'static str);

const LINES: [Line; 9] = [
    ("GET", "/price?then=503", false, "2 200 OK"),
    ("GET", "/price?then=429-seconds", false, "2 200 OK"),
    ("GET", "/price?then=429-date", false, "2 200 OK"),
    ("GET", "/price?then=reset", false, "2 200 OK"),
    // A gateway's 503 does not prove that nothing was ordered, nor does a lost link.
    ("POST", "/orders?then=503", false, "1 unknown"),
    ("POST", "/orders?then=reset", false, "1 unknown"),
    ("POST", "/orders?then=429-seconds", false, "2 200 OK"),
    ("POST", "/orders?then=reset&with=a+key", true, "2 200 OK"),
    ("GET", "/missing", false, "1 404 Not Found"),
];

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(serve(listener));
    let mut service = stack(Client::builder(TokioExecutor::new()).build_http())?;

    println!("{:<34} {:<16} took", "request", "attempts, outcome");
    for (method, path, key, expected) in LINES {
        let mut request = http::Request::builder()
            .method(method)
            .uri(format!("http://{address}{path}"));
        if key {
            request = request.header(IDEMPOTENCY_KEY, "order-7");
        }
        let request = request.body(Body::default())?;

        let begun = Instant::now();
        let outcome = match service.ready().await?.call(request).await {
            // What the server counted is in its answer.
            Ok(response) => format!("{} {}", attempts(&response), response.status()),
            Err(failure) => format!("{} {}", failure.attempts(), failure.class()),
        };
        let took = begun.elapsed();
        println!(
            "{:<34} {outcome:<16} {took:.1?}",
            format!("{method} {path}")
        );
        assert_eq!(outcome, expected);
    }
    server.abort();
    Ok(())
}

/// The layers around the client, outermost first.
fn stack<C, B>(
    client: C,
) -> Result<impl Service<Request, Response = http::Response<B>, Error = Failure>, BoxError>
where
    C: Service<Request, Response = http::Response<B>, Error = legacy::Error> + Clone,
    B: Send + 'static,
{
    let backoff = Backoff::new(
        Duration::from_millis(50),
        Duration::from_secs(1),
        Jitter::Full,
    )?;
    let retry = retry::Settings::new().with_backoff(backoff);
    let limits = Settings::new().with_read(Duration::from_secs(1));
    Ok(ServiceBuilder::new()
        .layer(DeadlineLayer::new(Duration::from_secs(10))?)
        .layer(RetryLayer::new(retry)?)
        .layer(CircuitBreakerLayer::new(
            "shop",
            circuit_breaker::Settings::new(),
        )?)
        .layer(TimeoutLayer::new(limits)?)
        .layer(ClassifyLayer::new(judge))
        .service(client))
}

/// What a result of this client means.
fn judge<B: Send + 'static>(
    result: Result<http::Response<B>, legacy::Error>,
) -> Result<http::Response<B>, Failure> {
    match result {
        Ok(response) => classify_response(response),
        Err(error) if error.is_connect() => Err(Failure::new(Class::NotSent)
            .with_phase(Phase::Connect)
            .with_source(error)),
        Err(error) => Err(Failure::new(Class::Unknown).with_source(error)),
    }
}

fn attempts<B>(response: &http::Response<B>) -> &str {
    let value = response.headers().get("x-attempts");
    let text = value.and_then(|value| value.to_str().ok());
    text.unwrap_or("1")
}

/// Fails each path the first time in the way that it asks for, and then answers.
async fn serve(listener: TcpListener) -> io::Result<()> {
    let mut seen = std::collections::HashMap::<String, u32>::new();
    loop {
        let (mut stream, _) = listener.accept().await?;
        let Some((line, path)) = read_head(&mut stream).await? else {
            continue;
        };
        let count = seen.entry(line).or_default();
        *count += 1;
        let fault = path.split_once("then=").map(|(_, fault)| fault);
        let fault = fault.map(|fault| fault.split('&').next().unwrap_or(fault));
        let response = match (*count, fault) {
            (1, Some("503")) => "503 Service Unavailable\r\n".to_owned(),
            (1, Some("429-seconds")) => "429 Too Many Requests\r\nretry-after: 1\r\n".to_owned(),
            (1, Some("429-date")) => {
                let date = httpdate::fmt_http_date(in_a_second());
                format!("429 Too Many Requests\r\nretry-after: {date}\r\n")
            }
            (1, Some("reset")) => {
                stream.set_zero_linger()?;
                continue;
            }
            (_, None) => "404 Not Found\r\n".to_owned(),
            (count, Some(_)) => format!("200 OK\r\nx-attempts: {count}\r\n"),
        };
        let head = format!("HTTP/1.1 {response}content-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
    }
}

async fn read_head(stream: &mut TcpStream) -> io::Result<Option<(String, String)>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).await? == 0 {
            return Ok(None);
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    let line = head.lines().next().unwrap_or_default().to_owned();
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    Ok(Some((line, path)))
}

#[allow(clippy::disallowed_methods, reason = "an HTTP date is wall-clock time")]
fn in_a_second() -> std::time::SystemTime {
    std::time::SystemTime::now() + Duration::from_secs(2)
}
