use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{RngSeed, TestCaseError},
};

use super::*;

const GRACE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_secs(5);

fn machine(now: Instant) -> Machine {
    let rules = Rules {
        grace: GRACE,
        max_idle: Duration::from_secs(300),
        respawn: Respawn::new([PAUSE], Duration::from_secs(30)),
    };
    Machine::new(rules, now)
}

#[test]
fn walks_through_all_states() {
    let mut now = Instant::now();
    let mut machine = machine(now);

    // The first who needs it has to start it; the next waits.
    let era = machine.attach(now);
    machine.wait(era);
    assert_eq!(machine.want(era, now), Want::Start);
    assert_eq!(machine.want(era, now), Want::Wait);

    // It is there; whoever waited leaves, and nobody closes what is held.
    assert!(machine.started(now));
    assert!(!machine.unwait(era));
    assert_eq!(machine.want(era, now), Want::Ready);
    assert_eq!(machine.deadline(), None);

    // A loss keeps the key until what is left of the connection is gone.
    machine.lost(now);
    assert_eq!(machine.phase(), Phase::Closing(Why::Lost));
    assert_eq!(machine.want(era, now), Want::Wait);
    machine.closed();
    assert_eq!(machine.phase(), Phase::Vacant);

    // The first loss is free; the second, of a start, brings a pause.
    assert_eq!(machine.want(era, now), Want::Start);
    machine.failed(now, true, None);
    assert_eq!(machine.want(era, now), Want::Later(PAUSE));
    now += PAUSE;
    assert_eq!(machine.want(era, now), Want::Start);
    assert!(machine.started(now));

    // The last holder goes, and the grace after it.
    assert!(machine.detach(era, now));
    assert_eq!(machine.deadline(), Some(now + GRACE));
    machine.tick(now + GRACE);
    assert_eq!(machine.phase(), Phase::Closing(Why::Idle));
    machine.closed();
    assert!(machine.is_over());
}

#[test]
fn a_start_that_was_called_off_does_not_succeed_any_more() {
    let now = Instant::now();
    for end in [0, 1, 2] {
        let mut machine = machine(now);
        let era = machine.attach(now);
        machine.wait(era);
        assert_eq!(machine.want(era, now), Want::Start);

        match end {
            0 => assert!(machine.unwait(era)),
            1 => machine.retire(now),
            _ => machine.drain(now),
        }

        assert!(!machine.started(now), "{end}");
        machine.closed();
        assert_eq!(machine.phase(), Phase::Vacant, "{end}");
    }
}

#[test]
fn nothing_given_back_late_is_given_back_twice() {
    let now = Instant::now();
    let mut machine = machine(now);
    let old = machine.attach(now);
    machine.wait(old);
    machine.retire(now);
    let new = machine.attach(now);
    machine.wait(new);
    assert_eq!(machine.want(new, now), Want::Start);

    assert!(!machine.detach(old, now));
    assert!(!machine.unwait(old));

    assert_eq!(machine.seats(), 1);
    assert!(machine.started(now), "the new one still waits for it");
    assert_eq!(machine.want(old, now), Want::Never(Never::Retired));
}

#[test]
fn whoever_waits_keeps_a_connection_that_nobody_holds() {
    let now = Instant::now();
    let mut machine = machine(now);
    let era = machine.attach(now);
    machine.wait(era);
    assert_eq!(machine.want(era, now), Want::Start);
    assert!(machine.detach(era, now));
    assert!(machine.started(now));
    machine.tick(now + 2 * GRACE);
    assert_eq!(machine.want(era, now), Want::Ready, "it was waited for");

    assert!(machine.unwait(era), "from now on it has a deadline");
    machine.tick(now + 2 * GRACE);
    assert_eq!(machine.phase(), Phase::Closing(Why::Idle));
}

#[test]
fn a_restart_is_of_what_somebody_has() {
    let now = Instant::now();
    let mut machine = machine(now);
    assert_eq!(machine.restart(), Restarting::Nothing);
    let era = machine.attach(now);
    machine.wait(era);
    assert_eq!(machine.want(era, now), Want::Start);
    assert_eq!(machine.restart(), Restarting::Joins);
    assert!(machine.started(now));
    assert_eq!(machine.restart(), Restarting::Begins);
    assert_eq!(machine.restart(), Restarting::Joins, "it has begun");
    machine.closed();
    machine.unwait(era);
    machine.detach(era, now);
    assert_eq!(machine.restart(), Restarting::Nothing);
}

/// What its users and its owner do to a machine, each only when they may.
#[derive(Clone, Copy, Debug)]
enum Act {
    Attach,
    Detach,
    Wait,
    Unwait,
    Want,
    BeginCall,
    EndCall,
    Started,
    Failed,
    Lost,
    Closed,
    Vanished,
    Restart,
    Retire,
    Drain,
    Pass(u64),
}

fn act() -> impl Strategy<Value = Act> {
    use Act::{
        Attach, BeginCall, Closed, Detach, Drain, EndCall, Failed, Lost, Pass, Restart, Retire,
        Started, Unwait, Vanished, Wait, Want,
    };

    let often = prop::sample::select(vec![
        Attach, Detach, Wait, Unwait, Want, BeginCall, EndCall, Started, Closed,
    ]);
    let seldom = prop::sample::select(vec![Failed, Lost, Vanished, Restart, Retire, Drain]);
    let pass = prop::sample::select(vec![1_u64, 29, 30, 299, 301]).prop_map(Pass);
    prop_oneof![8 => often, 2 => seldom, 2 => pass]
}

/// A machine, and what should be in its books.
struct Books {
    machine: Machine,
    now: Instant,
    seats: Vec<Era>,
    waiters: Vec<Era>,
    calls: usize,
    drained: bool,
    /// Whether there is somebody who has the connection, or makes it.
    owned: bool,
}

// === impl Books ===

impl Books {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            machine: machine(now),
            now,
            seats: Vec::new(),
            waiters: Vec::new(),
            calls: 0,
            drained: false,
            owned: false,
        }
    }

    fn take(&mut self, act: Act) {
        let (machine, now) = (&mut self.machine, self.now);
        match act {
            Act::Attach => self.seats.push(machine.attach(now)),
            Act::Detach => {
                let seat = self.seats.pop();
                seat.map(|era| machine.detach(era, now));
            }
            Act::Wait => {
                machine.wait(machine.era());
                self.waiters.push(machine.era());
            }
            Act::Unwait => {
                let waiter = self.waiters.pop();
                waiter.map(|era| machine.unwait(era));
            }
            // Only who waits asks.
            Act::Want => {
                let wants = self.waiters.last().map(|era| machine.want(*era, now));
                self.owned |= wants == Some(Want::Start);
            }
            Act::Restart => drop(machine.restart()),
            Act::Retire => machine.retire(now + GRACE),
            Act::Drain => {
                machine.drain(now + GRACE);
                self.drained = true;
            }
            Act::Pass(secs) => self.now += Duration::from_secs(secs),
            other => self.run(other),
        }
        self.machine.tick(self.now);
    }

    /// What calls do, and the owner, as long as there is one.
    fn run(&mut self, act: Act) {
        let (machine, now) = (&mut self.machine, self.now);
        match (act, machine.phase()) {
            (Act::BeginCall, Phase::Active { .. }) => {
                machine.begin_call();
                self.calls += 1;
            }
            (Act::EndCall, _) if self.calls > 0 => {
                machine.end_call();
                self.calls -= 1;
            }
            (Act::Started, Phase::Starting) => assert!(machine.started(now)),
            (Act::Failed, Phase::Starting) => {
                machine.failed(now, true, None);
                self.owned = false;
            }
            (Act::Lost, _) => machine.lost(now),
            (Act::Closed, Phase::Closing(_)) => {
                machine.closed();
                self.owned = false;
            }
            (Act::Vanished, _) if self.owned => {
                machine.vanished(now);
                self.owned = false;
            }
            _ => {}
        }
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let machine = &self.machine;
        let current = |eras: &[Era]| eras.iter().filter(|era| **era == machine.era()).count();
        let (seats, waiters) = (current(&self.seats), current(&self.waiters));
        prop_assert_eq!(machine.seats(), seats);
        prop_assert_eq!(machine.waiters, waiters);
        prop_assert_eq!(machine.calls(), self.calls);
        let phase = machine.phase();
        prop_assert_eq!(self.owned, phase != Phase::Vacant, "{:?}", phase);
        match phase {
            // A start is waited for, and what nobody has comes to its end.
            Phase::Starting => prop_assert!(waiters > 0 && !self.drained),
            Phase::Active { .. } => {
                prop_assert!(!self.drained);
                let needed = seats > 0 || waiters > 0;
                prop_assert_eq!(machine.deadline().is_none(), needed);
            }
            Phase::Leaving { .. } => {
                prop_assert!(self.calls > 0 && machine.deadline().is_some());
            }
            Phase::Vacant | Phase::Closing(_) => {}
        }
        if self.drained {
            let wants = machine.clone().want(machine.era(), self.now);
            prop_assert_eq!(wants, Want::Never(Never::Drained));
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        rng_seed: RngSeed::Fixed(4),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn whatever_happens_the_books_are_right(acts in vec(act(), 1..60)) {
        let mut books = Books::new();
        for act in acts {
            books.take(act);
            books.check()?;
        }
    }
}
