/* Anchors of the main chain outside, as options, findings and report. Kinds of anchors are rows of
 * chain/anchor/kinds.def: this file asks each row for its option and its words, and knows none of them. */
#include "cli/audit/audit_anchors.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/os/utc.h"

/* Options that are words are tried at once into a copy that is thrown away, so that a wrong one is a usage
 * error before anything is read. Files are read later, by kedge_cli_anchors_merge. */
bool kedge_cli_anchors_take(struct kedge_cli *c, struct kedge_cli_anchors *ret)
{
    const struct kedge_anchor_kind *kind;
    memset(ret, 0, sizeof *ret);
    for (size_t i = 0; i < KEDGE_ANCHOR_KINDS_MAX; i++) {
        kedge_buf_init(&ret->files[i], KEDGE_ANCHOR_OPTION_MAX);
    }
    for (size_t i = 0; i < kedge_anchor_kind_count(); i++) {
        kind = kedge_anchor_kind_at(i);
        ret->options[i] = kind->option ? kedge_cli_option(c, kind->option, NULL) : NULL;
    }
    for (size_t i = 0; i < kedge_anchor_kind_count(); i++) {
        struct kedge_trust_anchors ignored = ret->trust;
        char *text = (char *)(uintptr_t)ret->options[i];
        kind = kedge_anchor_kind_at(i);
        if (text && !kind->option_is_file && kind->option_take(text, &ignored) != KEDGE_OK) {
            (void)kedge_cli_usage(c, "--%s %s: expected %s", kind->option, kedge_cli_word(text).s,
                                  kind->option_form);
            return false;
        }
    }
    return true;
}

/* The file's text, ended by 0. */
static int read_text(const struct kedge_anchor_kind *kind, const char *path, struct kedge_buf *out,
                     struct kedge_diag *d)
{
    int err = kedge_file_read(path, out, d);
    if (!err && (out->len == 0 || memchr(out->ptr, 0, out->len))) {
        err = kedge_diag_set(d, KEDGE_E_FORMAT, "%s: expected %s", path, kind->option_form);
    }
    kedge_buf_put_u8(out, 0);
    return err ? err : out->err;
}

/* What the trust file says comes first, the command line's options after it: an auditor can try another key
 * without changing a file that others use. */
int kedge_cli_anchors_merge(struct kedge_cli_anchors *anchors, const struct kedge_trust *trust,
                            struct kedge_diag *d)
{
    if (trust) {
        anchors->trust = trust->anchors;
    }
    for (size_t i = 0; i < kedge_anchor_kind_count(); i++) {
        const struct kedge_anchor_kind *kind = kedge_anchor_kind_at(i);
        char *text = (char *)(uintptr_t)anchors->options[i];
        int err = KEDGE_OK;
        if (text && kind->option_is_file) {
            err = read_text(kind, text, &anchors->files[i], d);
            text = (char *)anchors->files[i].ptr;
        }
        err = err || !text ? err : kind->option_take(text, &anchors->trust);
        if (err) {
            return err;
        }
    }
    return KEDGE_OK;
}

void kedge_cli_anchors_deinit(struct kedge_cli_anchors *anchors)
{
    for (size_t i = 0; i < KEDGE_ANCHOR_KINDS_MAX; i++) {
        kedge_buf_deinit(&anchors->files[i]);
    }
}

/* ---- telling ---- */

static struct kedge_utc time_of(const struct kedge_audit_anchor *a)
{
    return kedge_utc(a->claim.time_s, KEDGE_UTC_SECONDS, "a time that is not told");
}

static uint64_t count_of(const struct kedge_audit_report *r, const struct kedge_anchor_kind *kind,
                         bool trusted)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < r->anchor_count; i++) {
        n += r->anchors[i].kind == kind && (!trusted || r->anchors[i].claim.trusted);
    }
    return n;
}

/* Only anchors under a trust anchor that the auditor named are told to people; the JSON answer has all of
 * them. */
void kedge_cli_anchors_say(const struct kedge_cli *c, const struct kedge_audit_report *r)
{
    for (size_t i = kedge_anchor_kind_count(); i-- > 0;) {
        const struct kedge_anchor_kind *kind = kedge_anchor_kind_at(i);
        const struct kedge_audit_anchor *a = kedge_audit_anchor_newest(r, kind);
        struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&text, 4096);
        if (a && a->claim.trusted && kind->say) {
            kind->say(&a->claim, time_of(a).s, &text);
            kedge_cli_say(c, "%.*s", (int)text.len, text.len ? (const char *)text.ptr : "");
        }
    }
}

/* One anchor stands for its kind: the newest that holds bounds the time of every entry before it. */
static json_t *newest_json(const struct kedge_audit_anchor *a)
{
    char name[KEDGE_ANCHOR_NAME_MAX];
    kedge_anchor_name(a->kind, a->number, name);
    json_t *o =
        json_pack("{s:s,s:I,s:I,s:s,s:b}", "file", name, "entries", (json_int_t)a->claim.size, "time_s",
                  (json_int_t)a->claim.time_s, "by", a->claim.by, "trusted", (int)a->claim.trusted);
    if (o && a->kind->describe) {
        a->kind->describe(&a->claim, o);
    }
    return o;
}

/* Every kind has a row, also with count 0: a script need not know whether a kind was looked for. */
json_t *kedge_cli_anchors_json(const struct kedge_audit_report *r)
{
    const struct kedge_anchor_kind *kind;
    json_t *o = json_object();
    for (size_t i = 0; (kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        const struct kedge_audit_anchor *a = kedge_audit_anchor_newest(r, kind);
        json_t *row = json_pack("{s:I,s:I}", "count", (json_int_t)count_of(r, kind, false), "trusted",
                                (json_int_t)count_of(r, kind, true));
        if (row && a) {
            json_object_set_new(row, "newest", newest_json(a));
        }
        json_object_set_new(o, kind->told, row);
    }
    return o;
}

/* An anchor that is under no trust anchor is counted and its word given as such: it shows a time only to who
 * trusts that authority. */
void kedge_cli_anchors_file(const struct kedge_audit_report *r,
                            void (*put_words)(struct kedge_buf *out, const char *text), struct kedge_buf *out)
{
    const struct kedge_anchor_kind *kind;
    kedge_buf_put_str(out, "\n## Anchors outside\n\n");
    if (r->anchor_count == 0) {
        kedge_buf_put_str(out, "None that hold.\n");
    }
    for (size_t i = 0; (kind = kedge_anchor_kind_at(i)) != NULL; i++) {
        const struct kedge_audit_anchor *a = kedge_audit_anchor_newest(r, kind);
        if (!a) {
            continue;
        }
        kedge_buf_printf(out, "- %s: %" PRIu64 " fit the main chain, %" PRIu64 " are under trust anchors\n",
                         kind->title, count_of(r, kind, false), count_of(r, kind, true));
        kedge_buf_printf(out, "  - newest%s: the main chain's first %" PRIu64 " entries, no later than %s",
                         a->claim.trusted ? "" : " (whose word that is was not judged)", a->claim.size,
                         time_of(a).s);
        if (a->claim.by[0]) {
            kedge_buf_put_str(out, ", by ");
            put_words(out, a->claim.by);
        }
        kedge_buf_put_str(out, "\n");
        if (kind->report) {
            kind->report(&a->claim, out);
        }
    }
}
