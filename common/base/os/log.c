#include "common/base/os/log.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/os/clock.h"
#include "common/base/os/utc.h"
#include "common/base/text.h"

static const char *log_program = "kedge";
static enum kedge_log_level log_least = KEDGE_LOG_INFO;

static bool log_to_journal;

/* JOURNAL_STREAM is "device:inode" of what the service manager made our stderr, systemd.exec(5). */
static bool stderr_is_journal(void)
{
    const char *said = getenv("JOURNAL_STREAM");
    char is[2 * 20 + 2];
    struct stat st;
    if (!said || fstat(STDERR_FILENO, &st) != 0) {
        return false;
    }
    snprintf(is, sizeof is, "%" PRIu64 ":%" PRIu64, (uint64_t)st.st_dev, (uint64_t)st.st_ino);
    return strcmp(said, is) == 0;
}

void kedge_log_init(const char *program, enum kedge_log_level least)
{
    log_program = program;
    log_least = least;
    log_to_journal = stderr_is_journal();
}

/* JSON string body of `in`, which is plain: without control characters, so that a hostile text cannot forge a
 * record. */
static void put_escaped(char *out, size_t out_len, const char *in)
{
    size_t n = 0;
    for (; *in && n + 3 < out_len; in++) {
        if (*in == '"' || *in == '\\') {
            out[n++] = '\\';
        }
        out[n++] = *in;
    }
    out[n] = '\0';
}

enum { TIME_LEN = 40 };

/* RFC 3339, UTC, with milliseconds. */
static void put_time(char out[TIME_LEN])
{
    uint64_t ms = kedge_os_unix_ms();
    struct kedge_utc whole = kedge_utc((int64_t)(ms / 1000), KEDGE_UTC_RFC3339, "");
    snprintf(out, TIME_LEN, "%.19s.%03uZ", whole.s, (unsigned)(ms % 1000));
}

void kedge_log(enum kedge_log_level level, const char *event, const char *format, ...)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};
    static const char *const priorities[] = {"<7>", "<6>", "<4>", "<3>"}; /* sd-daemon(3) */
    if (level < log_least) {
        return;
    }
    /* raw is longer than what is taken of it, which so never ends within a character */
    char raw[1100], detail[1024], escaped[2 * sizeof detail + 4], line[sizeof escaped + 256], now[TIME_LEN];
    put_time(now);
    va_list ap;
    va_start(ap, format);
    vsnprintf(raw, sizeof raw, format, ap);
    va_end(ap);
    kedge_text_copy_plain(detail, sizeof detail, raw);
    put_escaped(escaped, sizeof escaped, detail);
    int n = snprintf(line, sizeof line,
                     "%s{\"time\":\"%s\""
                     ",\"level\":\"%s\",\"program\":\"%s\",\"event\":\"%s\",\"detail\":\"%s\"}\n",
                     log_to_journal ? priorities[level] : "", now, names[level], log_program, event, escaped);
    if (n > 0) { /* one write, so that lines of several threads do not mix */
        size_t len = (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
        ssize_t written = write(STDERR_FILENO, line, len);
        (void)written;
    }
}
