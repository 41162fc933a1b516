use super::*;

const HOST: u32 = 10;

/// The leader of all tables here: process 100, started at 50.
const LEADER: Identity = Identity {
    pid: 100,
    start: 50,
};

const ANCESTOR: Ancestor = Ancestor {
    leader: LEADER,
    mark: 7,
};

#[test]
fn members_of_the_group_and_those_that_left_it_are_told_apart() {
    let table = table([
        row(1, 0, 1, 0),
        row(HOST, 1, HOST, 5),
        leader(),
        row(101, 100, 100, 51),
        row(102, 101, 102, 52), // setsid
        row(103, 102, 102, 53),
        row(104, HOST, 104, 54), // another server
        row(105, 104, 104, 55),
    ]);

    let family = table.family(ANCESTOR, &[], HOST);

    assert_eq!(pids(&family.members), [101]);
    assert_eq!(pids(&family.escaped), [102, 103]);
    assert_eq!(family.count(), Some(3));
}

#[test]
fn i08_a_recycled_leader_pid_gives_no_right_over_its_group_or_children() {
    let stranger = row(100, 1, 100, 900);
    let table = table([stranger, row(101, 100, 100, 901), row(102, 101, 102, 902)]);

    assert!(table.family(ANCESTOR, &[], HOST).is_empty());
}

#[test]
fn i08_a_recycled_pid_is_not_the_process_that_was_found_before() {
    let before = id(102, 60);
    let table = table([leader(), row(102, 1, 102, 61), row(103, 102, 102, 62)]);

    assert!(table.family(ANCESTOR, &[before], HOST).is_empty());
    let same = table.family(ANCESTOR, &[id(102, 61)], HOST);
    assert_eq!(pids(&same.escaped), [102, 103]);
}

#[test]
fn i08_a_child_older_than_its_parent_is_the_child_of_somebody_before() {
    let table = table([
        leader(),
        row(101, 100, 101, 70),
        row(102, 101, 102, 60), // its parent 101 was another one
        row(103, 100, 103, 40), // older than the leader, and so are these
        row(104, 1, 100, 40),
        marked(row(105, 1, 105, 40)),
    ]);

    assert_eq!(pids(&table.family(ANCESTOR, &[], HOST).escaped), [101]);
}

#[test]
fn i08_a_cycle_ends() {
    let table = table([
        leader(),
        row(101, 102, 101, 60),
        row(102, 101, 102, 60),
        row(103, 103, 103, 60),
        marked(row(104, 105, 104, 60)),
        row(105, 104, 105, 60),
    ]);

    assert_eq!(pids(&table.family(ANCESTOR, &[], HOST).escaped), [104, 105]);
}

#[test]
fn i08_a_cycle_through_the_leader_ends() {
    let mut first = leader();
    first.ppid = 101;
    let table = table([first, row(101, 100, 101, 50)]);

    assert_eq!(pids(&table.family(ANCESTOR, &[], HOST).escaped), [101]);
}

#[test]
fn neither_the_host_nor_process_1_nor_their_children_are_ever_ours() {
    let table = table([
        leader(),
        marked(row(1, 100, 1, 60)),
        marked(row(HOST, 100, 100, 60)),
        row(20, HOST, 20, 61),
        row(21, 1, 21, 61),
    ]);

    assert!(table.family(ANCESTOR, &[], HOST).is_empty());
}

#[test]
fn a_mark_is_proof_after_the_parents_have_gone() {
    let table = table([
        dead(leader()),
        marked(row(102, 1, 102, 52)),
        row(103, 102, 102, 53), // wiped its environment, but its parent is known
        row(104, 1, 104, 54),   // wiped it and lost its parent
    ]);

    assert_eq!(pids(&table.family(ANCESTOR, &[], HOST).escaped), [102, 103]);
}

#[test]
fn the_mark_of_another_server_of_the_same_pool_proves_nothing() {
    let other = Row {
        mark: Some(ANCESTOR.mark + 1),
        ..row(102, 1, 102, 52)
    };

    let table = table([leader(), other, row(103, 102, 102, 53)]);

    assert!(table.family(ANCESTOR, &[], HOST).is_empty());
}

#[test]
fn the_group_of_a_dead_leader_is_ours_until_it_is_reaped() {
    let rest = [row(101, 1, 100, 51), row(102, 101, 102, 52)];
    let mut rows = rest.to_vec();
    rows.push(dead(leader()));

    let family = ProcessTable::new(rows).family(ANCESTOR, &[], HOST);
    assert_eq!(pids(&family.members), [101]);
    assert_eq!(pids(&family.escaped), [102]);

    assert!(table(rest).family(ANCESTOR, &[], HOST).is_empty());
}

#[test]
fn a_zombie_is_not_alive_but_leads_to_its_children() {
    let table = table([
        leader(),
        dead(row(101, 100, 101, 51)),
        row(102, 101, 102, 52),
    ]);

    assert_eq!(pids(&table.family(ANCESTOR, &[], HOST).escaped), [102]);
}

#[test]
fn depth_is_bounded_and_what_is_deeper_is_reported() {
    let mut rows = vec![leader()];
    rows.extend((101..=112).map(|pid| row(pid, pid - 1, pid, u64::from(pid))));

    let family = ProcessTable::new(rows).family(ANCESTOR, &[], HOST);

    assert_eq!(pids(&family.escaped), (101..=108).collect::<Vec<_>>());
    assert_eq!(pids(&family.beyond), (109..=112).collect::<Vec<_>>());
}

fn id(pid: u32, start: u64) -> Identity {
    Identity { pid, start }
}

fn row(pid: u32, ppid: u32, pgid: u32, start: u64) -> Row {
    Row {
        id: id(pid, start),
        ppid,
        pgid,
        dead: false,
        mark: None,
    }
}

fn leader() -> Row {
    row(LEADER.pid, HOST, LEADER.pid, LEADER.start)
}

fn marked(row: Row) -> Row {
    Row {
        mark: Some(ANCESTOR.mark),
        ..row
    }
}

fn dead(row: Row) -> Row {
    Row { dead: true, ..row }
}

fn table<const N: usize>(rows: [Row; N]) -> ProcessTable {
    ProcessTable::new(rows.to_vec())
}

fn pids(ids: &[Identity]) -> Vec<u32> {
    ids.iter().map(|id| id.pid).collect()
}
