//! Two minutes with a server that is dead.

use std::time::Duration;

use futures::future::join_all;
use steadfast::{Class, Effect, Stack};
use tokio::time::{Instant, sleep};
use tower::{Layer as _, Service, ServiceExt as _};

use crate::ask::{Ask, Meets, Script};

const CALLERS: usize = 20;
const LIFE: Duration = Duration::from_secs(120);

/// How long a caller thinks between two calls.
const THINKS: Duration = Duration::from_secs(1);

/// What all callers together did.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    calls: u32,
    attempts: u32,
    waited: Duration,
    longest: Duration,
}

#[tokio::test(start_paused = true)]
async fn a_dead_server_is_hit_now_and_then_however_many_call_it() {
    for (dead, meets, longest) in [
        (
            "refuses",
            Meets::Fails(Class::NotSent),
            Duration::from_secs(1),
        ),
        // As long as the first attempt has to be waited for.
        ("is silent", Meets::Silence, Duration::from_secs(61)),
    ] {
        let script = Script::default();
        script.play_next(vec![meets; 10_000]);
        let stack = Stack::new("dead").build().unwrap();

        let callers = (0..CALLERS).map(|_| caller(stack.layer(script.clone())));
        let lives = join_all(callers).await;

        let life = lives.into_iter().fold(Life::default(), Life::and);
        let mean = life.waited / life.calls;
        let hits = script.attempts();
        println!("a server that {dead}: {hits} hits, mean wait {mean:.1?}, {life:?}");
        assert!(hits <= 25, "{hits} hits on a server that {dead}");
        // Those who failed before it opened try once more; an open circuit ends that.
        let retries = life.attempts - life.calls;
        assert!(retries < 5, "{retries} retries with a server that {dead}");
        assert!(
            life.longest <= longest,
            "{:?} with a server that {dead}",
            life.longest
        );
        let naive = CALLERS as u32 * 120;
        assert!(
            dead != "refuses" || life.calls >= naive * 9 / 10,
            "{life:?}"
        );
        assert!(mean < Duration::from_secs(3), "{mean:?}");
    }
}

async fn caller<S>(mut service: S) -> Life
where
    S: Service<Ask, Error = steadfast::Failure>,
{
    let begun = Instant::now();
    let mut life = Life::default();
    while begun.elapsed() < LIFE {
        let asked = Instant::now();
        let ask = Ask::new("price", Effect::ReadOnly);
        let outcome = service.ready().await.unwrap().call(ask).await;
        let failure = outcome.map(drop).unwrap_err();
        let waited = asked.elapsed();
        life = life.and(Life {
            calls: 1,
            attempts: failure.attempts(),
            waited,
            longest: waited,
        });
        sleep(THINKS).await;
    }
    life
}

// === impl Life ===

impl Life {
    fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            attempts: self.attempts + other.attempts,
            waited: self.waited + other.waited,
            longest: self.longest.max(other.longest),
        }
    }
}
