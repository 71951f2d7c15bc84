/* Whether others use the device (policy.json: "idle"): processors in the last seconds, terminals since the
 * last input.
 *
 * Both are read from files that every user may read, so the daemon needs no rights and no session bus. Niced
 * time counts as idle: the daemon and its trainers run niced under the systemd unit, and must not see
 * themselves as somebody else. */
#include "client/daemon/idle.h"

#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/nearest.h"
#include "common/base/os/clock.h"
#include "common/base/os/file.h"
#include "common/base/text.h"
#include "common/base/try.h"

enum {
    FIELDS = 8,
    FIELD_NICE = 1,
    FIELD_IDLE = 3,
    FIELD_WAIT = 4,
    STAT_MAX = 4096,
    TERMINALS_MAX = 1024,
    MS_PER_S = 1000
};

/* ---- pure ---- */

static int number(const json_t *o, const char *key, uint32_t most, const char *where, uint32_t *ret,
                  struct kedge_diag *d)
{
    const json_t *v = json_object_get(o, key);
    json_int_t n = json_integer_value(v);
    if (v && (!json_is_integer(v) || n < 1 || n > (json_int_t)most)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"idle\": \"%s\": expected a whole number from 1 to %u",
                              where, key, most);
    }
    *ret = (uint32_t)n;
    return KEDGE_OK;
}

int kedge_idle_parse(const json_t *v, const char *where, struct kedge_idle_rules *ret,
                     struct kedge_diag *reterr)
{
    struct kedge_idle_rules r = {0, 0};
    static const char *const keys[] = {"cpu_percent", "input_s"};
    const char *key;
    json_t *value;
    if (v && !json_is_object(v)) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "%s: \"idle\": expected an object with cpu_percent, input_s", where);
    }
    json_object_foreach((json_t *)(uintptr_t)v, key, value)
    {
        if (strcmp(key, "cpu_percent") != 0 && strcmp(key, "input_s") != 0) {
            (void)kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: \"idle\": unknown key \"%.40s\"", where, key);
            kedge_nearest_hint(reterr, key, keys, 2, "its keys are cpu_percent and input_s");
            return KEDGE_E_FORMAT;
        }
    }
    KEDGE_TRY(number(v, "cpu_percent", 100, where, &r.cpu_percent, reterr));
    KEDGE_TRY(number(v, "input_s", 86400, where, &r.input_s, reterr));
    *ret = r;
    return KEDGE_OK;
}

/* The first line of /proc/stat: user nice system idle iowait irq softirq steal, in clock ticks (proc(5)).
 * Each number is bounded by an eighth of the range, so that the sum of eight cannot wrap; fields after the
 * eighth (guest times) are parts of the first two and would be counted twice. */
bool kedge_idle_read_ticks(struct kedge_view text, struct kedge_idle_ticks *ret)
{
    static const char name[] = "cpu ";
    struct kedge_idle_ticks t = {0, 0};
    size_t at = sizeof name - 1;
    if (text.len < at || memcmp(text.ptr, name, at) != 0) {
        return false;
    }
    for (unsigned i = 0; i < FIELDS; i++) {
        uint64_t v;
        while (at < text.len && text.ptr[at] == ' ') {
            at++;
        }
        size_t begin = at;
        while (at < text.len && text.ptr[at] >= '0' && text.ptr[at] <= '9') {
            at++;
        }
        if (kedge_decimal_decode(kedge_view_of(text.ptr + begin, at - begin), UINT64_MAX / FIELDS, &v)
            != KEDGE_OK) {
            return false;
        }
        t.all += v;
        t.busy += i == FIELD_NICE || i == FIELD_IDLE || i == FIELD_WAIT ? 0 : v;
    }
    *ret = t;
    return true;
}

/* ---- looking ---- */

static bool look_at_processors(const char *root, struct kedge_idle_ticks *ret)
{
    char path[KEDGE_PATH_MAX], text[STAT_MAX];
    int fd =
        kedge_path_join(path, root, "proc/stat") == KEDGE_OK ? kedge_file_open(path, O_RDONLY, NULL) : -1;
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (fd >= 0) {
        close(fd);
    }
    return n > 0 && kedge_idle_read_ticks(kedge_view_of(text, (size_t)n), ret);
}

/* Seconds since the last input at one of the terminals in a folder whose names begin so; as `w` counts them.
 */
static void look_at_terminals(const char *root, const char *folder, const char *begin, uint64_t now_s,
                              uint64_t *least)
{
    char dir_path[KEDGE_PATH_MAX], path[KEDGE_PATH_MAX];
    struct stat st;
    DIR *dir = kedge_path_join(dir_path, root, folder) == KEDGE_OK ? opendir(dir_path) : NULL;
    const struct dirent *e;
    for (unsigned i = 0; dir && i < TERMINALS_MAX && (e = readdir(dir)) != NULL; i++) {
        const char *rest = e->d_name + strlen(begin);
        if (strncmp(e->d_name, begin, strlen(begin)) == 0 && rest[0] >= '0' && rest[0] <= '9'
            && kedge_path_join(path, dir_path, e->d_name) == KEDGE_OK && stat(path, &st) == 0) {
            uint64_t at = (uint64_t)st.st_atime, ago = at < now_s ? now_s - at : 0;
            *least = ago < *least ? ago : *least;
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* The share of busy time is that between two looks, at least a window apart: counters since boot say nothing
 * of now, and two looks within a few milliseconds would be noise. Before the second look it is not known, and
 * the owner's rule then counts as broken: work that begins too late does less harm than work that disturbs
 * somebody. */
void kedge_idle_ask(struct kedge_idle *idle, const char *root, uint64_t now_ns, char out[KEDGE_IDLE_TEXT_MAX])
{
    struct kedge_idle_ticks now;
    out[0] = '\0';
    if (idle->rules.cpu_percent > 0 && now_ns >= idle->next_ns) {
        bool read_well = look_at_processors(root, &now);
        uint64_t all = read_well && now.all > idle->before.all ? now.all - idle->before.all : 0;
        uint64_t busy = read_well && now.busy > idle->before.busy ? now.busy - idle->before.busy : 0;
        idle->has_percent = idle->has_before && all > 0;
        idle->percent = all > 0 ? (uint32_t)(100 * (busy < all ? busy : all) / all) : 0;
        idle->before = read_well ? now : idle->before;
        idle->has_before = read_well;
        idle->next_ns = now_ns + (uint64_t)KEDGE_IDLE_WINDOW_S * 1000000000u;
    }
    if (idle->rules.cpu_percent > 0 && !idle->has_percent) {
        snprintf(out, KEDGE_IDLE_TEXT_MAX, "how busy the processors are is not known yet");
        return;
    }
    if (idle->rules.cpu_percent > 0 && idle->percent > idle->rules.cpu_percent) {
        snprintf(out, KEDGE_IDLE_TEXT_MAX, "others use %u %% of the processors, at most %u %% (idle)",
                 idle->percent, idle->rules.cpu_percent);
        return;
    }
    if (idle->rules.input_s > 0) {
        uint64_t least = UINT64_MAX, now_s = kedge_os_unix_ms() / MS_PER_S;
        look_at_terminals(root, "dev", "tty", now_s, &least);
        look_at_terminals(root, "dev/pts", "", now_s, &least);
        if (least < idle->rules.input_s) {
            snprintf(out, KEDGE_IDLE_TEXT_MAX, "somebody is at a terminal: input within %u s (idle)",
                     idle->rules.input_s);
        }
    }
}
