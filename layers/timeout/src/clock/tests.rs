//! The clock alone, told what time it is.

use std::sync::Arc;

use steadfast_classify::Limits;

use super::*;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn each_view_ends_where_its_own_limit_does() {
    let called = Instant::now();
    let clock = clock(
        called,
        Limits::new().with_connect(ms(100)).with_read(ms(40)),
    );
    for (view, phase, end) in [
        (View::Waiting, Phase::Connect, 100),
        (queued(0), Phase::Connect, 100),
        (queued(700), Phase::Connect, 700),
        (passed(called + ms(5)), Phase::Read, 45),
        (
            View::Sent {
                since: called + ms(9),
            },
            Phase::Read,
            49,
        ),
    ] {
        let before = clock.check(called + ms(end - 1), view);
        let at = clock.check(called + ms(end), view);

        assert!(matches!(before, Verdict::Wait(Some(_))), "{view:?}");
        let Verdict::Over(elapsed) = at else {
            panic!("{view:?} goes on after {end} ms");
        };
        assert_eq!(elapsed.phase(), phase, "{view:?}");
    }
}

#[test]
fn a_call_that_may_be_sent_unseen_is_looked_at_in_time_for_its_read_limit() {
    let called = Instant::now();
    let clock = clock(
        called,
        Limits::new().with_connect(ms(100)).with_read(ms(40)),
    );
    for (now, view, look) in [
        (0, View::Waiting, 40),
        (40, queued(0), 80),
        (80, queued(0), 100),
        (80, queued(500), 120),
        // The read limit runs anew once it is set free, from then on.
        (80, View::Held, 120),
    ] {
        let verdict = clock.check(called + ms(now), view);

        assert_eq!(verdict, Verdict::Wait(Some(called + ms(look))), "{view:?}");
    }
}

#[test]
fn a_tracked_call_is_looked_at_when_a_late_claim_would_end_it() {
    let called = Instant::now();
    let clock = clock(called, Limits::new().with_connect(ms(10)).with_read(ms(40)));
    for (now, tracked, look) in [(0, true, 10), (0, false, 40), (10, true, 40)] {
        let view = View::Called {
            at: called,
            tracked,
        };

        let verdict = clock.check(called + ms(now), view);

        assert_eq!(verdict, Verdict::Wait(Some(called + ms(look))), "{view:?}");
    }
}

#[test]
fn a_wait_always_ends_later() {
    let called = Instant::now();
    for read in [0, 1, 40] {
        let clock = clock(
            called,
            Limits::new().with_connect(ms(100)).with_read(ms(read)),
        );
        for now in (0..200).map(|millis| called + ms(millis)) {
            for view in [View::Waiting, queued(0), queued(150), passed(called)] {
                if let Verdict::Wait(Some(at)) = clock.check(now, view) {
                    assert!(at > now, "{view:?}");
                }
            }
        }
    }
}

#[test]
fn without_any_limit_nothing_is_waited_for() {
    let called = Instant::now();
    let off = Limits::new()
        .with_connect(Duration::MAX)
        .with_read(Duration::MAX);
    let clock = clock(called, off);

    for view in [View::Waiting, queued(0), passed(called)] {
        assert_eq!(clock.check(called, view), Verdict::Wait(None), "{view:?}");
    }
}

fn clock(called: Instant, limits: Limits) -> Clock {
    let mut context = CallContext::new();
    context.set_limits(Arc::new(limits));
    Clock::new(&Settings::new(), Some(&context), called)
}

const fn queued(start_limit: u64) -> View {
    View::Queued {
        start_limit: ms(start_limit),
    }
}

/// Called, with no wire that says anything.
const fn passed(at: Instant) -> View {
    View::Called { at, tracked: false }
}
