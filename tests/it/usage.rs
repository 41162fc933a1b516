//! What this process uses. Means something only while nothing else runs in it.

use std::fs;

/// The memory of this process in bytes: what it uses now, and the most it used since
/// [`forget_peak`].
pub(crate) fn memory() -> (usize, usize) {
    let status = fs::read_to_string("/proc/self/status").expect("it runs");
    let of = |field| {
        let line = status.lines().find(|line| line.starts_with(field));
        let kib = line.and_then(|line| line.split_whitespace().nth(1));
        kib.and_then(|kib| kib.parse::<usize>().ok())
            .expect("a size")
            * 1024
    };
    (of("VmRSS:"), of("VmHWM:"))
}

pub(crate) fn forget_peak() {
    fs::write("/proc/self/clear_refs", "5").expect("one's own peak can be forgotten");
}

/// How many descriptors this process has open.
pub(crate) fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("it runs").count()
}

/// The processes that this one has started and not buried.
pub(crate) fn children() -> Vec<u32> {
    let own = std::process::id();
    let entries = fs::read_dir("/proc").expect("there is a /proc");
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent(*pid) == Some(own)).collect()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}
