/* Counts the writing calls below a folder, and makes one of them fail; or records them all.
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
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WRITE, PWRITE, WRITEV, TRUNCATE, RENAME, UNLINK, LINK, MKDIR, CREATE, FLUSH, CHMOD };
enum { COUNT, KILL, TORN, SHORT, FAIL, RECORD };

struct state {
    volatile int active, how, error, sticky, mask, acted, recording;
    volatile long at, count, now, drawn;
    char root[1024];
    unsigned char kinds[1 << 16];
};

static struct state *state;
static int record = -1;

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("TORTURE_STATE");
    const char *log = getenv("TORTURE_RECORD");
    if (log) record = open(log, O_WRONLY | O_APPEND | O_CLOEXEC);
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

/* An event of the record: a head, the paths with their zeros, and the data of a write. */
struct event {
    int kind, mode;
    long inode, at, size, paths;
};

static void absolute(int folder, const char *path, char *whole) {
    char link[64];
    ssize_t length = 0;
    if (path[0] != '/') {
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        length = readlink(link, whole, PATH_MAX - 1);
        if (length < 0) length = 0;
        whole[length++] = '/';
    }
    snprintf(whole + length, PATH_MAX - length, "%s", path);
}

static void note(struct event event, const char *one, const char *two, const struct iovec *data,
                 int parts) {
    struct iovec whole[64] = {
        {&event, sizeof event}, {(void *)one, strlen(one) + 1}, {(void *)two, strlen(two) + 1}};
    event.paths = whole[1].iov_len + whole[2].iov_len;
    long left = event.size;
    int number = 3;
    for (int part = 0; data && part < parts && number < 64 && left > 0; part++) {
        whole[number] = data[part];
        if ((long)whole[number].iov_len > left) whole[number].iov_len = left;
        left -= whole[number++].iov_len;
    }
    syscall(SYS_writev, record, whole, number);
}

static void note_data(int kind, int descriptor, long at, const struct iovec *data, int parts,
                      long size) {
    struct stat status;
    fstat(descriptor, &status);
    struct event event = {kind, status.st_mode, status.st_ino, at, size, 0};
    note(event, "", "", data, parts);
}

static void note_names(int kind, int a, const char *one, int b, const char *two) {
    static __thread char first[PATH_MAX], second[PATH_MAX];
    struct stat status = {0};
    absolute(a, one, first);
    second[0] = 0;
    if (two) absolute(b, two, second);
    lstat(two ? second : first, &status);
    struct event event = {kind, status.st_mode, status.st_ino, 0, 0, 0};
    note(event, first, second, NULL, 0);
}

/* One call at a time is made and recorded, so that the order is that of the calls. */
static void begin(void) {
    while (__sync_lock_test_and_set(&state->recording, 1)) usleep(10);
}
static void done(void) { __sync_lock_release(&state->recording); }

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
    if (state->how == RECORD) return RECORD;
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

#define REAL(name)                                          \
    ({                                                      \
        static void *real;                                  \
        if (!real) real = dlsym(RTLD_NEXT, #name);          \
        (__typeof__(&name))real;                            \
    })
#define AROUND(below_, kind, failed, call, noted)             \
    do {                                                      \
        if (!watching() || !(below_)) return call;            \
        int what = next(kind);                                \
        if (what == FAIL) return failed;                      \
        if (what == RECORD) begin();                          \
        __auto_type answer = call;                            \
        int error = errno;                                    \
        if (what == RECORD && answer != failed) noted;        \
        if (what == RECORD) done();                           \
        errno = error;                                        \
        end(what);                                            \
        return answer;                                        \
    } while (0)
/* A torn or short write writes the first half. */
#define WRITING(descriptor, kind, data, size, offset, call)                  \
    do {                                                                     \
        if (watching() && (size) && descriptor_below(descriptor)) {          \
            int what = next(kind);                                           \
            if (what == FAIL) return -1;                                     \
            if (what == RECORD) {                                            \
                struct iovec all = {(void *)data, size};                     \
                begin();                                                     \
                ssize_t answer = call;                                       \
                int error = errno;                                           \
                if (answer > 0) note_data(kind, descriptor, offset, &all, 1, answer); \
                done();                                                      \
                errno = error;                                               \
                return answer;                                               \
            }                                                                \
            if (what != COUNT) size = (size) > 1 ? (size) / 2 : 1;           \
            ssize_t answer = call;                                           \
            end(what);                                                       \
            return answer;                                                   \
        }                                                                    \
        return call;                                                         \
    } while (0)
#define AFTER(descriptor) lseek(descriptor, 0, SEEK_CUR) - answer
#define NAMED(kind, folder, path) note_names(kind, folder, path, 0, NULL)

ssize_t write(int fd, const void *data, size_t size) {
    /* Of the answer, also by a duplicate of the descriptor. */
    if (watching() && state->how == RECORD && !descriptor_below(fd)) {
        struct iovec all = {(void *)data, size};
        note_data(-1, fd, 0, &all, 1, size);
    }
    WRITING(fd, WRITE, data, size, AFTER(fd), REAL(write)(fd, data, size));
}
#define PWRITING(name)                                                  \
    ssize_t name(int fd, const void *data, size_t size, off_t at) {     \
        WRITING(fd, PWRITE, data, size, at, REAL(name)(fd, data, size, at)); \
    }
PWRITING(pwrite)
PWRITING(pwrite64)
ssize_t writev(int fd, const struct iovec *parts, int number) {
    AROUND(descriptor_below(fd), WRITEV, -1, REAL(writev)(fd, parts, number),
           note_data(WRITE, fd, AFTER(fd), parts, number, answer));
}
#define CUTTING(name)                                                        \
    int name(int fd, off_t size) {                                           \
        AROUND(descriptor_below(fd), TRUNCATE, -1, REAL(name)(fd, size),     \
               note_data(TRUNCATE, fd, size, NULL, 0, 0));                   \
    }
CUTTING(ftruncate)
CUTTING(ftruncate64)
#define FLUSHING(name)                                                                            \
    int name(int fd) {                                                                            \
        AROUND(descriptor_below(fd), FLUSH, -1, REAL(name)(fd), note_data(FLUSH, fd, 0, NULL, 0, 0)); \
    }
FLUSHING(fsync)
FLUSHING(fdatasync)
int rename(const char *from, const char *to) {
    AROUND(path_below(AT_FDCWD, to), RENAME, -1, REAL(rename)(from, to),
           note_names(RENAME, AT_FDCWD, from, AT_FDCWD, to));
}
int renameat(int a, const char *from, int b, const char *to) {
    AROUND(path_below(b, to), RENAME, -1, REAL(renameat)(a, from, b, to),
           note_names(RENAME, a, from, b, to));
}
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
    AROUND(path_below(b, to), RENAME, -1, REAL(renameat2)(a, from, b, to, flags),
           note_names(RENAME, a, from, b, to));
}
int symlink(const char *target, const char *path) {
    AROUND(path_below(AT_FDCWD, path), CREATE, -1, REAL(symlink)(target, path),
           NAMED(CREATE, AT_FDCWD, path));
}
int symlinkat(const char *target, int fd, const char *path) {
    AROUND(path_below(fd, path), CREATE, -1, REAL(symlinkat)(target, fd, path),
           NAMED(CREATE, fd, path));
}
int unlink(const char *path) {
    AROUND(path_below(AT_FDCWD, path), UNLINK, -1, REAL(unlink)(path),
           NAMED(UNLINK, AT_FDCWD, path));
}
int unlinkat(int fd, const char *path, int flags) {
    AROUND(path_below(fd, path), UNLINK, -1, REAL(unlinkat)(fd, path, flags), NAMED(UNLINK, fd, path));
}
int rmdir(const char *path) {
    AROUND(path_below(AT_FDCWD, path), UNLINK, -1, REAL(rmdir)(path),
           NAMED(UNLINK, AT_FDCWD, path));
}
int link(const char *from, const char *to) {
    AROUND(path_below(AT_FDCWD, to), LINK, -1, REAL(link)(from, to),
           note_names(LINK, AT_FDCWD, from, AT_FDCWD, to));
}
int linkat(int a, const char *from, int b, const char *to, int flags) {
    AROUND(path_below(b, to), LINK, -1, REAL(linkat)(a, from, b, to, flags),
           note_names(LINK, a, from, b, to));
}
int mkdir(const char *path, mode_t mode) {
    AROUND(path_below(AT_FDCWD, path), MKDIR, -1, REAL(mkdir)(path, mode),
           NAMED(MKDIR, AT_FDCWD, path));
}
int mkdirat(int fd, const char *path, mode_t mode) {
    AROUND(path_below(fd, path), MKDIR, -1, REAL(mkdirat)(fd, path, mode), NAMED(MKDIR, fd, path));
}
int chmod(const char *path, mode_t mode) {
    AROUND(path_below(AT_FDCWD, path), CHMOD, -1, REAL(chmod)(path, mode),
           NAMED(CHMOD, AT_FDCWD, path));
}
int fchmod(int fd, mode_t mode) {
    AROUND(descriptor_below(fd), CHMOD, -1, REAL(fchmod)(fd, mode),
           note_data(CHMOD, fd, 0, NULL, 0, 0));
}
int fchmodat(int fd, const char *path, mode_t mode, int flags) {
    AROUND(path_below(fd, path), CHMOD, -1, REAL(fchmodat)(fd, path, mode, flags), NAMED(CHMOD, fd, path));
}

#define MODE_OF(flags)                      \
    mode_t mode = 0;                        \
    if ((flags) & (O_CREAT | O_TMPFILE)) {  \
        va_list rest;                       \
        va_start(rest, flags);              \
        mode = va_arg(rest, mode_t);        \
        va_end(rest);                       \
    }
/* Opening a file that exists writes nothing, unless it empties the file. */
#define OPENING(fd, path, flags, call)                                              \
    do {                                                                            \
        if (!((flags) & (O_CREAT | O_TRUNC)) || !watching()) return call;           \
        int is_new = faccessat(fd, path, F_OK, 0);                                  \
        if (is_new && !((flags) & O_CREAT)) return call;                            \
        if (is_new) AROUND(path_below(fd, path), CREATE, -1, call, NAMED(CREATE, fd, path)); \
        AROUND(((flags) & O_TRUNC) && !((flags) & O_EXCL) && path_below(fd, path), TRUNCATE, -1, \
               call, note_data(TRUNCATE, answer, 0, NULL, 0, 0));                   \
    } while (0)
#define OPEN(name)                                                \
    int name(const char *path, int flags, ...) {                  \
        MODE_OF(flags);                                           \
        OPENING(AT_FDCWD, path, flags, REAL(name)(path, flags, mode)); \
    }
OPEN(open)
OPEN(open64)
#define OPEN_AT(name)                                             \
    int name(int fd, const char *path, int flags, ...) {          \
        MODE_OF(flags);                                           \
        OPENING(fd, path, flags, REAL(name)(fd, path, flags, mode)); \
    }
OPEN_AT(openat)
OPEN_AT(openat64)

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
ssize_t getrandom(void *data, size_t size, unsigned flags) {
    if (!watching()) return REAL(getrandom)(data, size, flags);
    for (size_t n = 0; n < size; n++) {
        unsigned long drawn = __sync_add_and_fetch(&state->drawn, 1) * 0x9e3779b97f4a7c15ul;
        ((unsigned char *)data)[n] = (drawn ^ drawn >> 29) >> 17;
    }
    return size;
}
