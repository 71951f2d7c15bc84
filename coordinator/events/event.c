/* One table says which members each kind of event has; all is written from it, in the order of the members
 * below, so that a kind is added by a row and reads like the others.
 *
 * Names and words need no escapes in JSON: names of jobs, tenants and sites are [a-z0-9._-] wherever they
 * come in (common/base/text.h), the words are this program's own. A text that has anything else is left out.
 */
#include "coordinator/events/event.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

enum member {
    M_JOB = 1 << 0,
    M_ROUND = 1 << 1,
    M_TRAINING = 1 << 2, /* "kind": pretrain or train */
    M_DRAW = 1 << 3,
    M_SELECTED = 1 << 4,
    M_GROUP = 1 << 5,
    M_GROUPS = 1 << 6,
    M_ACCEPTED = 1 << 7, /* and refused */
    M_SECONDS = 1 << 8,
    M_TENANT = 1 << 9,
    M_SITE = 1 << 10,
    M_WITNESS = 1 << 11,
    M_FROM = 1 << 12,
    M_TO = 1 << 13,
    M_STATE = 1 << 14,
    M_OUTCOME = 1 << 15,
    M_ROUNDS = 1 << 16,
    M_CAUSE = 1 << 17,
    M_REASON = 1 << 18,
    M_LOG = 1 << 19,
    M_SIZE = 1 << 20,
    M_MODEL = 1 << 21,
    M_ROOT = 1 << 22,
    M_KIND = 1 << 23,
    M_NUMBER = 1 << 24,
    M_MOVE = 1 << 25,
};

static const struct {
    const char *name;
    unsigned members;
} kinds[KEDGE_EVENT_KINDS] = {
    [KEDGE_EVENT_JOB] = {"job", M_JOB | M_MOVE | M_FROM | M_TO | M_CAUSE | M_REASON},
    [KEDGE_EVENT_JOB_OPENED] = {"job-opened", M_JOB},
    [KEDGE_EVENT_ROUND_OPENED] = {"round-opened", M_JOB | M_ROUND | M_TRAINING | M_DRAW | M_SELECTED},
    [KEDGE_EVENT_ROUND_CLOSED] = {"round-closed", M_JOB | M_ROUND | M_GROUPS | M_ACCEPTED | M_SECONDS},
    [KEDGE_EVENT_JOB_CLOSED] = {"job-closed", M_JOB | M_OUTCOME | M_ROUNDS},
    [KEDGE_EVENT_RELEASE] = {"release", M_JOB | M_ROUND | M_GROUP | M_MODEL},
    [KEDGE_EVENT_REFUSED] = {"refused", M_JOB | M_ROUND | M_TENANT | M_SITE | M_REASON},
    [KEDGE_EVENT_HEAD] = {"head", M_LOG | M_SIZE | M_ROOT},
    [KEDGE_EVENT_FINAL] = {"final", M_SIZE},
    [KEDGE_EVENT_SITE] = {"site", M_TENANT | M_SITE | M_STATE},
    [KEDGE_EVENT_WITNESS] = {"witness", M_TENANT | M_WITNESS | M_STATE},
    [KEDGE_EVENT_ANCHOR] = {"anchor", M_KIND | M_NUMBER},
};

const char *kedge_event_name(enum kedge_event_kind kind)
{
    return kinds[kind].name;
}

static bool is_word(const char *s)
{
    return s && s[0]
           && s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] == '\0';
}

static void put_text(struct kedge_buf *out, bool has, const char *name, const char *text)
{
    if (has && is_word(text)) {
        kedge_buf_printf(out, ",\"%s\":\"%s\"", name, text);
    }
}

static void put_number(struct kedge_buf *out, bool has, const char *name, uint64_t n)
{
    if (has) {
        kedge_buf_printf(out, ",\"%s\":%" PRIu64, name, n);
    }
}

static void put_hash(struct kedge_buf *out, bool has, const char *name, const struct kedge_hash *hash)
{
    char hex[KEDGE_HASH_HEX_LEN + 1];
    if (has) {
        kedge_hash_hex(hash, hex);
        kedge_buf_printf(out, ",\"%s\":\"%s\"", name, hex);
    }
}

void kedge_event_topic(const struct kedge_event *e, struct kedge_buf *out)
{
    const unsigned m = kinds[e->kind].members;
    if (m & M_JOB) {
        kedge_buf_printf(out, "job/%s/%s", e->job.s, kinds[e->kind].name);
    } else if (e->tenant.s[0] != '\0') {
        kedge_buf_printf(out, "tenant/%s/%s", e->tenant.s, kinds[e->kind].name);
    } else {
        kedge_buf_printf(out, "main/%s", kinds[e->kind].name);
    }
}

void kedge_event_head(uint64_t seq, struct kedge_buf *out)
{
    kedge_buf_printf(out, "{\"v\":%d,", KEDGE_EVENT_VERSION);
    if (seq > 0) {
        kedge_buf_printf(out, "\"seq\":%" PRIu64 ",", seq);
    }
}

/* Where no time is known the place is kept by 0, so that each line has the same members. */
void kedge_event_rest(const struct kedge_event *e, struct kedge_buf *out)
{
    const unsigned m = kinds[e->kind].members;
    kedge_buf_printf(out, "\"time_ms\":%" PRIu64 ",\"topic\":\"", e->time_ms);
    kedge_event_topic(e, out);
    kedge_buf_printf(out, "\",\"event\":\"%s\"", kinds[e->kind].name);
    put_text(out, m & M_JOB, "job", e->job.s);
    put_number(out, m & M_MOVE, "move", e->move);
    put_number(out, m & M_ROUND, "round", e->round);
    put_number(out, m & M_ROUNDS, "rounds", e->round);
    put_text(out, m & M_TRAINING, "kind", e->is_pretraining ? "pretrain" : "train");
    put_number(out, (m & M_DRAW) && e->draw > 0, "draw", e->draw);
    put_number(out, m & M_SELECTED, "selected", e->selected);
    put_number(out, m & M_GROUP, "group", e->group);
    put_number(out, m & M_GROUPS, "groups", e->groups);
    put_number(out, m & M_ACCEPTED, "accepted", e->accepted);
    put_number(out, m & M_ACCEPTED, "refused", e->refused);
    if (m & M_SECONDS) {
        kedge_buf_printf(out, ",\"seconds\":%" PRIu64 ".%03" PRIu64, e->round_ms / 1000, e->round_ms % 1000);
    }
    put_text(out, m & M_TENANT, "tenant", e->tenant.s);
    put_text(out, m & M_SITE, "site", e->site.s);
    put_text(out, m & M_WITNESS, "witness", e->site.s);
    put_text(out, m & M_FROM, "from", e->from);
    put_text(out, m & M_TO, "to", e->to);
    put_text(out, m & M_STATE, "state", e->to);
    put_text(out, m & M_OUTCOME, "outcome", e->to);
    put_text(out, m & M_KIND, "kind", e->to);
    put_text(out, m & M_CAUSE, "cause", e->cause);
    put_text(out, m & M_REASON, "reason", e->reason);
    put_text(out, m & M_LOG, "log", e->tenant.s[0] != '\0' ? e->tenant.s : "main");
    put_number(out, m & M_SIZE, "size", e->size);
    put_number(out, m & M_NUMBER, "number", e->size);
    put_hash(out, m & M_MODEL, "model", &e->hash);
    put_hash(out, m & M_ROOT, "root", &e->hash);
    put_number(out, e->entry != KEDGE_EVENT_NO_ENTRY, "entry", e->entry);
    put_number(out, e->main_size > 0, "main_size", e->main_size);
    kedge_buf_put_str(out, "}");
}
