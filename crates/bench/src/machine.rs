//! The kernel's figures about this machine and about processes: cores, CPU time, memory.

use std::{fs, time::Duration};

/// The machine in a few words, without its name or the date.
pub(crate) fn description() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("an unknown processor", |(_, model)| model);
    format!("{cores} cores, {model}")
}

/// The CPU time of this process so far, including ended threads.
pub(crate) fn process_cpu() -> Duration {
    cpu_of(std::process::id())
}

/// The same for any process; zero for one that has ended.
pub(crate) fn cpu_of(process: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The program's name may hold spaces; what follows does not.
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
    // User and system time, in hundredths of a second on every Linux.
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

/// The CPU time of the calling thread so far.
pub(crate) fn thread_cpu() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos)
}

/// Resident memory of a process in bytes.
pub(crate) fn resident_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.expect("the process runs and the kernel tells its memory") * 1024
}
