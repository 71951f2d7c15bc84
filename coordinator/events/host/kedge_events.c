/* kedge-events: the companion of a coordinator that hands its events to subscribers. The coordinator starts
 * it, tells it through standard input what to say (coordinator/events/frame.h), and ends it by closing that.
 *
 * It holds nothing that is worth anything: killed, it is started again, and what was said meanwhile the
 * coordinator still has. Each beat is answered by a byte on standard output, by the same thread that sends;
 * one that hangs is noticed by that, and killed.
 *
 * Each tenant's stream is a socket of its own, in a folder of its own: a subscriber of PUB/SUB chooses by
 * itself which topics it looks at, so what it may not see must not be sent to it. */
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/os/file.h"
#include "common/base/os/log.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "coordinator/events/event.h"
#include "coordinator/events/frame.h"
#include "coordinator/events/host/publish.h"

#define KEDGE_EVENTS_VERSION "0.1.0"
enum {
    LISTEN_MAX = 3,
    URL_MAX = 256,
    CLOSE_S = 2,
    FILES_MAX = 8192,
    OWN_FILES = 64, /* of the process and of nng, without streams */
    LEFT_MAX = 128, /* files that belong to nobody */
};

struct stream {
    char name[KEDGE_ID_MAX + 1]; /* "": the operator's */
    struct kedge_publish *publish;
};

struct events {
    const char *folder;
    const char *listen[LISTEN_MAX];
    unsigned listen_count;
    struct stream streams[KEDGE_EVENT_STREAMS_MAX + 1];
    size_t stream_count;
};

/* ---- streams ---- */

/* All are relative to the folder, into which this process has gone: a socket's path has 107 bytes. What a
 * killed process left there nobody listens at any more, for there is one coordinator, and it starts one. */
static int socket_of(const char *name, char ret[URL_MAX], struct kedge_diag *d)
{
    if (name[0] == '\0') {
        snprintf(ret, URL_MAX, "operator.ipc");
        return KEDGE_OK;
    }
    snprintf(ret, URL_MAX, "tenants/%s", name);
    if (!kedge_file_exists(ret)) {
        KEDGE_TRY(kedge_dir_make(ret, 0700, d));
    }
    snprintf(ret, URL_MAX, "tenants/%s/stream.ipc", name);
    return KEDGE_OK;
}

/* Who may come to a socket is who may enter its folder; the socket itself lets the folder's group in, for a
 * folder that was given to one. */
static int listen_at_socket(struct kedge_publish *p, const char *name, struct kedge_diag *d)
{
    char path[URL_MAX], url[URL_MAX + 8];
    int port;
    KEDGE_TRY(socket_of(name, path, d));
    if (unlink(path) != 0 && errno != ENOENT) {
        return kedge_diag_set(d, kedge_errno(errno), "%s: cannot remove the old socket: %s", path,
                              strerror(errno));
    }
    snprintf(url, sizeof url, "ipc://%s", path);
    KEDGE_TRY(kedge_publish_listen(p, url, &port, d));
    return chmod(path, name[0] ? 0660 : 0600) == 0
               ? KEDGE_OK
               : kedge_diag_set(d, kedge_errno(errno), "%s: %s", path, strerror(errno));
}

/* Port 0 takes a free one; which it is stands in the file "address", as for the coordinator's own. */
static int listen_elsewhere(const struct events *e, struct kedge_publish *p, struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, LISTEN_MAX * URL_MAX);
    for (unsigned i = 0; i < e->listen_count; i++) {
        int port;
        const char *url = e->listen[i], *host = strstr(url, "://") ? strstr(url, "://") + 3 : url;
        const char *colon = strrchr(host, ':');
        KEDGE_TRY(kedge_publish_listen(p, url, &port, d));
        if (!colon) {
            return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: expected a port", url);
        }
        const char *path = strchr(colon, '/');
        kedge_buf_printf(&text, "%.*s:%d%s\n", (int)(colon - url), url, port, path ? path : "");
    }
    KEDGE_TRY(text.err);
    return kedge_file_write("address", kedge_buf_view(&text), 0600, d);
}

static struct stream *find(struct events *e, struct kedge_view name)
{
    for (size_t i = 0; i < e->stream_count; i++) {
        if (kedge_view_eq(kedge_view_str(e->streams[i].name), name)) {
            return &e->streams[i];
        }
    }
    return NULL;
}

static int open_stream(struct events *e, struct kedge_view name, struct kedge_diag *d)
{
    struct kedge_id id;
    if (find(e, name)) {
        return KEDGE_OK;
    }
    if (e->stream_count == sizeof e->streams / sizeof e->streams[0]) {
        return kedge_diag_set(d, KEDGE_E_FULL, "more than %d streams", KEDGE_EVENT_STREAMS_MAX);
    }
    struct stream *s = &e->streams[e->stream_count];
    if (name.len > 0) {
        KEDGE_TRY(kedge_id_from(name, &id));
    }
    snprintf(s->name, sizeof s->name, "%.*s", (int)name.len, name.len > 0 ? id.s : "");
    KEDGE_TRY(kedge_publish_open(&s->publish, d));
    e->stream_count++;
    KEDGE_TRY(listen_at_socket(s->publish, s->name, d));
    return name.len == 0 && e->listen_count > 0 ? listen_elsewhere(e, s->publish, d) : KEDGE_OK;
}

/* ---- files that are left over ---- */

static unsigned open_files(void)
{
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir)) {
        count++;
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

/* Of subscribers that are cut in the middle of their greeting nng 1.5 can keep the connection for ever. A few
 * do no harm; before there are many this process ends, and the coordinator starts another one. */
static bool has_too_many_left(const struct events *e)
{
    size_t wanted = OWN_FILES + 4 * e->stream_count;
    for (size_t i = 0; i < e->stream_count; i++) {
        wanted += kedge_publish_subscribers(e->streams[i].publish);
    }
    return open_files() > wanted + LEFT_MAX;
}

static int answer_beat(const struct events *e)
{
    if (has_too_many_left(e)) {
        kedge_log(KEDGE_LOG_INFO, "starting anew", "subscribers that were cut have left too many files open");
        return KEDGE_E_CLOSED;
    }
    /* nobody reads it: the coordinator is gone, and the end of our input says so in a moment */
    return write(STDOUT_FILENO, "b", 1) == 1 || errno == EAGAIN ? KEDGE_OK : KEDGE_E_CLOSED;
}

/* ---- what the coordinator says ---- */

static int take_frame(struct events *e, const struct kedge_event_frame *f, struct kedge_diag *d)
{
    struct stream *s = find(e, f->name);
    switch (f->type) {
    case KEDGE_EVENT_FRAME_OPEN:
        return open_stream(e, f->name, d);
    case KEDGE_EVENT_FRAME_SAY:
        if (s && kedge_publish_say(s->publish, f->payload) != KEDGE_OK) {
            kedge_log(KEDGE_LOG_WARN, "event lost", "%.80s", s->name);
        }
        return KEDGE_OK;
    case KEDGE_EVENT_FRAME_BEAT:
        return answer_beat(e);
    }
    return KEDGE_E_FORMAT;
}

/* Until the end of the input, or until it is better to begin anew (KEDGE_E_CLOSED). What is not a whole frame
 * yet stays in the buffer. */
static int serve(struct events *e, struct kedge_diag *d)
{
    static uint8_t bytes[16 * KEDGE_EVENT_FRAME_MAX];
    size_t len = 0;
    for (;;) {
        ssize_t n = read(STDIN_FILENO, bytes + len, sizeof bytes - len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0 ? KEDGE_OK : kedge_diag_set(d, KEDGE_E_IO, "standard input: %s", strerror(errno));
        }
        len += (size_t)n;
        struct kedge_view rest = kedge_view_of(bytes, len);
        struct kedge_event_frame frame;
        int err;
        while ((err = kedge_event_frame_take(&rest, &frame)) == KEDGE_OK) {
            KEDGE_TRY(take_frame(e, &frame, d));
        }
        if (err != KEDGE_E_NOT_FOUND) {
            return kedge_diag_set(d, err, "standard input: no frame of a coordinator");
        }
        memmove(bytes, rest.ptr, rest.len);
        len = rest.len;
    }
}

/* ---- start ---- */

static int enter(const char *folder, struct kedge_diag *d)
{
    if (!kedge_file_exists(folder)) { /* an existing one keeps the owner and mode that somebody gave it */
        KEDGE_TRY(kedge_dir_make(folder, 0700, d));
    }
    return chdir(folder) == 0 ? KEDGE_OK
                              : kedge_diag_set(d, kedge_errno(errno), "%s: %s", folder, strerror(errno));
}

/* Subscribers are others' programs: what they can make this process take has a bound. */
static void bound(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > FILES_MAX) {
        files.rlim_cur = FILES_MAX;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

static int usage(FILE *out, int code)
{
    fputs("Usage: kedge-events --folder DIR [--listen URL]...\n"
          "Publishes a coordinator's events at DIR/operator.ipc. kedge-coordinator starts it; what to say\n"
          "comes on standard input.\n"
          "  --listen URL  there too, up to three: tcp://127.0.0.1:PORT, ws://127.0.0.1:PORT/PATH\n"
          "Exit codes: 0 done, 2 usage, 3 cannot listen.\n",
          out);
    return code;
}

static bool take_options(int argc, char **argv, struct events *e, int *ret_code)
{
    static const struct option options[] = {{"folder", required_argument, NULL, 'f'},
                                            {"listen", required_argument, NULL, 'l'},
                                            {"version", no_argument, NULL, 'V'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    int opt;
    while ((opt = getopt_long(argc, argv, "f:l:Vh", options, NULL)) != -1) {
        if (opt == 'f') {
            e->folder = optarg;
        } else if (opt == 'l' && e->listen_count < LISTEN_MAX && strlen(optarg) < URL_MAX) {
            e->listen[e->listen_count++] = optarg;
        } else if (opt == 'V') {
            puts("kedge-events " KEDGE_EVENTS_VERSION);
            *ret_code = 0;
            return false;
        } else {
            *ret_code = opt == 'h' ? usage(stdout, 0) : usage(stderr, 2);
            return false;
        }
    }
    if (!e->folder || optind != argc) {
        *ret_code = usage(stderr, 2);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    static struct events events;
    struct events *e = &events;
    struct kedge_diag d = {.text = ""};
    int code;
    if (!take_options(argc, argv, e, &code)) {
        return code;
    }
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    bound();
    kedge_log_init("kedge-events", KEDGE_LOG_INFO);
    int err = enter(e->folder, &d);
    if (!err) {
        err = serve(e, &d);
    }
    if (err && err != KEDGE_E_CLOSED) {
        kedge_log(KEDGE_LOG_ERROR, "ending", "%s", d.text[0] ? d.text : kedge_strerror(err));
    }
    alarm(CLOSE_S); /* a close that hangs ends with the process */
    for (size_t i = 0; i < e->stream_count; i++) {
        kedge_publish_close(e->streams[i].publish);
    }
    return err && err != KEDGE_E_CLOSED ? 3 : 0;
}
