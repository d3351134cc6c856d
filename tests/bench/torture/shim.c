/* Counts the writing calls below a folder, and makes one of them fail.
 *
 * Loaded with LD_PRELOAD by torture.py, which maps the same state file. While `active` is 0 every
 * call goes through. Processes started meanwhile share the counter. While it is 1 the time of day
 * stands and random bytes follow from a counter, so that equal runs leave equal files.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WRITE, PWRITE, WRITEV, TRUNCATE, RENAME, UNLINK, LINK, MKDIR, CREATE, FLUSH, CHMOD };
enum { COUNT, KILL, TORN, SHORT, FAIL };

struct state {
    volatile int active, how, error, sticky, mask, acted;
    volatile long at, count, now, drawn;
    char root[1024];
    unsigned char kinds[1 << 16];
};

static struct state *state;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("TORTURE_STATE");
    int descriptor = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (descriptor < 0) return;
    void *mapped = mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (mapped != MAP_FAILED) state = mapped;
}

static __thread int in_index;

static int below(const char *path) {
    size_t length = strlen(state->root);
    in_index = strstr(path, "/.index/") != NULL;
    return !strncmp(path, state->root, length) && (path[length] == '/' || !path[length]);
}

static int descriptor_below(int descriptor) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return below(path);
}

static int path_below(int folder, const char *path) {
    char here[PATH_MAX];
    if (!path) return 0;
    if (path[0] == '/') return below(path);
    if (folder != AT_FDCWD) return descriptor_below(folder);
    return getcwd(here, sizeof here) && below(here);
}

static int watching(void) { return state && state->active; }

/* Returns what to do with a call of this kind. */
static int next(int kind) {
    long number = __sync_add_and_fetch(&state->count, 1);
    if (number < (long)sizeof state->kinds) state->kinds[number] = kind | (in_index ? 128 : 0);
    if (state->how == COUNT || !(state->mask & (1 << kind))) return COUNT;
    if (number != state->at && !(state->sticky && number > state->at)) return COUNT;
    state->acted = 1;
    if (state->how == KILL) kill(0, SIGKILL), pause();
    if (state->how != FAIL) return state->how;
    /* A disk that fills up takes a part of the write first. */
    if (state->sticky && number == state->at && (kind == WRITE || kind == PWRITE) &&
        (state->error == ENOSPC || state->error == EDQUOT))
        return SHORT;
    errno = state->error;
    return FAIL;
}

static void end(int what) {
    if (what == TORN) kill(0, SIGKILL), pause();
}

#define REAL(name)                                                     \
    ({                                                                 \
        if (!real_##name) real_##name = dlsym(RTLD_NEXT, #name);       \
        (__typeof__(&name))real_##name;                                \
    })
#define DECLARE(name) static void *real_##name
#define AROUND(below_, kind, failed, call)                \
    do {                                                  \
        if (!watching() || !(below_)) return call;        \
        int what = next(kind);                            \
        if (what == FAIL) return failed;                  \
        __auto_type answer = call;                        \
        end(what);                                        \
        return answer;                                    \
    } while (0)
/* A torn or short write writes the first half. */
#define WRITING(descriptor, kind, size, call)                         \
    do {                                                              \
        if (watching() && (size) && descriptor_below(descriptor)) {   \
            int what = next(kind);                                    \
            if (what == FAIL) return -1;                              \
            if (what != COUNT) size = (size) > 1 ? (size) / 2 : 1;    \
            ssize_t answer = call;                                    \
            end(what);                                                \
            return answer;                                            \
        }                                                             \
        return call;                                                  \
    } while (0)

DECLARE(write);
ssize_t write(int fd, const void *data, size_t size) {
    WRITING(fd, WRITE, size, REAL(write)(fd, data, size));
}
DECLARE(pwrite);
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    WRITING(fd, PWRITE, size, REAL(pwrite)(fd, data, size, at));
}
DECLARE(pwrite64);
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    WRITING(fd, PWRITE, size, REAL(pwrite64)(fd, data, size, at));
}
DECLARE(writev);
ssize_t writev(int fd, const struct iovec *parts, int number) {
    AROUND(descriptor_below(fd), WRITEV, -1, REAL(writev)(fd, parts, number));
}
DECLARE(ftruncate);
int ftruncate(int fd, off_t size) {
    AROUND(descriptor_below(fd), TRUNCATE, -1, REAL(ftruncate)(fd, size));
}
DECLARE(ftruncate64);
int ftruncate64(int fd, off64_t size) {
    AROUND(descriptor_below(fd), TRUNCATE, -1, REAL(ftruncate64)(fd, size));
}
DECLARE(fsync);
int fsync(int fd) { AROUND(descriptor_below(fd), FLUSH, -1, REAL(fsync)(fd)); }
DECLARE(fdatasync);
int fdatasync(int fd) { AROUND(descriptor_below(fd), FLUSH, -1, REAL(fdatasync)(fd)); }
DECLARE(rename);
int rename(const char *from, const char *to) {
    AROUND(path_below(AT_FDCWD, to), RENAME, -1, REAL(rename)(from, to));
}
DECLARE(renameat);
int renameat(int a, const char *from, int b, const char *to) {
    AROUND(path_below(b, to), RENAME, -1, REAL(renameat)(a, from, b, to));
}
DECLARE(unlink);
int unlink(const char *path) { AROUND(path_below(AT_FDCWD, path), UNLINK, -1, REAL(unlink)(path)); }
DECLARE(unlinkat);
int unlinkat(int fd, const char *path, int flags) {
    AROUND(path_below(fd, path), UNLINK, -1, REAL(unlinkat)(fd, path, flags));
}
DECLARE(rmdir);
int rmdir(const char *path) { AROUND(path_below(AT_FDCWD, path), UNLINK, -1, REAL(rmdir)(path)); }
DECLARE(link);
int link(const char *from, const char *to) {
    AROUND(path_below(AT_FDCWD, to), LINK, -1, REAL(link)(from, to));
}
DECLARE(linkat);
int linkat(int a, const char *from, int b, const char *to, int flags) {
    AROUND(path_below(b, to), LINK, -1, REAL(linkat)(a, from, b, to, flags));
}
DECLARE(mkdir);
int mkdir(const char *path, mode_t mode) {
    AROUND(path_below(AT_FDCWD, path), MKDIR, -1, REAL(mkdir)(path, mode));
}
DECLARE(mkdirat);
int mkdirat(int fd, const char *path, mode_t mode) {
    AROUND(path_below(fd, path), MKDIR, -1, REAL(mkdirat)(fd, path, mode));
}
DECLARE(chmod);
int chmod(const char *path, mode_t mode) {
    AROUND(path_below(AT_FDCWD, path), CHMOD, -1, REAL(chmod)(path, mode));
}
DECLARE(fchmod);
int fchmod(int fd, mode_t mode) { AROUND(descriptor_below(fd), CHMOD, -1, REAL(fchmod)(fd, mode)); }
DECLARE(fchmodat);
int fchmodat(int fd, const char *path, mode_t mode, int flags) {
    AROUND(path_below(fd, path), CHMOD, -1, REAL(fchmodat)(fd, path, mode, flags));
}

#define MODE_OF(flags)                      \
    mode_t mode = 0;                        \
    if ((flags) & (O_CREAT | O_TMPFILE)) {  \
        va_list rest;                       \
        va_start(rest, flags);              \
        mode = va_arg(rest, mode_t);        \
        va_end(rest);                       \
    }
/* Opening a file that exists writes nothing. */
#define CREATES(fd, path, flags) \
    (((flags) & O_CREAT) && path_below(fd, path) && faccessat(fd, path, F_OK, 0))
DECLARE(open);
int open(const char *path, int flags, ...) {
    MODE_OF(flags);
    AROUND(CREATES(AT_FDCWD, path, flags), CREATE, -1, REAL(open)(path, flags, mode));
}
DECLARE(open64);
int open64(const char *path, int flags, ...) {
    MODE_OF(flags);
    AROUND(CREATES(AT_FDCWD, path, flags), CREATE, -1, REAL(open64)(path, flags, mode));
}
DECLARE(openat);
int openat(int fd, const char *path, int flags, ...) {
    MODE_OF(flags);
    AROUND(CREATES(fd, path, flags), CREATE, -1, REAL(openat)(fd, path, flags, mode));
}
DECLARE(openat64);
int openat64(int fd, const char *path, int flags, ...) {
    MODE_OF(flags);
    AROUND(CREATES(fd, path, flags), CREATE, -1, REAL(openat64)(fd, path, flags, mode));
}

DECLARE(clock_gettime);
int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!watching() || clock != CLOCK_REALTIME) return REAL(clock_gettime)(clock, time);
    time->tv_sec = state->now, time->tv_nsec = 0;
    return 0;
}
int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec, time->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *place) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (place) *place = now.tv_sec;
    return now.tv_sec;
}
DECLARE(getrandom);
ssize_t getrandom(void *data, size_t size, unsigned flags) {
    if (!watching()) return REAL(getrandom)(data, size, flags);
    for (size_t n = 0; n < size; n++) {
        unsigned long drawn = __sync_add_and_fetch(&state->drawn, 1) * 0x9e3779b97f4a7c15ul;
        ((unsigned char *)data)[n] = (drawn ^ drawn >> 29) >> 17;
    }
    return size;
}
