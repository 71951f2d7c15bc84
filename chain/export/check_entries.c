/* Entries: each stands in its log, as a checkpoint of the trusted log key proves, and is signed by a key that
 * was in force there. A tenant's keys are followed from its first admin key, which the trust file names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/export/check_impl.h"
#include "chain/log/proof.h"
#include "chain/statement/keybook.h"
#include "chain/statement/mainbook.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "common/base/try.h"

/* One entry of the export, by its file's name. */
struct place {
    char log[KEDGE_ID_MAX + 1];
    uint64_t index;
    const char *path;
};

struct reading {
    struct kedgei_ex_check *c;
    struct place *places;
    size_t count;
    const struct kedge_trust_tenant *tenant; /* NULL: main chain */
    struct kedge_keybook book;               /* of the tenant */
    struct kedge_mainbook main;              /* statement keys, along their rotations; the first is the trust
                                                file's. Approvals by organisations are the audit's to judge */
    struct kedge_statement *st;
    struct kedge_signed_statement *parts;
};

/* "entries/LOG-INDEX.json" or ".bin" */
static bool take_place(const char *path, struct place *ret)
{
    const char *name = path + strlen("entries/"), *dash = strrchr(name, '-'), *dot = strrchr(name, '.');
    size_t len = dash ? (size_t)(dash - name) : 0;
    if (!dash || !dot || dot < dash || len == 0 || len > KEDGE_ID_MAX
        || (strcmp(dot, ".json") != 0 && strcmp(dot, ".bin") != 0)) {
        return false;
    }
    memcpy(ret->log, name, len);
    ret->log[len] = '\0';
    ret->path = path;
    const char *digits = dash + 1;
    while (digits + 1 < dot && *digits == '0') {
        digits++;
    }
    return kedge_decimal_decode(kedge_view_of(digits, (size_t)(dot - digits)), KEDGE_TREE_SIZE_MAX,
                                &ret->index)
           == KEDGE_OK;
}

/* The main chain first, for its rotations say which statement keys signed what a tenant's ledger has from the
 * coordinator; then tenants; by index, as keys are in force from one entry to another. */
static int compare(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    bool main_x = strcmp(x->log, "main") == 0, main_y = strcmp(y->log, "main") == 0;
    int order = main_x || main_y ? main_y - main_x : strcmp(x->log, y->log);
    return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

/* All entries of a log are proved under one checkpoint: under several, each could be of another history. */
static int check_head(const struct reading *r, const struct place *p, const char *path,
                      const struct kedge_checkpoint *checkpoint)
{
    struct kedgei_ex_check *c = r->c;
    const struct kedgei_ex_head *last = c->head_count ? &c->heads[c->head_count - 1] : NULL;
    if (!last || strcmp(last->log, p->log) != 0) { /* places are sorted by log */
        struct kedgei_ex_head *heads = kedge_mem_resize(c->heads, c->head_count + 1, sizeof *heads);
        if (!heads) {
            return kedge_diag_set(c->reterr, KEDGE_E_NOMEM, "out of memory");
        }
        c->heads = heads;
        struct kedgei_ex_head *h = &heads[c->head_count++];
        *h = (struct kedgei_ex_head){.size = checkpoint->size, .root = checkpoint->root};
        snprintf(h->log, sizeof h->log, "%s", p->log);
        return KEDGE_OK;
    }
    return last->size == checkpoint->size && kedge_hash_eq(&last->root, &checkpoint->root)
               ? KEDGE_OK
               : kedgei_ex_wrong(c, path, "under another checkpoint than the other proofs of its log");
}

static int check_proof(const struct reading *r, const struct place *p, struct kedge_view entry)
{
    struct kedge_checkpoint checkpoint;
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_proof proof;
    struct kedge_hash leaf;
    char path[KEDGE_PATH_MAX];
    const struct kedge_vkey *log = r->tenant ? &r->tenant->log : &r->c->o->trust->main_log;
    snprintf(path, sizeof path, "proofs/%s-%08llu.tlog-proof", p->log, (unsigned long long)p->index);
    kedge_buf_init(&text, 0);
    if (!kedgei_ex_find(r->c, path)) {
        return kedgei_ex_wrong(r->c, p->path, "an entry without its proof");
    }
    KEDGE_TRY(kedgei_ex_load(r->c, path, KEDGE_PROOF_TEXT_MAX, &text));
    kedge_merkle_leaf(entry, &leaf);
    int err = kedge_proof_decode(kedge_buf_view(&text), &proof);
    if (!err && proof.index != p->index) {
        err = KEDGE_E_VERIFY;
    }
    if (!err) {
        err = kedge_proof_verify(&proof, &leaf, kedge_view_str(log->name), log, 1, &checkpoint);
    }
    if (err) {
        return kedgei_ex_wrong(r->c, path, "does not prove its entry under the trusted log key");
    }
    r->c->sum.proofs++;
    return check_head(r, p, path, &checkpoint);
}

/* ---- who signed ---- */

/* The policy, or a rotation: signed by the key that goes and the key that comes. */
static int check_authority(struct reading *r, uint64_t index)
{
    uint32_t others;
    if (r->st->kind != KEDGE_ST_POLICY) {
        int err = kedge_mainbook_verify(&r->main, r->st, r->parts, &others, NULL);
        return err ? err : kedge_mainbook_apply(&r->main, r->st, index, NULL);
    }
    if (!kedge_public_key_eq(&r->st->u.policy.statement_key, &r->c->o->trust->statement_key)
        || r->parts->signature_count != 1) {
        return KEDGE_E_VERIFY;
    }
    int err = kedge_dsse_entry_verify(&r->parts->signatures[0], kedge_buf_view(&r->parts->payload),
                                      &r->c->o->trust->statement_key);
    return err ? err : kedge_mainbook_apply(&r->main, r->st, index, NULL);
}

/* The key that signs statements of the main chain after the entries that were read so far. */
static const struct kedge_public_key *statement_key(const struct reading *r)
{
    const struct kedge_public_key *key = kedge_mainbook_key(&r->main);
    return key ? key : &r->c->o->trust->statement_key;
}

static int check_main(struct reading *r, uint64_t index, struct kedge_view entry)
{
    struct kedge_main_entry e;
    struct kedgei_ex_check *c = r->c;
    int err = kedge_main_entry_decode(entry, &e);
    if (!err && e.kind == KEDGE_MAIN_CHECKPOINT) {
        err = KEDGE_E_VERIFY;
        for (uint32_t i = 0; i < c->o->trust->tenant_count && err; i++) {
            const struct kedge_vkey *log = &c->o->trust->tenants[i].log;
            struct kedge_checkpoint checkpoint;
            err = kedge_checkpoint_open(e.body, kedge_view_str(log->name), log, 1, &checkpoint, NULL);
        }
        return err;
    }
    if (!err) {
        err = kedge_statement_read(entry, r->st, r->parts, NULL);
    }
    if (!err && kedge_mainbook_concerns(r->st->kind)) {
        return check_authority(r, index);
    }
    if (!err) {
        err = r->parts->signature_count == 1 ? kedge_dsse_entry_verify(
                  &r->parts->signatures[0], kedge_buf_view(&r->parts->payload), statement_key(r))
                                             : KEDGE_E_VERIFY;
    }
    if (err || r->st->kind != KEDGE_ST_RELEASE) {
        return err;
    }
    KEDGE_TRY_MEM(kedge_mem_grow(&c->releases, &c->release_cap, c->release_count, 16, sizeof *c->releases));
    c->releases[c->release_count++] = r->st->subject;
    c->release_last = index > c->release_last ? index : c->release_last;
    return KEDGE_OK;
}

/* The key of a site's or the coordinator's statement, or NULL. */
static const struct kedge_public_key *other_signer(const struct reading *r)
{
    const struct kedge_statement *st = r->st;
    if (st->kind == KEDGE_ST_GROUP_ASSIGNED) { /* by the key of its time, which the signature names */
        const struct kedge_main_key *key = kedge_mainbook_find(&r->main, &r->parts->signatures[0].keyid);
        return key ? &key->key : &r->c->o->trust->statement_key;
    }
    const struct kedge_id *site = st->kind == KEDGE_ST_UPDATE       ? &st->u.update.site
                                  : st->kind == KEDGE_ST_EVALUATION ? &st->u.evaluation.site
                                                                    : NULL;
    const struct kedge_book_key *key = site ? kedge_keybook_of(&r->book, KEDGE_ROLE_SITE, site) : NULL;
    return key && kedge_book_key_in_force(key) ? &key->key : NULL;
}

/* Sites sign updates and evaluations, the coordinator signs assignments to groups, and admins sign
 * everything else. Entries come in the order of the ledger, so each is judged by the keys that were in
 * force at its place. */
static int check_tenant(struct reading *r, const struct place *p, struct kedge_view entry)
{
    KEDGE_TRY(kedge_statement_read(entry, r->st, r->parts, NULL));
    if (r->book.count == 0
        && (p->index != 0 || r->st->kind != KEDGE_ST_KEY
            || !kedge_public_key_eq(&r->st->u.key.public_key, &r->tenant->admin_key))) {
        return KEDGE_E_VERIFY; /* a ledger begins with the key that the trust file names */
    }
    enum kedge_statement_kind kind = r->st->kind;
    if (kind == KEDGE_ST_UPDATE || kind == KEDGE_ST_EVALUATION || kind == KEDGE_ST_GROUP_ASSIGNED) {
        const struct kedge_public_key *key = other_signer(r);
        return key && r->parts->signature_count == 1 ? kedge_dsse_entry_verify(
                   &r->parts->signatures[0], kedge_buf_view(&r->parts->payload), key)
                                                     : KEDGE_E_VERIFY;
    }
    int err = kedge_keybook_verify(&r->book, r->st, r->parts, NULL); /* admins sign all else */
    return err || !kedge_keybook_concerns(kind) ? err : kedge_keybook_apply(&r->book, r->st, p->index, NULL);
}

/* ---- in order ---- */

static int begin_log(struct reading *r, const struct place *p)
{
    struct kedge_id id;
    r->tenant = NULL;
    if (strcmp(p->log, "main") == 0) {
        return KEDGE_OK;
    }
    kedge_keybook_deinit(&r->book);
    if (kedge_id_from(kedge_view_str(p->log), &id) != KEDGE_OK
        || !(r->tenant = kedge_trust_find(r->c->o->trust, &id))) {
        return kedgei_ex_wrong(r->c, p->path, "of a log that the trust file does not name");
    }
    kedge_keybook_init(&r->book, &id);
    return KEDGE_OK;
}

static int check_place(struct reading *r, const struct place *p)
{
    struct kedge_buf entry KEDGE_CLEANUP(kedge_buf_deinit);
    KEDGE_TRY(kedgei_ex_load(r->c, p->path, KEDGE_ENTRY_MAX, &entry));
    KEDGE_TRY(check_proof(r, p, kedge_buf_view(&entry)));
    int err = r->tenant ? check_tenant(r, p, kedge_buf_view(&entry))
                        : check_main(r, p->index, kedge_buf_view(&entry));
    kedge_buf_deinit(&r->parts->payload);
    r->c->sum.statements += !err;
    return err ? kedgei_ex_wrong(r->c, p->path, "not signed by a key that was in force") : KEDGE_OK;
}

static int compare_hash(const void *a, const void *b)
{
    return kedge_hash_cmp(a, b);
}

/* Digests of the entries' files, for finding the lines of the lineage among them. */
static int list_entries(struct kedgei_ex_check *c, size_t count)
{
    c->entries = kedge_mem_new(count + 1, sizeof *c->entries);
    if (!c->entries) {
        return kedge_diag_set(c->reterr, KEDGE_E_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < c->files.count; i++) {
        if (strncmp(c->files.files[i].name, "entries/", 8) == 0) {
            c->entries[c->entry_count++] = c->files.files[i].digest;
        }
    }
    if (c->entry_count > 1) {
        qsort(c->entries, c->entry_count, sizeof *c->entries, compare_hash);
    }
    return KEDGE_OK;
}

int kedgei_ex_check_entries(struct kedgei_ex_check *c)
{
    struct reading r = {.c = c};
    kedge_mainbook_init(&r.main);
    r.places = kedge_mem_new(c->files.count + 1, sizeof *r.places);
    r.st = kedge_mem_new(1, sizeof *r.st);
    r.parts = kedge_mem_new(1, sizeof *r.parts);
    int err =
        r.places && r.st && r.parts ? KEDGE_OK : kedge_diag_set(c->reterr, KEDGE_E_NOMEM, "out of memory");
    size_t proofs = 0;
    for (size_t i = 0; i < c->files.count && !err; i++) {
        const char *name = c->files.files[i].name;
        proofs += strncmp(name, "proofs/", 7) == 0;
        if (strncmp(name, "entries/", 8) == 0 && !take_place(name, &r.places[r.count++])) {
            err = kedgei_ex_wrong(c, name, "no name of an entry");
        }
    }
    if (!err && r.count > 1) {
        qsort(r.places, r.count, sizeof *r.places, compare);
    }
    for (size_t i = 0; i < r.count && !err; i++) {
        const struct place *p = &r.places[i];
        err = i == 0 || strcmp(p[-1].log, p->log) != 0 ? begin_log(&r, p) : KEDGE_OK;
        if (!err) {
            err = check_place(&r, p);
        }
    }
    if (!err && proofs != r.count) {
        err = kedgei_ex_wrong(c, "proofs", "there are proofs without entries");
    }
    if (!err) {
        err = list_entries(c, r.count);
    }
    kedge_mainbook_deinit(&r.main);
    kedge_keybook_deinit(&r.book);
    kedge_mem_free(r.places);
    kedge_mem_free(r.st);
    kedge_mem_free(r.parts);
    return err;
}
