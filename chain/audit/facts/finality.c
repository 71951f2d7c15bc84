/* Whether releases are final: the trust file's witness policy against the checkpoint that the federation's
 * witnesses cosigned (STATE/main/cosigned.note). A model that they have not seen in the chain was not
 * released to the world, but perhaps to one listener. */
#include <string.h>

#include "chain/audit/record.h"
#include "chain/log/witness_quorum.h"
#include "common/base/mem.h"

static const char cosigned_file[] = "main/cosigned.note";

/* The size that the quorum stands behind; 0, with a finding, when it stands behind none. The witnesses'
 * note is judged by the policy of the auditor's trust file and never by one in the record. A cosigned
 * size beyond the log is a log that was cut off, another root another history; both are found only
 * because somebody else kept the checkpoint. */
static uint64_t judge_note(struct kedgei_audit *a, const struct kedge_witness_policy *policy,
                           struct kedge_view note)
{
    struct kedgei_findings *f = &a->findings;
    struct kedge_diag why = {.text = ""};
    struct kedge_hash root;
    struct kedge_witness_demand demand = {
        .origin = kedge_view_str(a->main.origin), .logs = &a->trust->main_log, .log_count = 1};
    struct kedge_witness_evaluation *e = kedge_mem_new(1, sizeof *e);
    uint64_t size = 0;
    if (!e) {
        f->nomem = true;
        return 0;
    }
    int err = kedge_witness_policy_evaluate(policy, note, &demand, e, &why);
    if (err == KEDGE_E_NOMEM) {
        f->nomem = true;
    } else if (err) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_COSIGNED, cosigned_file, "%s", why.text);
    } else if (e->checkpoint.size > a->main.count) {
        kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_TRUNCATED, cosigned_file,
                    "witnesses cosigned %llu entries of the main chain, which has %llu",
                    (unsigned long long)e->checkpoint.size, (unsigned long long)a->main.count);
    } else {
        kedgei_log_root(&a->main, e->checkpoint.size, &root);
        size = e->checkpoint.size;
        if (!kedge_hash_eq(&root, &e->checkpoint.root)) {
            kedgei_find(f, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_FORK, cosigned_file,
                        "witnesses cosigned other entries than the first %llu of this main chain",
                        (unsigned long long)size);
            size = 0;
        } else {
            kedgei_add_evidence(a, &a->main, size, KEDGE_AUDIT_BY_WITNESSES, cosigned_file);
        }
    }
    kedge_mem_free(e);
    return size;
}

static int read_note(struct kedgei_audit *a, struct kedge_buf *note)
{
    char path[KEDGE_PATH_MAX];
    int err = kedge_state_path(path, &a->diag, a->state, "%s", cosigned_file);
    if (err || !kedge_file_exists(path)) {
        return err;
    }
    err = kedge_file_read(path, note, &a->diag);
    if (err == KEDGE_E_TOO_LONG) {
        kedgei_find(&a->findings, KEDGE_AUDIT_ERROR, KEDGE_AUDIT_COSIGNED, cosigned_file,
                    "longer than a note can be");
        kedge_buf_clear(note);
        return KEDGE_OK;
    }
    return err;
}

/* Only releases must be final. Newer entries of the chain are always ahead of the witnesses, and a model
 * that was released is what others rely on. */
int kedgei_check_finality(struct kedgei_audit *a)
{
    struct kedge_witness_policy *policy = NULL;
    struct kedge_buf note;
    uint64_t final = 0;
    if (!a->trust || !a->trust->witness_policy) {
        return KEDGE_OK;
    }
    int err = kedge_witness_policy_parse(kedge_view_str(a->trust->witness_policy), &policy, &a->diag);
    if (err || policy->quorum.kind == KEDGE_QUORUM_NONE) {
        kedge_witness_policy_free(policy);
        return err;
    }
    kedge_buf_init(&note, KEDGE_NOTE_MAX);
    err = read_note(a, &note);
    if (!err && note.len > 0) {
        final = judge_note(a, policy, kedge_buf_view(&note));
    }
    a->counts.final_entries = final;
    for (uint64_t i = final; i < a->main.count && !err; i++) {
        if (kedgei_fact_at(&a->main, i)->kind == KEDGE_ST_RELEASE) {
            kedgei_error_if_settled(
                a, &a->findings, KEDGE_AUDIT_NOT_FINAL, &a->main, i,
                "the quorum of witnesses has cosigned the first %llu entries of the main chain, "
                "and not this release",
                (unsigned long long) final);
        }
    }
    kedge_buf_deinit(&note);
    kedge_witness_policy_free(policy);
    return err;
}
