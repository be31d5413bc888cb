//! The kernel's figures about this machine and about processes: cores, CPU time, memory.

use std::{fs, ops::Range, time::Duration};

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
    // User and system time.
    times_of(&process.to_string(), 11..13)
}

/// The same for a process, the children it has now, and those that it had and waited for.
pub(crate) fn cpu_of_family(process: u32) -> Duration {
    let running = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let children = running.split_whitespace().filter_map(|child| child.parse().ok());
    // Its user and system time, followed by those of ended children.
    times_of(&process.to_string(), 11..15) + children.map(cpu_of).sum::<Duration>()
}

/// The same for the running threads of a process that have this name.
pub(crate) fn cpu_of_threads(process: u32, name: &str) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let is_named = |thread: &fs::DirEntry| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|found| found.trim_end() == name)
    };
    let times =
        |thread: fs::DirEntry| times_of(&format!("{process}/task/{}", thread.file_name().display()), 11..13);
    threads.filter(is_named).map(times).sum()
}

/// The sum of some of the kernel's fields about a process or a thread that are times.
fn times_of(what: &str, fields: Range<usize>) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{what}/stat")).unwrap_or_default();
    // The program's name may hold spaces; what follows does not.
    let values = stat.rsplit(") ").next().unwrap_or_default().split(' ');
    let ticks = values.skip(fields.start).take(fields.len()).filter_map(|field| field.parse::<u64>().ok());
    // In hundredths of a second on every Linux.
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// The process that started a process.
pub(crate) fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // After the name there is a state, and then the parent.
    stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}

/// The CPU time of the calling thread so far.
pub(crate) fn thread_cpu() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(0);
    Duration::from_nanos(nanos)
}

/// Resident memory of a process in bytes.
pub(crate) fn resident_memory(process: u32) -> u64 {
    memory_of(process, "Rss:")
}

/// The part of it that is no file's: what the program itself has allocated.
pub(crate) fn anonymous_memory(process: u32) -> u64 {
    memory_of(process, "Anonymous:")
}

fn memory_of(process: u32, field: &str) -> u64 {
    let summary = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let kibibytes = summary
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.expect("the process runs and the kernel tells its memory") * 1024
}
