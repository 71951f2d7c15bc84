#include "cli/audit/audit_anchors.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "common/base/mem.h"
#include "crypto/timestamp.h"

bool kedge_cli_anchors_take(struct kedge_cli *c, struct kedge_cli_anchors *ret)
{
    const char *evm = kedge_cli_option(c, "anchor", NULL);
    memset(ret, 0, sizeof *ret);
    kedge_buf_init(&ret->pem, KEDGE_TSA_PEM_MAX + 1);
    ret->tsa_ca = kedge_cli_option(c, "tsa-ca", NULL);
    if (evm && kedge_trust_anchor_parse(evm, &ret->trust) != KEDGE_OK) {
        (void)kedge_cli_usage(
            c,
            "--anchor %s: expected CHAIN:CONTRACT:ACCOUNT, a number and two addresses (0x and "
            "40 hex digits)",
            kedge_cli_word(evm).s);
        return false;
    }
    return true;
}

int kedge_cli_anchors_merge(struct kedge_cli_anchors *anchors, const struct kedge_trust *trust,
                            struct kedge_diag *d)
{
    struct kedge_trust_anchors given = anchors->trust;
    if (trust) {
        anchors->trust = trust->anchors;
    }
    if (given.has_evm) {
        given.tsa_ca = anchors->trust.tsa_ca;
        given.required = anchors->trust.required;
        anchors->trust = given;
    }
    if (anchors->tsa_ca) {
        int err = kedge_file_read(anchors->tsa_ca, &anchors->pem, d);
        if (!err && (anchors->pem.len == 0 || memchr(anchors->pem.ptr, 0, anchors->pem.len))) {
            err = kedge_diag_set(d, KEDGE_E_FORMAT, "%s: expected certificates in PEM", anchors->tsa_ca);
        }
        kedge_buf_put_u8(&anchors->pem, 0);
        err = err ? err : anchors->pem.err;
        if (err) {
            return err;
        }
        anchors->trust.tsa_ca = (char *)anchors->pem.ptr;
    }
    return KEDGE_OK;
}

void kedge_cli_anchors_deinit(struct kedge_cli_anchors *anchors)
{
    kedge_buf_deinit(&anchors->pem);
}

/* ---- telling ---- */

struct words {
    char s[64];
};

static struct words time_of(const struct kedge_audit_anchor *a)
{
    struct words w = {"a time that is not told"};
    time_t t = (time_t)a->time_s;
    struct tm tm;
    if (a->time_s > 0 && gmtime_r(&t, &tm)) {
        (void)!strftime(w.s, sizeof w.s, "%Y-%m-%d %H:%M:%S UTC", &tm);
    }
    return w;
}

/* Names in the JSON answer, by kind. */
static const char *const kinds[KEDGE_ANCHOR_KINDS] = {
    [KEDGE_ANCHOR_EVM] = "evm", [KEDGE_ANCHOR_TSA] = "rfc3161"};

static uint64_t count_of(const struct kedge_audit_report *r, enum kedge_anchor_kind kind, bool trusted)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < r->anchor_count; i++) {
        n += r->anchors[i].kind == kind && (!trusted || r->anchors[i].trusted);
    }
    return n;
}

void kedge_cli_anchors_say(const struct kedge_cli *c, const struct kedge_audit_report *r)
{
    const struct kedge_audit_anchor *a = kedge_audit_anchor_newest(r, KEDGE_ANCHOR_TSA);
    if (a && a->trusted) {
        kedge_cli_say(c, "Time-stamped: the main chain's first %" PRIu64 " entries existed at %s, says %s.\n",
                      a->size, time_of(a).s, a->by);
    }
    a = kedge_audit_anchor_newest(r, KEDGE_ANCHOR_EVM);
    if (a && a->trusted && a->in_block) {
        char hash[KEDGE_HASH_HEX_LEN + 1];
        kedge_hash_hex(&a->block_hash, hash);
        kedge_cli_say(c,
                      "Anchored: the main chain's first %" PRIu64 " entries existed when block %" PRIu64
                      " of chain %" PRIu64 " was made, at %s, if that block is the chain's: ask a node for "
                      "its hash, %s.\n",
                      a->size, a->block, a->chain_id, time_of(a).s, hash);
    } else if (a && a->trusted) {
        kedge_cli_say(c,
                      "Anchored: account %s signed for chain %" PRIu64 " that the main chain has these first "
                      "%" PRIu64 " entries; ask a node whether its transaction is in block %" PRIu64 ".\n",
                      a->by, a->chain_id, a->size, a->block);
    }
}

static json_t *newest_json(const struct kedge_audit_anchor *a)
{
    char hash[KEDGE_HASH_HEX_LEN + 1], name[KEDGE_ANCHOR_NAME_MAX];
    kedge_hash_hex(&a->block_hash, hash);
    kedge_anchor_name(a->kind, a->number, name);
    json_t *o = json_pack("{s:s,s:I,s:I,s:s,s:b}", "file", name, "entries", (json_int_t)a->size, "time_s",
                          (json_int_t)a->time_s, "by", a->by, "trusted", (int)a->trusted);
    if (o && a->kind == KEDGE_ANCHOR_EVM) {
        json_object_set_new(o, "chain_id", json_integer((json_int_t)a->chain_id));
        json_object_set_new(o, "block", json_integer((json_int_t)a->block));
        json_object_set_new(o, "block_hash", json_string(hash));
        json_object_set_new(o, "in_block", json_boolean(a->in_block));
    }
    return o;
}

json_t *kedge_cli_anchors_json(const struct kedge_audit_report *r)
{
    json_t *o = json_object();
    for (enum kedge_anchor_kind kind = 0; kind < KEDGE_ANCHOR_KINDS; kind++) {
        const struct kedge_audit_anchor *a = kedge_audit_anchor_newest(r, kind);
        json_t *row = json_pack("{s:I,s:I}", "count", (json_int_t)count_of(r, kind, false), "trusted",
                                (json_int_t)count_of(r, kind, true));
        if (row && a) {
            json_object_set_new(row, "newest", newest_json(a));
        }
        json_object_set_new(o, kinds[kind], row);
    }
    return o;
}

void kedge_cli_anchors_file(const struct kedge_audit_report *r,
                            void (*put_words)(struct kedge_buf *out, const char *text), struct kedge_buf *out)
{
    static const char *const titles[KEDGE_ANCHOR_KINDS] = {[KEDGE_ANCHOR_EVM] =
                                                               "anchors on an Ethereum-compatible chain",
                                                           [KEDGE_ANCHOR_TSA] = "RFC 3161 time stamps"};
    kedge_buf_put_str(out, "\n## Anchors outside\n\n");
    if (r->anchor_count == 0) {
        kedge_buf_put_str(out, "None that hold.\n");
    }
    for (enum kedge_anchor_kind kind = 0; kind < KEDGE_ANCHOR_KINDS; kind++) {
        const struct kedge_audit_anchor *a = kedge_audit_anchor_newest(r, kind);
        if (!a) {
            continue;
        }
        kedge_buf_printf(out, "- %s: %" PRIu64 " fit the main chain, %" PRIu64 " are under trust anchors\n",
                         titles[kind], count_of(r, kind, false), count_of(r, kind, true));
        kedge_buf_printf(out, "  - newest%s: the main chain's first %" PRIu64 " entries, no later than %s",
                         a->trusted ? "" : " (whose word that is was not judged)", a->size, time_of(a).s);
        if (a->by[0]) {
            kedge_buf_put_str(out, ", by ");
            put_words(out, a->by);
        }
        kedge_buf_put_str(out, "\n");
        if (kind == KEDGE_ANCHOR_EVM) {
            char hash[KEDGE_HASH_HEX_LEN + 1];
            kedge_hash_hex(&a->block_hash, hash);
            kedge_buf_printf(out,
                             "  - provided that block %" PRIu64 " of chain %" PRIu64
                             " has the hash %s%s: ask a "
                             "node that you trust\n",
                             a->block, a->chain_id, hash,
                             a->in_block ? "" : " and holds the transaction, which is not proven here");
        }
    }
}
