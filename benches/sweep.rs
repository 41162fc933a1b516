//! What one look at the process table costs, as each end of a server takes a few of them,
//! beside one `ps -A`, which is how others look.
//!
//! ```text
//! cargo bench --bench sweep
//! ```
//!
//! Prints milliseconds, the median and the best of many, for the processes that run anyway
//! and for 300 more. Then what it takes to end many servers at once, each with a child that
//! left its group: kindly, killed together, and dropped one by one.
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

    use futures::future::join_all;
    use steadfast::pool::process::{Grace, InheritedEnv, Process, Spawned, Spec, Watchdog, spawn};

    const LOOKS: usize = 100;
    const SERVERS: [usize; 3] = [1, 30, 120];
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
        println!(
            "\n{:<12} {:<12} {:>16} {:>16} {:>16}",
            "processes", "servers", "shut down", "killed", "dropped"
        );
        for more in [0, 300] {
            let crowd = Crowd::of(more);
            for servers in SERVERS {
                let crowded = processes();
                let took = runtime.block_on(ends(servers));
                let [kindly, killed, dropped] = took.map(|took| took.as_secs_f64() * 1e3);
                println!(
                    "{crowded:<12} {servers:<12} {kindly:>13.0} ms {killed:>13.0} ms \
                     {dropped:>13.0} ms"
                );
            }
            drop(crowd);
        }
    }

    /// How long so many servers take to end: asked to, killed together, and one by one.
    async fn ends(servers: usize) -> [Duration; 3] {
        let watchdog = Watchdog::new();
        let all = trees(servers, &watchdog);
        let begun = Instant::now();
        let ends = join_all(all.into_iter().map(|server| async {
            let mut process = server.process;
            process.note_descendants().await;
            drop(server.stdin);
            process.shutdown(Grace::default()).await
        }));
        let ends = ends.await;
        let kindly = begun.elapsed();
        assert!(ends.iter().all(|end| end.survivors == Some(0)));

        let all = trees(servers, &watchdog);
        let begun = Instant::now();
        Process::kill_all(all.into_iter().map(|server| server.process));
        let killed = begun.elapsed();

        let all = trees(servers, &watchdog);
        let begun = Instant::now();
        drop(all);
        [kindly, killed, begun.elapsed()]
    }

    fn trees(servers: usize, watchdog: &Watchdog) -> Vec<Spawned> {
        let spec = Spec::new("sh")
            .with_args(["-c", "setsid sleep 600 & exec cat"])
            .with_env(InheritedEnv::capture().with([]));
        let start = || spawn(&spec, watchdog, 1024).unwrap();
        let all: Vec<_> = (0..servers).map(|_| start()).collect();
        // Until each has become what it is.
        std::thread::sleep(Duration::from_millis(300));
        all
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
