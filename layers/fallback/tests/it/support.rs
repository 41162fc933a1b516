//! A request, an answer, a server and a slow store to test with.

use std::{
    collections::VecDeque,
    future::{Future, Ready, ready},
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use steadfast_classify::{Call, CallContext, Cause, Class, Effect, Failure, Source, Tag};
use steadfast_fallback::{
    Bounds, Caller, Chain, FallbackLayer, Generations, Kept, Key, Memory, Question, Recover,
    Recoverable, Settings, Sourced, Store,
};
use tokio::sync::oneshot;
use tokio_test::{assert_ready, task};
use tower::{BoxError, Layer, Service, ServiceExt};
use tower_test::mock;

/// A request that says everything the chain may ask.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) server: Option<Arc<str>>,
    pub(crate) operation: &'static str,
    /// Whether it has a question at all.
    pub(crate) asks: bool,
    pub(crate) arguments: &'static str,
    pub(crate) caller: Caller,
    pub(crate) effect: Effect,
    pub(crate) cacheable: Option<bool>,
    pub(crate) default: Option<Arc<Page>>,
    pub(crate) context: CallContext,
}

/// An answer that carries what was tagged on it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) error: bool,
    pub(crate) tags: Vec<(Source, Option<Class>)>,
}

/// A server that answers what it is told to, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script(Arc<Mutex<Turns>>);

#[derive(Debug, Default)]
struct Turns {
    next: VecDeque<Result<Page, Failure>>,
    calls: usize,
}

/// A store whose lookups end when the test says so.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlowStore {
    generations: Arc<Generations>,
    pub(crate) waiting: Arc<Mutex<Vec<Waiting>>>,
}

/// The arguments that were asked for, and how to answer.
type Waiting = (String, oneshot::Sender<Kept<Page>>);

pub(crate) struct SlowLookup(oneshot::Receiver<Kept<Page>>);

// === impl Ask ===

impl Ask {
    pub(crate) fn read(arguments: &'static str) -> Self {
        Self {
            server: Some("library".into()),
            operation: "fetch",
            asks: true,
            arguments,
            caller: Caller::only("ann"),
            effect: Effect::ReadOnly,
            cacheable: None,
            default: None,
            context: CallContext::new(),
        }
    }

    pub(crate) fn write() -> Self {
        Self {
            operation: "store",
            effect: Effect::NonIdempotent,
            ..Self::read("w")
        }
    }

    pub(crate) fn by(mut self, caller: &str) -> Self {
        self.caller = Caller::only(caller);
        self
    }

    pub(crate) fn at(mut self, server: &str) -> Self {
        self.server = Some(server.into());
        self
    }

    pub(crate) fn or(mut self, default: &str) -> Self {
        self.default = Some(Arc::new(page(default)));
        self
    }

    pub(crate) fn cacheable(mut self) -> Self {
        self.cacheable = Some(true);
        self
    }
}

impl Call for Ask {
    fn effect(&self) -> Effect {
        self.effect
    }

    fn context(&self) -> Option<&CallContext> {
        Some(&self.context)
    }
}

impl Recoverable<Page> for Ask {
    fn server(&self) -> Option<&Arc<str>> {
        self.server.as_ref()
    }

    fn question(&self) -> Option<Question> {
        self.asks.then(|| {
            let arguments = self.arguments.as_bytes();
            Question::new(self.operation, arguments, self.caller.clone())
        })
    }

    fn cacheable(&self) -> Option<bool> {
        self.cacheable
    }

    fn default_answer(&self) -> Option<Arc<Page>> {
        self.default.clone()
    }
}

// === impl Page ===

impl Tag for Page {
    fn tag(&mut self, source: &Source, cause: Option<&Cause>) {
        self.tags.push((*source, cause.map(|cause| cause.class)));
    }

    fn unavailable(cause: &Cause) -> Option<Self> {
        let mut page = page(&format!("unavailable: {}", cause.class));
        page.error = true;
        Some(page)
    }

    fn is_error(&self) -> bool {
        self.error
    }
}

// === impl Script ===

impl Script {
    pub(crate) fn answers(&self, answer: Result<Page, Failure>) -> &Self {
        self.0.lock().unwrap().next.push_back(answer);
        self
    }

    pub(crate) fn calls(&self) -> usize {
        self.0.lock().unwrap().calls
    }
}

impl Service<Ask> for Script {
    type Response = Page;
    type Error = Failure;
    type Future = Ready<Result<Page, Failure>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _ask: Ask) -> Self::Future {
        let mut script = self.0.lock().unwrap();
        script.calls += 1;
        ready(
            script
                .next
                .pop_front()
                .expect("a call the script does not have"),
        )
    }
}

// === impl SlowStore ===

impl Store for SlowStore {
    type Value = Page;
    type Lookup = SlowLookup;

    fn generation(&self, server: &str) -> u64 {
        self.generations.get(server)
    }

    fn raise(&self, server: &str) {
        self.generations.raise(server);
    }

    fn put(&self, _key: Key, _generation: u64, _value: &Page) {}

    fn lookup(&self, key: Key, _generation: u64) -> SlowLookup {
        let (sender, receiver) = oneshot::channel();
        let arguments = String::from_utf8(key.arguments().to_vec()).unwrap();
        self.waiting.lock().unwrap().push((arguments, sender));
        SlowLookup(receiver)
    }
}

impl Future for SlowLookup {
    type Output = Option<Kept<Page>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(Result::ok)
    }
}

// === set-up ===

pub(crate) fn page(text: &str) -> Page {
    Page {
        text: text.to_owned(),
        ..Page::default()
    }
}

pub(crate) fn down() -> Failure {
    Failure::new(Class::NotSent)
}

pub(crate) fn memory() -> Memory<Page> {
    Memory::new(Bounds::new(), |page: &Page| page.text.len()).unwrap()
}

pub(crate) fn chain(settings: Settings) -> Chain<Memory<Page>> {
    Chain::new(settings, memory()).unwrap()
}

/// A scripted server under the standard chain.
pub(crate) fn standard() -> (Script, Fallback) {
    with(Settings::new())
}

pub(crate) type Fallback = steadfast_fallback::Fallback<Script, Chain<Memory<Page>>>;

pub(crate) fn with(settings: Settings) -> (Script, Fallback) {
    let script = Script::default();
    let service = FallbackLayer::new(chain(settings)).layer(script.clone());
    (script, service)
}

/// Makes the service ready and calls it.
pub(crate) async fn ask<S>(service: &mut S, ask: Ask) -> Result<Sourced<Page>, S::Error>
where
    S: Service<Ask, Response = Sourced<Page>>,
{
    ServiceExt::<Ask>::ready(service).await?.call(ask).await
}

/// A mock server's service under a policy.
pub(crate) type Mocked<P> = mock::Spawn<steadfast_fallback::Fallback<mock::Mock<Ask, Page>, P>>;

/// Makes the service ready and begins a call, which the test polls.
pub(crate) fn call<P>(
    service: &mut Mocked<P>,
    ask: Ask,
) -> task::Spawn<impl Future<Output = Result<Sourced<Page>, BoxError>> + use<P>>
where
    P: Recover<Ask, Page>,
{
    assert_ready!(service.poll_ready::<Ask>()).unwrap();
    task::spawn(service.call(ask))
}

/// The mock server's side of the next call.
pub(crate) async fn next(handle: &mut mock::Handle<Ask, Page>) -> mock::SendResponse<Page> {
    handle.next_request().await.unwrap().1
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
