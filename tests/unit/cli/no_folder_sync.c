/* Loaded before the C library into the program under test: a disk that refuses to sync folders called
 * "above". */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int fsync(int fd)
{
    static const char refused[] = "/above";
    char link[64], path[4096];
    struct stat st;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? readlink(link, path, sizeof path) : -1;
    size_t len = n > 0 ? (size_t)n : 0, end = sizeof refused - 1;
    if (len >= end && memcmp(path + len - end, refused, end) == 0) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}
