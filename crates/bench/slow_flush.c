// Makes flushing take as long as on an ordinary disk of a cloud, where a flush is a trip over the network. `scripts/bench`
// loads it with LD_PRELOAD into its own program, which holds SQLite, and into PostgreSQL.
//
// The file named by AGENT_MAILBOX_BENCH_FLUSH holds the least duration of a flush in microseconds, an unsigned number of
// 32 bits. It is mapped rather than read, so that the measuring program can change it for all processes at any moment, and
// so that looking at it costs nothing while it is 0. Only fsync and fdatasync are replaced: neither engine makes a commit
// durable by any other call (PostgreSQL's sync_file_range is a hint, and SQLite maps its file only to read it).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile uint32_t *least_microseconds;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("AGENT_MAILBOX_BENCH_FLUSH");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) {
        return;
    }
    void *mapped = mmap(NULL, sizeof(uint32_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED) {
        least_microseconds = mapped;
    }
}

static int flush(long number, int file) {
    uint32_t least = least_microseconds ? *least_microseconds : 0;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int result = (int)syscall(number, file);
    int error = errno;
    if (least > 0) {
        long nanoseconds = until.tv_nsec + (long)(least % 1000000) * 1000;
        until.tv_sec += least / 1000000 + nanoseconds / 1000000000;
        until.tv_nsec = nanoseconds % 1000000000;
        // A moment rather than a duration, because PostgreSQL's processes wake each other by signals.
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
        }
    }
    errno = error;
    return result;
}

int fsync(int file) {
    return flush(SYS_fsync, file);
}

int fdatasync(int file) {
    return flush(SYS_fdatasync, file);
}
