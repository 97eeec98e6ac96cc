/* A layer between a process and the disk, preloaded before the C library: it counts every operation that changes
 * something below one folder, writes them down, and at the n-th one fails, tears the write in two, ends the process as a
 * power cut would, lets the clock leap, or stops until it is told to go on. It is off until `torture_begin` is called, so that one process can be forked for every n.
 *
 * Each line of the log is `operation TAB length TAB offset TAB path TAB other path`; the bytes of writes follow each
 * other in a second file. Files without a name (removed while open) are nobody's state, and are passed over.
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
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum how { COUNT, KILL, TEAR, FAIL, FULL, LEAP, STOP };

static char root[PATH_MAX];
static size_t root_length;
static int at, how, failure, log_number = -1, data_number = -1;
static long leapt; /* seconds by which the clock is wrong */
static int *count; /* shared with whoever forked us, who reads it when we are gone */

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

void torture_begin(const char *folder, int n, int manner, int error, int log, int data, int *counter) {
    snprintf(root, sizeof root, "%s", folder);
    root_length = strlen(root);
    at = n, how = manner, failure = error, log_number = log, data_number = data, count = counter;
}

static void die(void) { kill(getpid(), SIGKILL); }

static int below(const char *path) {
    return root_length && !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static int of_number(int number, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", number);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return below(path) && !strstr(path, " (deleted)");
}

static int of_name(int folder, const char *name, char *path) {
    char parent[PATH_MAX];
    if (name[0] == '/') parent[0] = 0;
    else if (folder == AT_FDCWD) { if (!getcwd(parent, sizeof parent)) return 0; }
    else of_number(folder, parent);
    snprintf(path, PATH_MAX, name[0] == '/' ? "%s%s" : "%s/%s", parent, name);
    return below(path);
}

/* 0: go on; 1: fail with errno; 2: do half, then die. Returns only if the process is to live on until then. */
static int next(const char *operation, const char *path, const char *other, size_t length, off_t offset, const void *data) {
    int n = ++*count;
    if (how == KILL && n == at) die();
    if (how == LEAP && n == at) leapt = failure * 86400L;
    if (how == STOP && n == at) raise(SIGSTOP);
    if ((how == FAIL && n == at) || (how == FULL && n >= at && strcmp(operation, "unlink") && strcmp(operation, "rmdir"))) {
        errno = failure;
        return 1;
    }
    if (log_number >= 0) {
        dprintf(log_number, "%s\t%zu\t%lld\t%s\t%s\n", operation, length, (long long)offset, path, other);
        if (data && REAL(write)(data_number, data, length) != (ssize_t)length) die();
    }
    return how == TEAR && n == at ? 2 : 0;
}

static off_t place(int number) {
    struct stat status;
    if (fcntl(number, F_GETFL) & O_APPEND) return fstat(number, &status) ? 0 : status.st_size;
    return lseek(number, 0, SEEK_CUR);
}

ssize_t write(int number, const void *data, size_t length) {
    char path[PATH_MAX];
    if (!root_length || !of_number(number, path)) return REAL(write)(number, data, length);
    switch (next("write", path, "", length, place(number), data)) {
        case 1: return -1;
        case 2: REAL(write)(number, data, length / 2); die();
    }
    return REAL(write)(number, data, length);
}

static ssize_t positioned(int number, const void *data, size_t length, off_t offset) {
    char path[PATH_MAX];
    if (!root_length || !of_number(number, path)) return REAL(pwrite)(number, data, length, offset);
    switch (next("write", path, "", length, offset, data)) {
        case 1: return -1;
        case 2: REAL(pwrite)(number, data, length / 2, offset); die();
    }
    return REAL(pwrite)(number, data, length, offset);
}
ssize_t pwrite(int number, const void *data, size_t length, off_t offset) { return positioned(number, data, length, offset); }
ssize_t pwrite64(int number, const void *data, size_t length, off_t offset) { return positioned(number, data, length, offset); }

ssize_t writev(int number, const struct iovec *parts, int many) {
    char path[PATH_MAX];
    if (!root_length || !of_number(number, path)) return REAL(writev)(number, parts, many);
    ssize_t all = 0; /* one after another, as operations of their own */
    for (int i = 0; i < many; i++) {
        ssize_t done = write(number, parts[i].iov_base, parts[i].iov_len);
        if (done < 0) return all ? all : -1;
        all += done;
    }
    return all;
}

/* What copies inside the kernel is refused, so that the caller writes the bytes itself. */
ssize_t sendfile(int out, int in, off_t *offset, size_t length) {
    char path[PATH_MAX];
    if (root_length && of_number(out, path)) { errno = EINVAL; return -1; }
    return REAL(sendfile)(out, in, offset, length);
}
ssize_t sendfile64(int out, int in, off_t *offset, size_t length) { return sendfile(out, in, offset, length); }
ssize_t copy_file_range(int in, off64_t *from, int out, off64_t *to, size_t length, unsigned flags) {
    char path[PATH_MAX];
    if (root_length && of_number(out, path)) { errno = ENOSYS; return -1; }
    return REAL(copy_file_range)(in, from, out, to, length, flags);
}

#define OF_NUMBER(name, operation, ...)                                        \
    char path[PATH_MAX];                                                       \
    if (!root_length || !of_number(number, path)) return REAL(name)(__VA_ARGS__); \
    switch (next(operation, path, "", 0, size, NULL)) {                        \
        case 1: return -1;                                                     \
        case 2: die();                                                         \
    }                                                                          \
    return REAL(name)(__VA_ARGS__);

int fsync(int number) { off_t size = 0; OF_NUMBER(fsync, "fsync", number) }
int fdatasync(int number) { off_t size = 0; OF_NUMBER(fdatasync, "fsync", number) }
int ftruncate(int number, off_t size) { OF_NUMBER(ftruncate, "truncate", number, size) }
int ftruncate64(int number, off_t size) { OF_NUMBER(ftruncate, "truncate", number, size) }

#define OF_NAME(operation, call, folder, name)                                 \
    char path[PATH_MAX];                                                       \
    if (!root_length || !of_name(folder, name, path)) return call;             \
    switch (next(operation, path, "", 0, 0, NULL)) {                           \
        case 1: return -1;                                                     \
        case 2: (void)!call; die();                                            \
    }                                                                          \
    return call;

int unlinkat(int folder, const char *name, int flags) {
    const char *operation = flags & AT_REMOVEDIR ? "rmdir" : "unlink";
    OF_NAME(operation, REAL(unlinkat)(folder, name, flags), folder, name)
}
int unlink(const char *name) { OF_NAME("unlink", REAL(unlink)(name), AT_FDCWD, name) }
int rmdir(const char *name) { OF_NAME("rmdir", REAL(rmdir)(name), AT_FDCWD, name) }
int mkdirat(int folder, const char *name, mode_t mode) { OF_NAME("mkdir", REAL(mkdirat)(folder, name, mode), folder, name) }
int mkdir(const char *name, mode_t mode) { OF_NAME("mkdir", REAL(mkdir)(name, mode), AT_FDCWD, name) }

#define OF_TWO(operation, call, one, name, two, new)                           \
    char path[PATH_MAX], other[PATH_MAX];                                      \
    int inside = root_length ? of_name(one, name, path) | of_name(two, new, other) : 0; \
    if (!inside) return call;                                                  \
    switch (next(operation, path, other, 0, 0, NULL)) {                        \
        case 1: return -1;                                                     \
        case 2: (void)!call; die();                                            \
    }                                                                          \
    return call;

int renameat(int one, const char *name, int two, const char *new) {
    OF_TWO("rename", REAL(renameat)(one, name, two, new), one, name, two, new)
}
int renameat2(int one, const char *name, int two, const char *new, unsigned flags) {
    OF_TWO("rename", REAL(renameat2)(one, name, two, new, flags), one, name, two, new)
}
int rename(const char *name, const char *new) { OF_TWO("rename", REAL(rename)(name, new), AT_FDCWD, name, AT_FDCWD, new) }
int linkat(int one, const char *name, int two, const char *new, int flags) {
    OF_TWO("link", REAL(linkat)(one, name, two, new, flags), one, name, two, new)
}
int link(const char *name, const char *new) { OF_TWO("link", REAL(link)(name, new), AT_FDCWD, name, AT_FDCWD, new) }

/* Opening changes something where it makes a file or empties one. */
static int opening(int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    struct stat status;
    if (!root_length || !(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE || !of_name(folder, name, path))
        return REAL(openat)(folder, name, flags, mode);
    int there = !fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW);
    if (there && (flags & O_EXCL)) return REAL(openat)(folder, name, flags, mode);
    if (!there || ((flags & O_TRUNC) && status.st_size)) {
        switch (next(there ? "truncate" : "create", path, "", 0, 0, NULL)) {
            case 1: return -1;
            case 2: REAL(openat)(folder, name, flags, mode); die();
        }
    }
    return REAL(openat)(folder, name, flags, mode);
}
#define MODE                                                                   \
    mode_t mode = 0;                                                           \
    if (flags & (O_CREAT | O_TMPFILE)) {                                       \
        va_list rest;                                                          \
        va_start(rest, flags);                                                 \
        mode = va_arg(rest, mode_t);                                           \
        va_end(rest);                                                          \
    }
int open(const char *name, int flags, ...) { MODE return opening(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE return opening(AT_FDCWD, name, flags | O_LARGEFILE, mode); }
int openat(int folder, const char *name, int flags, ...) { MODE return opening(folder, name, flags, mode); }
int openat64(int folder, const char *name, int flags, ...) { MODE return opening(folder, name, flags | O_LARGEFILE, mode); }
int creat(const char *name, mode_t mode) { return opening(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* The clock on the wall; those that count from a start never leap. */
int clock_gettime(clockid_t which, struct timespec *now) {
    static __typeof__(&clock_gettime) real;
    if (!real) real = REAL(clock_gettime);
    int failed = real(which, now);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += leapt;
    return failed;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int failed = REAL(gettimeofday)(now, zone);
    if (!failed && now) now->tv_sec += leapt;
    return failed;
}
time_t time(time_t *place) {
    time_t now = REAL(time)(NULL) + leapt;
    if (place) *place = now;
    return now;
}
