//! The line by itself, without a bucket.

use std::{
    cell::Cell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Wake,
};

use super::*;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A line of three whose turns are 1, 2 and 3 s after `start`, with what wakes them.
fn line(start: Instant) -> (Line, Vec<Arc<Woken>>) {
    let mut line = Line::default();
    let woken: Vec<Arc<Woken>> = (0..3).map(|_| Arc::default()).collect();
    for (ahead, woken) in woken.iter().enumerate() {
        let waker = Waker::from(Arc::clone(woken));
        assert_eq!(
            line.join(empty(start).turn(ahead), Some(waker)),
            ahead as u64
        );
    }
    (line, woken)
}

fn empty(start: Instant) -> Refill {
    Refill {
        at: start + Duration::from_secs(1),
        interval: Duration::from_secs(1),
    }
}

fn wake(line: &mut Line, woken: &[Arc<Woken>]) -> Vec<usize> {
    line.take_wakes().into_iter().for_each(Waker::wake);
    let count = |woken: &Arc<Woken>| woken.0.load(Ordering::Relaxed);
    woken.iter().map(count).collect()
}

#[test]
fn an_empty_bucket_grants_and_wakes_nobody() {
    let start = Instant::now();
    let (mut line, woken) = line(start);

    assert_eq!(line.settle(|| Err(empty(start))), Some(empty(start)));

    assert_eq!(wake(&mut line, &woken), [0, 0, 0]);
    assert_eq!(line.stand(1), Standing::Behind(1));
    assert_eq!(line.waiting(), 3);
}

#[test]
fn what_there_is_goes_to_those_in_front_and_wakes_them_once() {
    let start = Instant::now();
    let (mut line, woken) = line(start);
    let left = Cell::new(2);
    let take = || {
        left.set(left.get() - 1);
        if left.get() < 0 {
            // The third one's turn is when its timer ends.
            return Err(Refill {
                at: start + Duration::from_secs(3),
                ..empty(start)
            });
        }
        Ok(())
    };

    assert!(line.settle(take).is_some());

    assert_eq!(wake(&mut line, &woken), [1, 1, 0]);
    assert_eq!(line.waiting(), 1);
    // In any order.
    assert_eq!(line.stand(1), Standing::Granted);
    assert_eq!(line.stand(2), Standing::Behind(0));
    assert_eq!(line.stand(0), Standing::Granted);
    assert_eq!(line.stand(2), Standing::Behind(0));
}

#[test]
fn nobody_takes_more_than_the_line_needs() {
    let start = Instant::now();
    let (mut line, _) = line(start);
    let taken = Cell::new(0);

    let settled = line.settle(|| {
        taken.set(taken.get() + 1);
        Ok(())
    });

    assert_eq!((settled, taken.get()), (None, 3));
}

#[test]
fn the_first_one_is_woken_if_its_timer_is_late() {
    let start = Instant::now();
    let (mut line, woken) = line(start);

    // Its turn has become the first one's: told when that leaves.
    assert!(line.leave(0).is_some());
    assert_eq!(wake(&mut line, &woken), [0, 1, 0]);
    line.stay(
        1,
        empty(start).turn(0),
        Some(Waker::from(Arc::clone(&woken[1]))),
    );

    // The one behind it is told when it comes to the front, and not before.
    line.settle(|| Err(empty(start)));
    assert_eq!(wake(&mut line, &woken), [0, 1, 0]);
    let granted = Cell::new(false);
    line.settle(|| {
        if granted.replace(true) {
            return Err(Refill {
                at: start + Duration::from_secs(2),
                ..empty(start)
            });
        }
        Ok(())
    });
    assert_eq!(wake(&mut line, &woken), [0, 2, 1]);
}

#[test]
fn a_grant_that_is_not_used_goes_to_the_next() {
    let start = Instant::now();
    let (mut line, woken) = line(start);
    let granted = Cell::new(false);
    line.settle(|| match granted.replace(true) {
        true => Err(empty(start)),
        false => Ok(()),
    });

    line.leave(0);

    assert_eq!(line.waiting(), 1);
    assert_eq!(line.stand(1), Standing::Granted);
    assert_eq!(wake(&mut line, &woken), [1, 1, 0]);
    line.leave(2);
    assert!(line.entries.is_empty());
}

#[test]
fn a_grant_that_nobody_needs_is_lost() {
    let mut line = Line::default();
    let number = line.join(Instant::now(), None);
    line.settle(|| Ok(()));

    line.leave(number);

    let next = line.join(Instant::now(), None);
    assert_eq!(line.stand(next), Standing::Behind(0));
}
