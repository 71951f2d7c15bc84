/* Internal to chain/export: report.html under way. Whatever others wrote goes through kedgei_ex_html. */
#ifndef KEDGE_CHAIN_EXPORT_PAGE_H
#define KEDGE_CHAIN_EXPORT_PAGE_H

#include "chain/export/work.h"

struct kedgei_page {
    struct kedgei_ex_work *w;
    struct kedge_buf out;
};

/* ---- page_text.c ---- */
extern const char kedgei_page_head[]; /* until the title; the style sheet with the end of the head */
extern const char kedgei_page_style[];
void kedgei_page_put(struct kedgei_page *p, const char *html);
void kedgei_page_text(struct kedgei_page *p, const char *text);
/* "one round", "3 rounds" */
void kedgei_page_count(struct kedgei_page *p, uint64_t n, const char *one, const char *many);
void kedgei_page_digest(struct kedgei_page *p, const struct kedge_hash *h);
/* A time of the coordinator's clock, unix milliseconds, in UTC: "27 November 2026, 12:03 UTC", or short,
 * "2026-11-27 12:03"; "not stated" for 0. */
void kedgei_page_time(struct kedgei_page *p, uint64_t ms, bool is_short);
/* part of whole as "93.4 %" */
void kedgei_page_percent(struct kedgei_page *p, double part, double whole);
/* An organisation: its name, or the beginning of its salted id where it must not be named. */
void kedgei_page_tenant(struct kedgei_page *p, const struct kedge_hash *salted);

/* ---- page_first.c: what a reader who is no engineer needs ---- */
KEDGE_NODISCARD int kedgei_page_first(struct kedgei_page *p);
/* ---- page_job.c: one job ---- */
KEDGE_NODISCARD int kedgei_page_job(struct kedgei_page *p, const struct kedgei_ex_job *job);

#endif
