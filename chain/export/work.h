/* Internal to chain/export: one export under way. */
#ifndef KEDGE_CHAIN_EXPORT_WORK_H
#define KEDGE_CHAIN_EXPORT_WORK_H

#include "chain/audit/base/shown.h"
#include "chain/export/folder.h"
#include "chain/export/internal.h"
#include "chain/export/record.h"
#include "common/base/os/utc.h"
#include "crypto/timestamp.h"

enum { KEDGEI_EX_NOTES_MAX = 1024 };

/* A checkpoint that is in the export. */
struct kedgei_ex_note {
    char path[160];
    struct kedge_buf bytes;
};

struct kedgei_ex_token {
    char path[32], checkpoint[160];
    struct kedge_timestamp stamp;
};

struct kedgei_ex_work {
    const struct kedge_export_options *o;
    struct kedgei_ex_record r;
    struct kedgei_ex_folder f;
    struct kedge_audit_report report;
    struct kedge_export_summary sum;
    struct kedge_buf lineage; /* envelopes, one a line */
    struct kedgei_ex_note *notes;
    size_t note_count;
    struct kedge_buf key_lines;               /* permitted tenants' keys, for keys.jsonl */
    uint32_t anchors[KEDGE_ANCHOR_KINDS_MAX]; /* exported, of each kind */
    struct kedgei_ex_token tokens[KEDGE_EXPORT_TIMESTAMPS_MAX];
    size_t token_count;
    struct kedge_utc time;         /* RFC 3339 of what is stated */
    struct kedge_statement *a, *b; /* scratch: statements are large */
    struct kedge_diag *reterr;
};

struct kedge_utc kedgei_ex_time(int64_t time_s);
/* Steals statement; signs it with the exporter's key and adds it to the lineage. */
KEDGE_NODISCARD int kedgei_ex_attest(struct kedgei_ex_work *w, struct json_t *statement);
/* Steals o, writes it as a file with a final LF. */
KEDGE_NODISCARD int kedgei_ex_put_json(struct kedgei_ex_work *w, struct json_t *o, const char *path);

/* ---- statements.c: entries/, proofs/, keys.jsonl ---- */
KEDGE_NODISCARD int kedgei_ex_statements(struct kedgei_ex_work *w);
KEDGE_NODISCARD int kedgei_ex_keys(struct kedgei_ex_work *w);
/* ---- checkpoints.c: checkpoints/, tsa/, policy.txt ---- */
KEDGE_NODISCARD int kedgei_ex_checkpoints(struct kedgei_ex_work *w);
/* A checkpoint of the main chain in the export, with the consistency path to the newest. KEDGE_E_VERIFY when
 * the trusted log key did not sign it, or its root is not that of so many entries. */
KEDGE_NODISCARD int kedgei_ex_main_note(struct kedgei_ex_work *w, struct kedge_view note, const char *what);
KEDGE_NODISCARD int kedgei_ex_timestamps(struct kedgei_ex_work *w);
/* The reply in that file, verified, over a checkpoint that is in the export. */
KEDGE_NODISCARD int kedgei_ex_token(struct kedgei_ex_work *w, const char *file, struct kedge_view ca);
/* ---- anchors.c: anchors/ ---- */
KEDGE_NODISCARD int kedgei_ex_anchors(struct kedgei_ex_work *w);
/* Time stamps that lie in the record, each with its checkpoint: the newest, and the first that has a release,
 * as far as there is room for them. */
KEDGE_NODISCARD int kedgei_ex_stamps(struct kedgei_ex_work *w, struct kedge_view ca);
/* ---- provenance.c: SLSA provenance per round and release, verification result ---- */
KEDGE_NODISCARD int kedgei_ex_provenance(struct kedgei_ex_work *w);
KEDGE_NODISCARD int kedgei_ex_result(struct kedgei_ex_work *w);
/* ---- bom.c ---- */
KEDGE_NODISCARD int kedgei_ex_bom(struct kedgei_ex_work *w);
/* ---- export.c: what the verification has shown, as far as it may be told; deinit afterwards ---- */
KEDGE_NODISCARD int kedgei_ex_claims(const struct kedgei_ex_work *w, struct kedge_audit_claims *ret);
/* ---- page*.c, chart.c, drawing.c ---- */
KEDGE_NODISCARD int kedgei_ex_page(struct kedgei_ex_work *w);
/* Appends one SVG element: accuracy in percent, or loss, over the rounds of a job that was evaluated. */
void kedgei_ex_chart(const struct kedgei_ex_job *job, struct kedge_buf *out);
/* Appends one SVG element: the rounds of the job, its groups as columns. */
KEDGE_NODISCARD int kedgei_ex_drawing(struct kedgei_ex_work *w, const struct kedgei_ex_job *job,
                                      struct kedge_buf *out);

#endif
