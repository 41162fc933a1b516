//! The circuit against a plain account of its rules, over random events and times.

mod support;

use proptest::prelude::*;
use steadfast_circuit_breaker::{CircuitOpen, OpenFor, Settings, State};
use steadfast_classify::Class;
use support::{Circuit, Running, failure};
use tokio::time::{Duration, advance};

/// All times are whole ticks of all the clocks in the word, whose rounding is tested
/// elsewhere.
const TICK: Duration = Duration::from_millis(1024);

#[derive(Clone, Copy, Debug)]
enum Event {
    Begin,
    /// The n-th of the calls that run ends so; `None` is a drop.
    End(usize, Option<Result<(), Class>>),
    Wait(u32),
    Isolate,
    Reset,
}

#[derive(Clone, Debug)]
struct Rules {
    threshold: u32,
    probes: u32,
    lease: u32,
    healthy: u32,
    /// At half of this many calls in 10 times this many ticks.
    rate: Option<(u32, u32)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Model {
    Closed {
        run: u32,
        since: u32,
    },
    Open {
        until: u32,
    },
    HalfOpen {
        successes: u32,
        probe: Option<(usize, u32)>,
    },
    Isolated,
}

/// Everything spelled out, nothing packed.
struct Account {
    rules: Rules,
    now: u32,
    model: Model,
    trips: u32,
    generation: u32,
    begun: usize,
    /// Of the calls in the window: the bucket and whether it failed.
    window: Vec<(u32, bool)>,
}

/// A call that was let through.
#[derive(Clone, Copy, Debug)]
struct Call {
    id: usize,
    generation: u32,
    is_probe: bool,
}

fn open_for(trips: u32) -> u32 {
    10 << trips.min(4)
}

// === impl Account ===

impl Account {
    fn turn(&mut self, model: Model) {
        self.model = model;
        self.generation += 1;
        self.window.clear();
    }

    fn open(&mut self, trips: u32) {
        self.trips = trips;
        let until = self.now + open_for(trips);
        self.turn(Model::Open { until });
    }

    fn begin(&mut self) -> Option<Call> {
        match self.model {
            Model::Closed { .. } => {}
            Model::Open { until } if self.now >= until => {
                self.turn(Model::HalfOpen {
                    successes: 0,
                    probe: None,
                });
            }
            Model::HalfOpen { probe: None, .. } => {}
            Model::HalfOpen {
                probe: Some((_, lease)),
                ..
            } if self.now >= lease => {}
            _ => return None,
        }
        self.begun += 1;
        let lease = self.now + self.rules.lease;
        let mut is_probe = false;
        if let Model::HalfOpen { probe, .. } = &mut self.model {
            *probe = Some((self.begun, lease));
            is_probe = true;
        }
        Some(Call {
            id: self.begun,
            generation: self.generation,
            is_probe,
        })
    }

    fn end(&mut self, call: Call, how: Option<Result<(), Class>>) {
        if call.generation != self.generation {
            return;
        }
        match how {
            Some(Ok(()) | Err(Class::Answered)) => self.succeed(call),
            Some(Err(Class::Overloaded)) if !call.is_probe => {}
            Some(Err(Class::Unknown | Class::Overloaded)) => self.fail(call),
            _ => self.leave(call),
        }
    }

    fn leave(&mut self, call: Call) {
        if let Model::HalfOpen { probe, .. } = &mut self.model {
            *probe = probe.filter(|(id, _)| *id != call.id);
        }
    }

    fn succeed(&mut self, call: Call) {
        self.leave(call);
        match &mut self.model {
            Model::Closed { run, .. } => *run = 0,
            Model::HalfOpen { successes, .. } => *successes += 1,
            Model::Open { .. } | Model::Isolated => {}
        }
        match self.model {
            Model::HalfOpen { successes, .. } if successes == self.rules.probes => {
                self.turn(Model::Closed {
                    run: 0,
                    since: self.now,
                });
            }
            Model::Closed { .. } => drop(self.record(false)),
            _ => {}
        }
    }

    fn fail(&mut self, call: Call) {
        match self.model {
            Model::Closed { run, since } => {
                let exceeded = self.record(true);
                if exceeded || run + 1 == self.rules.threshold {
                    let healthy = self.now - since > self.rules.healthy;
                    self.open(if healthy { 1 } else { self.trips + 1 });
                } else {
                    self.model = Model::Closed {
                        run: run + 1,
                        since,
                    };
                }
            }
            Model::HalfOpen { .. } => {
                assert!(call.is_probe);
                self.open(self.trips + 1);
            }
            Model::Open { .. } | Model::Isolated => {}
        }
    }

    fn record(&mut self, failed: bool) -> bool {
        let Some((minimum, bucket)) = self.rules.rate else {
            return false;
        };
        self.window.push((self.now / bucket, failed));
        let (calls, failures) = self.counts();
        calls >= u64::from(minimum) && 2 * failures >= calls
    }

    fn counts(&self) -> (u64, u64) {
        let bucket = self.rules.rate.map_or(1, |(_, bucket)| bucket);
        let recent = |(at, _): &&(u32, bool)| at + 10 > self.now / bucket;
        let calls = self.window.iter().filter(recent).count();
        let failures = self.window.iter().filter(recent).filter(|it| it.1).count();
        (calls as u64, failures as u64)
    }

    fn state(&self) -> State {
        match self.model {
            Model::Closed { .. } => State::Closed,
            Model::Open { .. } => State::Open,
            Model::HalfOpen { .. } => State::HalfOpen,
            Model::Isolated => State::Isolated,
        }
    }

    fn retry_in(&self) -> Option<Duration> {
        let at = match self.model {
            Model::Open { until } => until,
            Model::HalfOpen { probe, .. } => probe?.1,
            Model::Closed { .. } | Model::Isolated => return None,
        };
        at.checked_sub(self.now)
            .filter(|left| *left > 0)
            .map(|left| TICK * left)
    }

    fn settings(&self) -> Settings {
        let rules = &self.rules;
        let settings = Settings::new()
            .with_consecutive_failures(rules.threshold)
            .with_probes(rules.probes)
            .with_probe_lease(TICK * rules.lease)
            .with_healthy_after(TICK * rules.healthy)
            .with_open_for(OpenFor::with(|trips, _, _| TICK * open_for(trips)));
        match rules.rate {
            Some((minimum, bucket)) => settings
                .with_failure_rate(0.5)
                .with_window(TICK * bucket * 10, minimum),
            None => settings,
        }
    }

    fn check(&self, circuit: &Circuit) {
        let got = circuit.breaker().snapshot();
        assert_eq!(got.state, self.state());
        assert_eq!(got.trips, self.trips.min(63));
        assert_eq!(got.retry_in, self.retry_in());
        if let Model::Closed { run, .. } = self.model {
            assert_eq!(got.consecutive_failures, run);
        }
        if self.rules.rate.is_some() && self.state() == State::Closed {
            let window = got.window.map(|it| (it.calls, it.failures));
            assert_eq!(window, Some(self.counts()));
        }
        let told = circuit.breaker().watch().current();
        assert_eq!((told.to, told.generation), (self.state(), self.generation));
    }
}

async fn play(rules: Rules, events: Vec<Event>) {
    let mut account = Account {
        rules,
        now: 0,
        model: Model::Closed { run: 0, since: 0 },
        trips: 0,
        generation: 0,
        begun: 0,
        window: Vec::new(),
    };
    let mut circuit = Circuit::new(account.settings());
    let mut running: Vec<(Call, Running)> = Vec::new();
    for event in events {
        match event {
            Event::Begin => match (account.begin(), circuit.begin()) {
                (Some(call), Ok(response)) => running.push((call, response)),
                (None, Err(away)) => {
                    let open: &CircuitOpen = away.find_source().expect("a circuit turned it away");
                    assert_eq!(open.retry_in(), account.retry_in());
                }
                (want, got) => panic!("{want:?}, but it passes: {}", got.is_ok()),
            },
            Event::End(..) if running.is_empty() => {}
            Event::End(n, how) => {
                let (call, response) = running.swap_remove(n % running.len());
                account.end(call, how);
                match how {
                    None => drop(response),
                    Some(Ok(())) => response.answers().await,
                    Some(Err(class)) => drop(response.fails(failure(class)).await),
                }
            }
            Event::Wait(ticks) => {
                account.now += ticks;
                advance(TICK * ticks).await;
            }
            Event::Isolate if account.model == Model::Isolated => circuit.breaker().isolate(),
            Event::Isolate => {
                account.turn(Model::Isolated);
                circuit.breaker().isolate();
            }
            Event::Reset => {
                account.trips = 0;
                account.turn(Model::Closed { run: 0, since: 0 });
                circuit.breaker().reset();
            }
        }
        account.check(&circuit);
        tokio::task::yield_now().await;
    }
}

fn event() -> impl Strategy<Value = Event> {
    let how = prop_oneof![
        4 => Just(Some(Ok(()))),
        8 => Just(Some(Err(Class::Unknown))),
        1 => Just(Some(Err(Class::Overloaded))),
        1 => Just(Some(Err(Class::Answered))),
        1 => Just(Some(Err(Class::Cancelled))),
        1 => Just(None),
    ];
    prop_oneof![
        12 => Just(Event::Begin),
        10 => (any::<usize>(), how).prop_map(|(n, how)| Event::End(n, how)),
        4 => prop_oneof![0_u32..3, 15_u32..45, 150_u32..170].prop_map(Event::Wait),
        1 => prop_oneof![Just(Event::Isolate), Just(Event::Reset), Just(Event::Reset)],
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    let rate = proptest::option::of((1_u32..6, 1_u32..5));
    (1_u32..5, 1_u32..4, 1_u32..40, 0_u32..60, rate).prop_map(
        |(threshold, probes, lease, healthy, rate)| Rules {
            threshold,
            probes,
            lease,
            // Zero is a rule of its own, tested elsewhere.
            healthy: healthy.max(1),
            rate,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_circuit_follows_its_rules(
        rules in rules(),
        events in proptest::collection::vec(event(), 1..120),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        runtime.block_on(play(rules, events));
    }
}
