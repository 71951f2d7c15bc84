/* What the parts of an export are written with. */
#include <string.h>

#include "chain/export/export.h"
#include "chain/export/work.h"
#include "common/base/os/utc.h"
#include "common/base/try.h"

static int put_text(const char *text, size_t len, void *arg)
{
    struct kedge_buf *out = arg;
    kedge_buf_put(out, text, len);
    return out->err ? -1 : 0;
}

int kedgei_ex_put_json(struct kedgei_ex_work *w, json_t *o, const char *path)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&text, KEDGEI_EX_MANIFEST_MAX);
    int err = o && json_dump_callback(o, put_text, &text, JSON_INDENT(2)) == 0 ? KEDGE_OK : KEDGE_E_NOMEM;
    json_decref(o);
    kedge_buf_put_u8(&text, '\n');
    if (err || text.err) {
        return kedge_diag_set(w->reterr, err ? err : text.err, "%s: cannot be made", path);
    }
    return kedgei_ex_put(&w->f, kedge_buf_view(&text), w->reterr, "%s", path);
}

struct kedge_utc kedgei_ex_time(int64_t time_s)
{
    return kedge_utc(time_s, KEDGE_UTC_RFC3339, "1970-01-01T00:00:00Z");
}

/* Where a file lay on the exporter's machine is nobody's business, nor is how long others' ledgers are. */
int kedgei_ex_claims(const struct kedgei_ex_work *w, struct kedge_audit_claims *ret)
{
    struct kedge_audit_claims c;
    KEDGE_TRY(kedge_audit_claims(&w->report, &c));
    size_t told = 0;
    for (size_t i = 0; i < c.count; i++) {
        struct kedge_audit_claim *claim = &c.items[i];
        claim->from[0] = claim->source && strcmp(claim->source, "seen") == 0 ? '\0' : claim->from[0];
        if (!claim->log || claim->log == w->report.logs[0].origin || w->r.all_permitted) {
            c.items[told++] = *claim;
        }
    }
    c.count = told;
    *ret = c;
    return KEDGE_OK;
}

int kedgei_ex_attest(struct kedgei_ex_work *w, json_t *statement)
{
    int err = kedgei_ex_envelope(statement, &w->o->key, &w->lineage);
    kedge_buf_put_u8(&w->lineage, '\n');
    if (!err) {
        err = w->lineage.err;
    }
    w->sum.attestations++;
    return err ? kedge_diag_set(w->reterr, err, "lineage.intoto.jsonl: %s", kedge_strerror(err)) : KEDGE_OK;
}
