use proptest::{collection::vec, prelude::*};

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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn whatever_happens_the_books_are_right(acts in vec(act(), 1..60)) {
        let mut now = Instant::now();
        let mut machine = machine(now);
        let (mut seats, mut waiters) = (Vec::new(), Vec::new());
        let (mut calls, mut drained, mut owned) = (0, false, false);
        for act in acts {
            let phase = machine.phase();
            match act {
                Act::Attach => seats.push(machine.attach(now)),
                Act::Detach => if let Some(era) = seats.pop() {
                    machine.detach(era, now);
                },
                Act::Wait => {
                    machine.wait(machine.era());
                    waiters.push(machine.era());
                }
                Act::Unwait => if let Some(era) = waiters.pop() {
                    machine.unwait(era);
                },
                // Only who waits asks.
                Act::Want => if let Some(era) = waiters.last() {
                    owned |= machine.want(*era, now) == Want::Start;
                },
                Act::BeginCall => if let Phase::Active { .. } = phase {
                    machine.begin_call();
                    calls += 1;
                },
                Act::EndCall => if calls > 0 {
                    machine.end_call();
                    calls -= 1;
                },
                // What the owner says, as long as there is one.
                Act::Started => if owned && phase == Phase::Starting {
                    prop_assert!(machine.started(now));
                },
                Act::Failed => if owned && phase == Phase::Starting {
                    machine.failed(now, true, None);
                    owned = false;
                },
                Act::Lost => machine.lost(now),
                Act::Closed => if let Phase::Closing(_) = phase {
                    machine.closed();
                    owned = false;
                },
                Act::Vanished => if owned {
                    machine.vanished(now);
                    owned = false;
                },
                Act::Restart => drop(machine.restart()),
                Act::Retire => machine.retire(now + GRACE),
                Act::Drain => {
                    machine.drain(now + GRACE);
                    drained = true;
                }
                Act::Pass(secs) => now += Duration::from_secs(secs),
            }
            machine.tick(now);

            let era = machine.era();
            prop_assert_eq!(machine.seats(), seats.iter().filter(|seat| **seat == era).count());
            let waiting = waiters.iter().filter(|waiter| **waiter == era).count();
            prop_assert_eq!(machine.waiters, waiting);
            prop_assert_eq!(machine.calls(), calls);
            prop_assert_eq!(owned, machine.phase() != Phase::Vacant, "{:?}", machine.phase());
            match machine.phase() {
                // A start is waited for, and what nobody has comes to its end.
                Phase::Starting => prop_assert!(waiting > 0 && !drained),
                Phase::Active { .. } => {
                    prop_assert!(!drained);
                    let needed = machine.seats() > 0 || waiting > 0;
                    prop_assert_eq!(machine.deadline().is_none(), needed);
                }
                Phase::Leaving { .. } => prop_assert!(calls > 0 && machine.deadline().is_some()),
                Phase::Vacant | Phase::Closing(_) => {}
            }
            if drained {
                prop_assert_eq!(machine.want(era, now), Want::Never(Never::Drained));
            }
        }
    }
}
