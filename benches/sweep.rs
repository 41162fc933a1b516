//! What one look at the process table costs, as each end of a server takes a few of them,
//! beside one `ps -A`, which is how others look.
//!
//! ```text
//! cargo bench --bench sweep
//! ```
//!
//! Prints milliseconds, the median and the best of many, for the processes that run anyway
//! and for 300 more.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark measures real time, and its set-up cannot fail"
)]

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        fs,
        process::{Child, Command, Stdio},
        time::{Duration, Instant},
    };

    use steadfast::pool::process::{Grace, InheritedEnv, Spec, Watchdog, spawn};

    const LOOKS: usize = 100;
    const LISTINGS: usize = 20;

    /// Processes that do nothing, for as long as this lives.
    struct Crowd(Vec<Child>);

    pub(crate) fn run() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        println!(
            "{:<12} {:>20} {:>20} {:>20}",
            "processes", "sweep", "ps -A", "ps -A with environ"
        );
        for more in [0, 300] {
            let (sweep, crowd) = runtime.block_on(sweeps(more));
            let plain = listings(&["-A"]);
            let environment = listings(&["-A", "e", "-o", "pid,ppid,pgid,lstart,args"]);
            println!(
                "{:<12} {:>20} {:>20} {:>20}",
                processes(),
                shown(sweep),
                shown(plain),
                shown(environment)
            );
            drop(crowd);
        }
    }

    /// The pass that tells a server's descendants by group, parents, mark and start time. Of
    /// a process that is older than the server less is read, so the crowd comes after it.
    async fn sweeps(more: usize) -> (Vec<Duration>, Crowd) {
        let spec = Spec::new("sleep")
            .with_args(["600"])
            .with_env(InheritedEnv::capture().with([]));
        let mut server = spawn(&spec, &Watchdog::new(), 1024).unwrap();
        let crowd = Crowd::of(more);
        let mut took = Vec::new();
        for _ in 0..LOOKS {
            let begun = Instant::now();
            server.process.note_descendants().await;
            took.push(begun.elapsed());
        }
        drop(server.stdin);
        let at_once = Grace::new(
            Duration::ZERO,
            Duration::from_secs(1),
            Duration::from_secs(1),
        );
        server.process.shutdown(at_once).await;
        (took, crowd)
    }

    fn listings(args: &[&str]) -> Vec<Duration> {
        let listing = || {
            let begun = Instant::now();
            let output = Command::new("ps").args(args).output().unwrap();
            assert!(output.status.success() && !output.stdout.is_empty());
            begun.elapsed()
        };
        (0..LISTINGS).map(|_| listing()).collect()
    }

    fn shown(mut took: Vec<Duration>) -> String {
        took.sort();
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        format!("{:.2} ({:.2}) ms", ms(took[took.len() / 2]), ms(took[0]))
    }

    fn processes() -> usize {
        let names = fs::read_dir("/proc").unwrap();
        let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| name.parse::<u32>().is_ok()).count()
    }

    // === impl Crowd ===

    impl Crowd {
        fn of(count: usize) -> Self {
            let idle = || {
                Command::new("sleep")
                    .arg("600")
                    .stdin(Stdio::null())
                    .spawn()
                    .unwrap()
            };
            Self((0..count).map(|_| idle()).collect())
        }
    }

    impl Drop for Crowd {
        fn drop(&mut self) {
            for child in &mut self.0 {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn main() {
    #[cfg(target_os = "linux")]
    linux::run();
    #[cfg(not(target_os = "linux"))]
    println!("only Linux has a /proc to look at");
}
