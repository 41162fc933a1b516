//! Tokens that are got, refused and renewed.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::future::{BoxFuture, FutureExt as _, join_all};
use secrecy::{ExposeSecret as _, SecretString};
use steadfast_classify::Class;
use steadfast_pool::{Authorize, AuthorizeError, HttpConnect, HttpRefused, Rejected, ServerConfig};
use tokio::time::sleep;

use crate::support::{Reply, Server, Step, acquired, call, config, pool_with, text};

/// Gives `token-0`, then a next one for each that is refused, as long as it may.
#[derive(Clone, Debug, Default)]
struct Tokens(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    asked: AtomicUsize,
    rejected: Mutex<Vec<String>>,
    /// What the next refusals are answered with instead.
    fails: Mutex<Vec<AuthorizeError>>,
}

impl Authorize for Tokens {
    fn token(
        &self,
        _: &ServerConfig,
        rejected: Option<Rejected>,
    ) -> BoxFuture<'static, Result<Option<SecretString>, AuthorizeError>> {
        let inner = Arc::clone(&self.0);
        async move {
            let token = match rejected {
                None => 0,
                Some(rejected) => {
                    let token = rejected.token.expect("one was sent");
                    let token = token.expose_secret().to_owned();
                    assert_eq!(rejected.challenge.as_deref(), Some("Bearer realm=\"r\""));
                    inner.rejected.lock().unwrap().push(token);
                    // Long enough for all others to be refused too.
                    sleep(Duration::from_millis(200)).await;
                    if let Some(error) = inner.fails.lock().unwrap().pop() {
                        return Err(error);
                    }
                    inner.asked.fetch_add(1, Ordering::SeqCst) + 1
                }
            };
            Ok(Some(SecretString::from(format!("token-{token}"))))
        }
        .boxed()
    }
}

impl Tokens {
    fn rejected(&self) -> Vec<String> {
        self.0.rejected.lock().unwrap().clone()
    }

    fn fail(&self, error: AuthorizeError) {
        self.0.fails.lock().unwrap().push(error);
    }
}

/// A server that takes calls with one of these tokens only, and everything else with any.
async fn strict(good: &'static [&'static str]) -> Server {
    Server::start(move |seen| {
        let token = seen.header("authorization")?.strip_prefix("Bearer ")?;
        let refused = seen.tool().is_some() && !good.contains(&token);
        refused.then(|| Reply::status(401, &[("www-authenticate", "Bearer realm=\"r\"")], ""))
    })
    .await
}

#[tokio::test]
async fn k10_any_number_of_refused_calls_renew_the_token_once_http() {
    let (server, tokens) = (strict(&["token-1"]).await, Tokens::default());
    let pool = pool_with(HttpConnect::new().with_authorize(tokens.clone()));
    let lease = acquired(&pool, &config(&server)).await;
    assert_eq!(
        server.of("initialize")[0].header("authorization"),
        Some("Bearer token-0")
    );

    let results = join_all((0..10).map(|_| call(&lease, "w"))).await;

    for result in results {
        assert_eq!(text(&result.unwrap()), "done");
    }
    assert_eq!(tokens.rejected(), ["token-0"]);
    // Each of them was refused once, and then run once.
    assert_eq!(server.count("tools/call"), 20);
    call(&lease, "w").await.unwrap();
    assert_eq!(server.count("tools/call"), 21);
}

#[tokio::test]
async fn k10_credentials_outlive_a_failure_to_renew_them_http() {
    let (server, tokens) = (strict(&["token-1"]).await, Tokens::default());
    tokens.fail(AuthorizeError::unavailable(io::Error::other("no network")));
    let pool = pool_with(HttpConnect::new().with_authorize(tokens.clone()));
    let lease = acquired(&pool, &config(&server)).await;

    let results = join_all((0..10).map(|_| call(&lease, "w"))).await;
    for result in results {
        let failure = result.unwrap_err();
        assert_eq!(failure.class(), Class::NotSent, "{failure}");
        assert!(!failure.is_permanent(), "{failure}");
        assert!(failure.to_string().contains("no network"), "{failure}");
    }
    assert_eq!(
        tokens.rejected(),
        ["token-0"],
        "one attempt for all of them"
    );

    assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");
    assert_eq!(tokens.rejected(), ["token-0", "token-0"]);
}

#[tokio::test]
async fn credentials_that_are_refused_for_good_end_the_call_with_the_servers_answer() {
    let (server, tokens) = (strict(&[]).await, Tokens::default());
    tokens.fail(AuthorizeError::refused("invalid_grant"));
    let pool = pool_with(HttpConnect::new().with_authorize(tokens.clone()));
    let lease = acquired(&pool, &config(&server)).await;

    for refusals in 1..=2 {
        // The second time there is a newer token, which is refused too.
        let failure = call(&lease, "w").await.unwrap_err();
        assert_eq!(failure.class(), Class::Answered, "{failure}");
        assert!(!failure.may_have_run(), "{failure}");
        let refused = failure.find_source::<HttpRefused>().expect("the 401");
        assert_eq!(refused.challenge(), Some("Bearer realm=\"r\""));
        assert_eq!(tokens.rejected().len(), refusals);
    }
    assert_eq!(server.count("tools/call"), 1 + 2);
}

#[tokio::test]
async fn k10_a_late_refusal_of_an_old_token_leaves_the_new_one_alone_http() {
    // The first call is refused so late that the second has the new token long since.
    let server = Server::start(|seen| {
        let old = seen.header("authorization") == Some("Bearer token-0");
        let challenge = ("www-authenticate", "Bearer realm=\"r\"");
        let refused = Reply::status(401, &[challenge], "");
        match seen.tool()? {
            "w" if old => Some(refused.after(Duration::from_millis(800))),
            "r" if old => Some(refused),
            _ => None,
        }
    })
    .await;
    let tokens = Tokens::default();
    let pool = pool_with(HttpConnect::new().with_authorize(tokens.clone()));
    let lease = acquired(&pool, &config(&server)).await;

    let (late, early) = tokio::join!(call(&lease, "w"), call(&lease, "r"));

    late.unwrap();
    early.unwrap();
    assert_eq!(tokens.rejected(), ["token-0"], "it was asked for again");
}

#[tokio::test]
async fn renewal_goes_on_when_the_calls_that_wait_for_it_are_given_up() {
    let (server, tokens) = (strict(&["token-1"]).await, Tokens::default());
    let pool = pool_with(HttpConnect::new().with_authorize(tokens.clone()));
    let lease = acquired(&pool, &config(&server)).await;

    tokio::select! {
        result = call(&lease, "w") => panic!("too soon: {result:?}"),
        () = async { while tokens.rejected().is_empty() { sleep(Duration::from_millis(5)).await; } } => {}
    }

    assert_eq!(text(&call(&lease, "w").await.unwrap()), "done");
    // It was renewed once, though nobody waited for the first time.
    assert_eq!(tokens.rejected(), ["token-0"]);
}

#[tokio::test]
async fn login_of_a_configuration_is_not_replaced() {
    let server = strict(&["own"]).await;
    let pool = pool_with(HttpConnect::new().with_authorize(Tokens::default()));
    let config = ServerConfig::http("s", server.url())
        .header("authorization", "Bearer own")
        .build()
        .unwrap();
    let lease = acquired(&pool, &config).await;

    call(&lease, "w").await.unwrap();
}

#[tokio::test]
async fn token_that_cannot_be_had_is_a_start_that_was_not_made() {
    #[derive(Debug)]
    struct Panics;
    impl Authorize for Panics {
        fn token(
            &self,
            _: &ServerConfig,
            _: Option<Rejected>,
        ) -> BoxFuture<'static, Result<Option<SecretString>, AuthorizeError>> {
            async { panic!("a bug of the user's") }.boxed()
        }
    }
    let server = Server::start(|_| Some(Reply::new([Step::Hang]))).await;
    let pool = pool_with(HttpConnect::new().with_authorize(Panics));
    let session = pool.session("a");

    let failure = session.acquire(&config(&server)).await.unwrap_err();

    assert_eq!(failure.class(), Class::NotSent, "{failure}");
    assert!(server.seen().is_empty());
}
