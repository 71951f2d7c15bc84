/* Small files of the kernel. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/energy/host/meters.h"
#include "common/base/text.h"

enum { SYS_FILE_MAX = 4096 };

int kedge_sys_path(char out[KEDGE_PATH_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(out, KEDGE_PATH_MAX, format, args);
    va_end(args);
    return n >= 0 && n < KEDGE_PATH_MAX ? KEDGE_OK : KEDGE_E_TOO_LONG;
}

/* Not kedge_file_read: files below /sys and /proc tell no size. */
static int read_small(const char *path, char *out, size_t size, size_t *ret_len)
{
    struct kedge_diag d;
    const int fd = kedge_file_open(path, 0, &d);
    if (fd < 0) {
        return fd;
    }
    ssize_t n = read(fd, out, size - 1);
    const int err = n < 0 ? kedge_errno(errno) : KEDGE_OK;
    close(fd);
    *ret_len = n < 0 ? 0 : (size_t)n;
    out[*ret_len] = '\0';
    return err;
}

int kedge_sys_number(const char *path, uint64_t *ret)
{
    char text[64];
    size_t len;
    const int err = read_small(path, text, sizeof text, &len);
    return err ? err : kedge_reading_parse(kedge_view_of(text, len), ret);
}

int kedge_sys_size(const char *path, uint64_t *ret)
{
    char text[64];
    size_t len;
    const int err = read_small(path, text, sizeof text, &len);
    return err ? err : kedge_reading_parse_size(kedge_view_of(text, len), ret);
}

int kedge_sys_text(const char *path, char *out, size_t size)
{
    char text[256];
    size_t len;
    const int err = read_small(path, text, sizeof text, &len);
    if (err) {
        return err;
    }
    text[strcspn(text, "\n")] = '\0';
    return (size_t)snprintf(out, size, "%s", text) < size ? KEDGE_OK : KEDGE_E_TOO_LONG;
}

static uint64_t ticks_ns(uint64_t ticks)
{
    const long per_second = sysconf(_SC_CLK_TCK);
    return per_second > 0 ? ticks * (1000000000u / (uint64_t)per_second) : 0;
}

/* The next number of a line, 0 where there is none; *at after it. */
static uint64_t next_number(const char **at)
{
    const size_t skip = strspn(*at, " ");
    const char *first = *at + skip;
    const size_t len = strspn(first, "0123456789");
    uint64_t v = 0;
    *at = first + len;
    return kedge_decimal_decode(kedge_view_of(first, len), UINT64_MAX, &v) == KEDGE_OK ? v : 0;
}

void kedge_sys_cpu(const char *root, uint64_t *ret_all_ns, uint64_t *ret_busy_ns)
{
    char path[KEDGE_PATH_MAX], text[SYS_FILE_MAX];
    uint64_t t[8] = {0};
    size_t len;
    *ret_all_ns = *ret_busy_ns = 0;
    if (kedge_sys_path(path, "%s/proc/stat", root) != KEDGE_OK
        || read_small(path, text, sizeof text, &len) != KEDGE_OK || strncmp(text, "cpu ", 4) != 0) {
        return;
    }
    const char *at = text + 4;
    uint64_t all = 0;
    for (int i = 0; i < 8; i++) {
        t[i] = next_number(&at);
        all += t[i];
    }
    *ret_all_ns = ticks_ns(all);
    *ret_busy_ns = ticks_ns(all - t[3] - t[4]); /* but idle and iowait */
}

uint64_t kedge_sys_process_cpu(long pid)
{
    char path[KEDGE_PATH_MAX], text[SYS_FILE_MAX];
    uint64_t user = 0, system = 0;
    size_t len;
    if (pid <= 0 || kedge_sys_path(path, "/proc/%ld/stat", pid) != KEDGE_OK
        || read_small(path, text, sizeof text, &len) != KEDGE_OK) {
        return 0;
    }
    const char *at = strrchr(text, ')'); /* its name may have anything in it */
    for (int i = 0; at && i < 12; i++) {
        at = strchr(at + 1, ' ');
    }
    if (at) {
        user = next_number(&at);
        system = next_number(&at);
    }
    return ticks_ns(user + system);
}
