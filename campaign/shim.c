/* Makes the n-th write, fsync, rename or open below one folder fail once, as SQLite's tests do. Loaded by LD_PRELOAD, so that calls of
   libraries in C++ (Arrow, DuckDB) are counted as well as those of Python. Calls on files elsewhere are neither counted nor failed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { WRITE, FSYNC, RENAME, OPEN, KINDS };
static char folder[4096];
static size_t length;
static int failing = -1, reason;
static long number;
static atomic_long calls[KINDS];
static atomic_int fired;

void campaign_arm(const char *below, int kind, long nth, int error) {
    strncpy(folder, below, sizeof folder - 1);
    length = strlen(folder);
    failing = kind; number = nth; reason = error;
    for (int i = 0; i < KINDS; i++) atomic_store(&calls[i], 0);
    atomic_store(&fired, 0);
}
long campaign_calls(int kind) { return atomic_load(&calls[kind]); }
int campaign_fired(void) { return atomic_load(&fired); }

static int below(const char *path) { return length && path && !strncmp(path, folder, length); }

static int below_at(int directory, const char *path) {
    char name[64], found[4096];
    if (!length || !path) return 0;
    if (path[0] == '/') return below(path);
    if (directory == AT_FDCWD) { if (!getcwd(found, sizeof found)) return 0; return below(found); }
    snprintf(name, sizeof name, "/proc/self/fd/%d", directory);
    ssize_t n = readlink(name, found, sizeof found - 1);
    if (n < 0) return 0;
    found[n] = 0;
    return below(found);
}

static int below_open(int file) {
    char name[64], found[4096];
    if (!length) return 0;
    snprintf(name, sizeof name, "/proc/self/fd/%d", file);
    ssize_t n = readlink(name, found, sizeof found - 1);
    if (n < 0) return 0;
    found[n] = 0;
    return below(found);
}

/* Whether this call is the one that fails. */
static int fails(int kind) {
    long now = atomic_fetch_add(&calls[kind], 1) + 1;
    if (kind != failing || now != number) return 0;
    atomic_store(&fired, 1);
    errno = reason;
    return 1;
}

#define NEXT(name) static __typeof__(name) *next; if (!next) next = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

ssize_t write(int f, const void *b, size_t n) { NEXT(write); if (f > 2 && below_open(f) && fails(WRITE)) return -1; return next(f, b, n); }
ssize_t pwrite(int f, const void *b, size_t n, off_t o) { NEXT(pwrite); if (below_open(f) && fails(WRITE)) return -1; return next(f, b, n, o); }
ssize_t pwrite64(int f, const void *b, size_t n, off64_t o) { NEXT(pwrite64); if (below_open(f) && fails(WRITE)) return -1; return next(f, b, n, o); }
ssize_t writev(int f, const struct iovec *v, int n) { NEXT(writev); if (below_open(f) && fails(WRITE)) return -1; return next(f, v, n); }
int fsync(int f) { NEXT(fsync); if (below_open(f) && fails(FSYNC)) return -1; return next(f); }
int fdatasync(int f) { NEXT(fdatasync); if (below_open(f) && fails(FSYNC)) return -1; return next(f); }
int rename(const char *a, const char *b) { NEXT(rename); if (below_at(AT_FDCWD, b) && fails(RENAME)) return -1; return next(a, b); }
int renameat(int d, const char *a, int e, const char *b) { NEXT(renameat); if (below_at(e, b) && fails(RENAME)) return -1; return next(d, a, e, b); }
int renameat2(int d, const char *a, int e, const char *b, unsigned f) { NEXT(renameat2); if (below_at(e, b) && fails(RENAME)) return -1; return next(d, a, e, b, f); }

/* The clock of the day, set to another time; clocks that only measure intervals are left alone. */
static atomic_long shift;
void campaign_clock(long seconds) { atomic_store(&shift, seconds); }
int clock_gettime(clockid_t c, struct timespec *t) { NEXT(clock_gettime); int r = next(c, t); if (!r && c == CLOCK_REALTIME) t->tv_sec += atomic_load(&shift); return r; }
int gettimeofday(struct timeval *t, void *z) { NEXT(gettimeofday); int r = next(t, z); if (!r) t->tv_sec += atomic_load(&shift); return r; }
time_t time(time_t *t) { struct timespec now; clock_gettime(CLOCK_REALTIME, &now); if (t) *t = now.tv_sec; return now.tv_sec; }

#define MODE mode_t mode = 0; if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }
int open(const char *p, int flags, ...) { NEXT(open); MODE if (below_at(AT_FDCWD, p) && fails(OPEN)) return -1; return next(p, flags, mode); }
int open64(const char *p, int flags, ...) { NEXT(open64); MODE if (below_at(AT_FDCWD, p) && fails(OPEN)) return -1; return next(p, flags, mode); }
int openat(int d, const char *p, int flags, ...) { NEXT(openat); MODE if (below_at(d, p) && fails(OPEN)) return -1; return next(d, p, flags, mode); }
int openat64(int d, const char *p, int flags, ...) { NEXT(openat64); MODE if (below_at(d, p) && fails(OPEN)) return -1; return next(d, p, flags, mode); }
FILE *fopen(const char *p, const char *m) { NEXT(fopen); if (below_at(AT_FDCWD, p) && fails(OPEN)) return NULL; return next(p, m); }
FILE *fopen64(const char *p, const char *m) { NEXT(fopen64); if (below_at(AT_FDCWD, p) && fails(OPEN)) return NULL; return next(p, m); }
