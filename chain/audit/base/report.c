/* Findings: how many are kept, in which order, and how they are named. All are counted; those beyond the
 * bound are not kept, because a damaged record can have millions and the report must stay readable. */
#include "chain/audit/base/report.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"

static const char *const codes[KEDGE_AUDIT_CODE_COUNT] = {
#define KEDGE_AUDIT_CODE(name, text) [KEDGE_AUDIT_##name] = #name,
#include "chain/audit/base/codes.def"
#undef KEDGE_AUDIT_CODE
};

/* The list holds C identifiers; people see them in lower case with dashes. Names are made once at start-up of
 * the first caller per thread, so that no lock is needed. */
const char *kedge_audit_code_name(enum kedge_audit_code code)
{
    static _Thread_local char names[KEDGE_AUDIT_CODE_COUNT][24];
    if ((unsigned)code >= KEDGE_AUDIT_CODE_COUNT) {
        return "unknown";
    }
    char *name = names[code];
    if (name[0] == '\0') {
        const char *from = codes[code];
        size_t i = 0;
        for (; from[i] != '\0' && i + 1 < sizeof names[0]; i++) {
            name[i] = from[i] == '_' ? '-' : (char)tolower((unsigned char)from[i]);
        }
        name[i] = '\0';
    }
    return name;
}

const char *kedge_audit_refusal_name(enum kedge_audit_refusal_verdict verdict)
{
    static const char *const names[KEDGE_AUDIT_REFUSAL_COUNT] = {"not-signed", "contradicted", "invented",
                                                                 "not-shown", "confirmed"};
    return (unsigned)verdict < KEDGE_AUDIT_REFUSAL_COUNT ? names[verdict] : "unknown";
}

void kedge_audit_report_deinit(struct kedge_audit_report *report)
{
    kedge_mem_free(report->findings);
    kedge_mem_free(report->logs);
    kedge_mem_free(report->anchors);
    kedge_mem_free(report->evidence);
    kedge_mem_free(report->refusals);
    memset(report, 0, sizeof *report);
}

/* Room for one more finding, or NULL when it is only counted. However many of one kind there are, the first
 * of every other kind have room: among them may be the cause. */
static struct kedge_audit_finding *take_slot(struct kedgei_findings *f, enum kedge_audit_severity severity,
                                             enum kedge_audit_code code)
{
    uint32_t *kept = severity == KEDGE_AUDIT_ERROR ? &f->errors_kept : &f->notes_kept;
    if (*kept >= KEDGE_AUDIT_FINDINGS_MAX && f->kept[code] >= KEDGE_AUDIT_FINDINGS_OF_CODE) {
        return NULL;
    }
    if (!kedge_mem_grow(&f->items, &f->cap, f->count, 4, sizeof *f->items)) {
        f->nomem = true;
        return NULL;
    }
    (*kept)++;
    f->kept[code]++;
    return &f->items[f->count++];
}

static void count_one(struct kedgei_findings *f, enum kedge_audit_severity severity)
{
    if (severity == KEDGE_AUDIT_ERROR) {
        f->errors++;
    } else {
        f->notes++;
    }
}

void kedgei_find_v(struct kedgei_findings *f, enum kedge_audit_severity severity, enum kedge_audit_code code,
                   const char *where, const char *format, va_list ap)
{
    count_one(f, severity);
    struct kedge_audit_finding *slot = take_slot(f, severity, code);
    if (slot) {
        slot->severity = severity;
        slot->code = code;
        snprintf(slot->where, sizeof slot->where, "%s", where);
        vsnprintf(slot->text, sizeof slot->text, format, ap);
    }
}

void kedgei_find(struct kedgei_findings *f, enum kedge_audit_severity severity, enum kedge_audit_code code,
                 const char *where, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    kedgei_find_v(f, severity, code, where, format, ap);
    va_end(ap);
}

/* Slots are taken by the same rule as for single findings, so the bounds hold for the whole report and
 * not only for each block. Counts are added in full. */
void kedgei_findings_move(struct kedgei_findings *dst, struct kedgei_findings *src)
{
    for (uint32_t i = 0; i < src->count; i++) {
        struct kedge_audit_finding *slot = take_slot(dst, src->items[i].severity, src->items[i].code);
        if (slot) {
            *slot = src->items[i];
        }
    }
    dst->errors += src->errors;
    dst->notes += src->notes;
    dst->nomem = dst->nomem || src->nomem;
    kedgei_findings_deinit(src);
}

void kedgei_findings_deinit(struct kedgei_findings *f)
{
    kedge_mem_free(f->items);
    memset(f, 0, sizeof *f);
}
