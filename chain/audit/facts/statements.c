/* What the audit found, entry by entry and log by log. */
#include <stdio.h>
#include <string.h>

#include "chain/audit/record.h"
#include "chain/statement/main_entry.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* Names of keys in the envelope; none when it is no envelope. */
static int read_signers(const struct kedgei_log *log, uint64_t index, struct kedge_audit_entry *e)
{
    struct kedge_view envelope = kedgei_entry_at(log, index);
    struct kedge_dsse_entry signatures[KEDGE_DSSE_SIGNATURES_MAX];
    struct kedge_main_entry entry;
    struct kedge_buf payload;
    if (!log->tenant.s[0]) {
        if (kedge_main_entry_decode(envelope, &entry) != KEDGE_OK) {
            return KEDGE_OK;
        }
        envelope = entry.body;
    }
    kedge_buf_init(&payload, KEDGE_ENTRY_MAX);
    uint32_t count = 0;
    int err = kedge_dsse_decode_all(envelope, &payload, signatures, &count);
    kedge_buf_deinit(&payload);
    for (uint32_t i = 0; !err && i < count; i++) {
        e->signers[e->signer_count++] = signatures[i].keyid;
    }
    return err == KEDGE_E_NOMEM ? err : KEDGE_OK;
}

/* Called for every entry at the end, when all bits of findings are set. The signers are read from the
 * envelope again, since only few callers ask for them. */
static int tell_entry(const struct kedgei_audit *a, const struct kedgei_log *log, uint64_t index)
{
    const struct kedgei_fact *fact = kedgei_fact_at(log, index);
    struct kedge_audit_entry e = {
        .log = log->origin, .index = index, .kind = "malformed", .leaf = *kedgei_hash_at(log, 0, index)};
    e.codes = atomic_load_explicit(&fact->codes, memory_order_relaxed);
    if (fact->kind == KEDGEI_FACT_CHECKPOINT) {
        const struct kedgei_anchor *anchor = fact->body;
        e.kind = "checkpoint";
        e.has_subject = true;
        e.subject = anchor->root;
        if (anchor->tenant < a->tenant_count && a->tenants[anchor->tenant].has_vkey) {
            kedge_public_key_hash(&a->tenants[anchor->tenant].vkey.key, &e.signers[0]);
            e.signer_count = 1;
        }
    } else if (fact->kind == KEDGEI_FACT_WITHHELD) {
        e.kind = "withheld";
    } else if (fact->kind != KEDGEI_FACT_BAD) {
        e.kind = kedge_statement_kind_name((enum kedge_statement_kind)fact->kind);
        e.has_subject = true;
        e.subject = fact->subject;
        KEDGE_TRY(read_signers(log, index, &e));
    }
    return a->options.each(a->options.each_arg, &e);
}

static int tell_log(const struct kedgei_audit *a, const struct kedgei_log *log)
{
    for (uint64_t i = 0; i < log->count; i++) {
        KEDGE_TRY(tell_entry(a, log, i));
    }
    return KEDGE_OK;
}

int kedgei_tell_entries(struct kedgei_audit *a)
{
    int err = tell_log(a, &a->main);
    for (uint32_t t = 0; t < a->tenant_count && !err; t++) {
        err = tell_log(a, &a->tenants[t]);
    }
    return err;
}

/* The newest checkpoint of a log goes into the report with its own hash, so that a reader can keep it and
 * hold a later copy against it (--seen). */
static void describe(const struct kedgei_log *log, struct kedge_audit_log *ret)
{
    snprintf(ret->name, sizeof ret->name, "%s", log->name);
    memcpy(ret->origin, log->origin, sizeof ret->origin);
    ret->entries = log->count;
    for (uint64_t i = 0; i < log->count; i++) {
        ret->flawed += atomic_load_explicit(&kedgei_fact_at(log, i)->codes, memory_order_relaxed) != 0;
    }
    ret->has_key = log->has_vkey;
    ret->has_authority = log->has_authority;
    if (log->has_vkey) {
        ret->log_key = log->vkey.key;
    }
    if (log->has_authority) {
        ret->authority = log->authority;
    }
    const struct kedgei_head *head = log->head_count ? kedgei_head_at(log, log->head_count - 1) : NULL;
    if (head && head->size <= log->count) {
        ret->head_size = head->size;
        kedgei_log_root(log, head->size, &ret->head_root);
        kedge_sha256(head->note, &ret->head_note);
    }
}

int kedgei_describe_logs(const struct kedgei_audit *a, struct kedge_audit_report *ret)
{
    ret->logs = kedge_mem_new((size_t)a->tenant_count + 1, sizeof *ret->logs);
    KEDGE_TRY_MEM(ret->logs);
    describe(&a->main, &ret->logs[0]);
    for (uint32_t t = 0; t < a->tenant_count; t++) {
        describe(&a->tenants[t], &ret->logs[t + 1]);
    }
    ret->log_count = a->tenant_count + 1;
    return KEDGE_OK;
}
