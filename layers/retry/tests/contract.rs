//! The contract of a tower service.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    task::{Context, Poll, Waker},
};

use steadfast_classify::Failure;
use tokio_test::{assert_pending, assert_ready, assert_ready_ok, task};
use tower::{Layer, Service, limit::ConcurrencyLimit};
use tower_test::mock::{self, Mock, Spawn};

mod support;
use support::{Handle, Request, even, layer, ms, run};

type Retry<S> = steadfast_retry::Retry<S>;

fn spawned() -> (Spawn<Retry<Mock<Request, &'static str>>>, Handle) {
    mock::spawn_layer(layer(even()))
}

#[tokio::test(start_paused = true)]
async fn a_success_passes_through_at_once() {
    let run = run(&layer(even()), Request::write(), [Ok("done")]).await;

    assert_eq!(run.result.unwrap(), "done");
    assert_eq!(run.took, ms(0));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_is_passed_on_as_not_ready() {
    let (mut service, mut handle) = spawned();
    handle.allow(0);
    assert_pending!(service.poll_ready::<Request>());

    handle.allow(1);
    assert!(service.is_woken());
    assert_ready_ok!(service.poll_ready::<Request>());
}

#[tokio::test(start_paused = true)]
async fn the_call_uses_the_instance_that_was_made_ready() {
    let (mut service, mut handle) = spawned();
    handle.allow(1);
    assert_ready_ok!(service.poll_ready::<Request>());
    // From here on any other instance would have to wait.
    handle.allow(0);

    let mut call = task::spawn(service.call(Request::read()));

    assert_pending!(call.poll());
    let (_, reply) = assert_ready!(handle.poll_request()).expect("was called");
    reply.send_response("done");
    assert_eq!(assert_ready_ok!(call.poll()), "done");
}

#[tokio::test(start_paused = true)]
async fn a_clone_is_not_ready_because_its_original_is() {
    let (mut service, mut handle) = spawned();
    handle.allow(1);
    assert_ready_ok!(service.poll_ready::<Request>());
    handle.allow(0);

    let mut clone = service.clone();

    assert_pending!(clone.poll_ready::<Request>());
    assert_ready_ok!(service.poll_ready::<Request>());
}

#[tokio::test(start_paused = true)]
async fn a_ready_service_that_is_dropped_leaves_nothing_behind() {
    let inner = ConcurrencyLimit::new(Bomb::Never, 1);
    let mut first = layer(even()).layer(inner);
    let mut second = first.clone();
    let mut cx = Context::from_waker(Waker::noop());
    assert_ready_ok!(Service::<Request>::poll_ready(&mut first, &mut cx));
    assert_pending!(Service::<Request>::poll_ready(&mut second, &mut cx));

    drop(first);

    assert_ready_ok!(Service::<Request>::poll_ready(&mut second, &mut cx));
}

#[tokio::test(start_paused = true)]
async fn trap_p12_the_first_attempt_starts_in_call_not_at_the_first_poll() {
    let (mut service, mut handle) = spawned();
    assert_ready_ok!(service.poll_ready::<Request>());

    let _call = service.call(Request::read());

    assert!(handle.poll_request().is_ready());
}

/// Panics where it is told to.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bomb {
    Never,
    InPollReady,
    InCall,
    InFuture,
}

impl Service<Request> for Bomb {
    type Response = &'static str;
    type Error = Failure;
    type Future = Fuse;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        assert_ne!(*self, Self::InPollReady, "bang");
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request) -> Fuse {
        assert_ne!(*self, Self::InCall, "bang");
        Fuse(*self == Self::InFuture)
    }
}

struct Fuse(bool);

impl Future for Fuse {
    type Output = Result<&'static str, Failure>;

    fn poll(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.0, "bang");
        Poll::Ready(Ok("done"))
    }
}

#[tokio::test(start_paused = true)]
async fn trap_p11_a_panic_of_the_inner_service_stays_a_panic_and_returns_what_was_taken() {
    for bomb in [Bomb::InPollReady, Bomb::InCall, Bomb::InFuture] {
        let limited = ConcurrencyLimit::new(bomb, 1);
        let mut service = layer(even()).layer(limited);
        let mut other = service.clone();
        let mut cx = Context::from_waker(Waker::noop());

        let result = catch_unwind(AssertUnwindSafe(|| {
            let ready = Service::<Request>::poll_ready(&mut service, &mut cx);
            assert!(ready.is_ready());
            task::spawn(service.call(Request::read())).poll()
        }));
        drop(service);

        assert!(result.is_err(), "{bomb:?}");
        if bomb != Bomb::InPollReady {
            assert_ready_ok!(Service::<Request>::poll_ready(&mut other, &mut cx));
        }
    }
}
