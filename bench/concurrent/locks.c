/* Stops a process right after it has taken its n-th lock, for bench/concurrent/stopped.py.
 *
 * Locks are those of flock and fcntl, and files NAME.lock that a program creates for itself, as git
 * does. Only the processes of one group are counted. Each lock is written to the record: its number
 * is that of the line. For another group, the time is added up that its processes sleep or wait for a
 * lock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

struct state {
    volatile long group, at, count, stopped;
    volatile long refused;
    volatile long waiting, waited; /* a group of processes, and their nanoseconds */
    char root[1024];
};

static struct state *state;
static int record = -1;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("LOCKS_STATE"), *log = getenv("LOCKS_RECORD");
    if (log) record = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
    int descriptor = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (descriptor < 0) return;
    void *mapped = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (mapped != MAP_FAILED) state = mapped;
}

static void taken(const char *kind, const char *path) {
    char line[PATH_MAX + 64];
    int error = errno;
    if (!strncmp(path, state->root, strlen(state->root))) {
        long number = __sync_add_and_fetch(&state->count, 1);
        int length = snprintf(line, sizeof line, "%s %s\n", kind, path);
        if (record >= 0 && write(record, line, length) < 0) abort();
        if (number == state->at) {
            state->stopped = getpid();
            raise(SIGSTOP);
        }
    }
    errno = error;
}

static void taken_by(const char *kind, int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    taken(kind, path);
}

static int counts(void) { return state && state->group && state->group == getpgrp(); }

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static void waited_since(long start) {
    int error = errno;
    if (state && state->waiting && state->waiting == getpgrp())
        __sync_add_and_fetch(&state->waited, now() - start);
    errno = error;
}

#define SLEEP(name, result, parameters, arguments, sleeps)  \
    result name parameters {                                \
        static result(*real) parameters;                    \
        if (!real) real = dlsym(RTLD_NEXT, #name);          \
        long start = now();                                 \
        result answer = real arguments;                     \
        if (sleeps) waited_since(start);                    \
        return answer;                                      \
    }
SLEEP(nanosleep, int, (const struct timespec *time, struct timespec *left), (time, left), 1)
SLEEP(clock_nanosleep, int,
      (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
      (clock, flags, time, left), 1)
SLEEP(usleep, int, (useconds_t time), (time), 1)
SLEEP(sleep, unsigned, (unsigned time), (time), 1)
SLEEP(poll, int, (struct pollfd *files, nfds_t count, int time), (files, count, time), !count)
SLEEP(select, int, (int count, fd_set *in, fd_set *out, fd_set *other, struct timeval *time),
      (count, in, out, other, time), !count)

int flock(int descriptor, int operation) {
    static int (*real)(int, int);
    if (!real) real = dlsym(RTLD_NEXT, "flock");
    if (state && state->refused && !(operation & LOCK_UN)) {
        if (state->refused < 0) return 0;
        errno = state->refused;
        return -1;
    }
    long start = now();
    int answer = real(descriptor, operation);
    if (!(operation & LOCK_NB)) waited_since(start);
    if (!answer && !(operation & LOCK_UN) && counts())
        taken_by(operation & LOCK_SH ? "flock, shared" : "flock", descriptor);
    return answer;
}

static int controlled(int (*real)(int, int, ...), int descriptor, int command, void *argument) {
    long start = now();
    int answer = real(descriptor, command, argument);
    if (command == F_SETLKW) waited_since(start);
    int sets = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK;
    if (!answer && sets && counts()) {
        struct flock *lock = argument;
        const char *how = lock->l_type == F_WRLCK ? "exclusive" : "shared";
        char kind[64];
        snprintf(kind, sizeof kind, "fcntl, %s, byte %ld", how, (long)lock->l_start);
        if (lock->l_type != F_UNLCK) taken_by(kind, descriptor);
    }
    return answer;
}

#define CONTROL(name)                                                  \
    int name(int descriptor, int command, ...) {                       \
        static int (*real)(int, int, ...);                             \
        if (!real) real = dlsym(RTLD_NEXT, #name);                     \
        va_list rest;                                                  \
        va_start(rest, command);                                       \
        void *argument = va_arg(rest, void *);                         \
        va_end(rest);                                                  \
        return controlled(real, descriptor, command, argument);        \
    }
CONTROL(fcntl)
CONTROL(fcntl64)

#define OPEN(name)                                                         \
    int name(const char *path, int flags, ...) {                           \
        static int (*real)(const char *, int, ...);                        \
        if (!real) real = dlsym(RTLD_NEXT, #name);                         \
        va_list rest;                                                      \
        va_start(rest, flags);                                             \
        mode_t mode = (flags & (O_CREAT | O_TMPFILE)) ? va_arg(rest, mode_t) : 0; \
        va_end(rest);                                                      \
        int answer = real(path, flags, mode);                              \
        size_t length = strlen(path);                                      \
        int is_lock = length > 5 && !strcmp(path + length - 5, ".lock");   \
        if (answer >= 0 && is_lock && (flags & O_CREAT) && (flags & O_EXCL) && counts()) \
            taken_by("file", answer);                                      \
        return answer;                                                     \
    }
OPEN(open)
OPEN(open64)
