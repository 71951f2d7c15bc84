/* What survives a crash: SITE/memory.json, replaced atomically. It holds all that was signed and has no
 * receipt yet, so that one durable write stands between signing and sending. */
#include <stdlib.h>
#include <string.h>

#include "client/daemon/host.h"
#include "common/base/mem.h"
#include "crypto/sign.h"

enum {
    MEMORY_MAX = 16384 + 2 * KEDGE_SITE_RESULTS_MAX * KEDGE_ENTRY_MAX
}; /* JSON within JSON: quotes double */

void kedge_client_envelope_free(struct kedge_site_envelope *e)
{
    kedge_mem_free(e->text);
    *e = (struct kedge_site_envelope){.text = NULL};
}

struct kedge_site_envelope *kedge_client_envelope_find(struct kedge_site_host *h,
                                                       const struct kedge_site_digest *digest)
{
    for (size_t i = 0; i < KEDGE_SITE_RESULTS_MAX; i++) {
        struct kedge_site_envelope *e = &h->envelopes[i];
        if (e->text && memcmp(e->digest.b, digest->b, sizeof digest->b) == 0) {
            return e;
        }
    }
    return NULL;
}

static json_t *hex(const struct kedge_site_digest *d)
{
    char text[2 * sizeof d->b + 1];
    kedge_hex_encode(d->b, sizeof d->b, text);
    return json_string(text);
}

static bool get_hex(const json_t *o, const char *key, struct kedge_site_digest *ret)
{
    const char *text = json_string_value(json_object_get(o, key));
    return text && kedge_hex_decode(kedge_view_str(text), ret->b, sizeof ret->b) == KEDGE_OK;
}

static bool get_result(const json_t *o, struct kedge_site_result *r)
{
    const char *job = json_string_value(json_object_get(o, "job"));
    r->kind = (enum kedge_site_kind)json_integer_value(json_object_get(o, "kind"));
    r->round = (uint32_t)json_integer_value(json_object_get(o, "round"));
    r->group = (uint32_t)json_integer_value(json_object_get(o, "group"));
    r->update_len = (uint64_t)json_integer_value(json_object_get(o, "update_len"));
    return job && kedge_id_from(kedge_view_str(job), &r->job) == KEDGE_OK && get_hex(o, "base", &r->base)
           && get_hex(o, "update", &r->update) && get_hex(o, "envelope", &r->envelope);
}

/* The text must be what the digest says: it is sent as it stands. */
static bool get_envelope(const json_t *o, const struct kedge_site_digest *digest,
                         struct kedge_site_envelope *ret)
{
    const json_t *text = json_object_get(o, "signed");
    size_t len = json_string_length(text);
    struct kedge_hash hash;
    char *copy = len > 0 && len <= KEDGE_ENTRY_MAX ? kedge_mem_new(len + 1, 1) : NULL;
    if (!copy) {
        return false;
    }
    memcpy(copy, json_string_value(text), len);
    *ret = (struct kedge_site_envelope){*digest, copy, len};
    kedge_sha256(kedge_view_of(copy, len), &hash);
    return memcmp(hash.b, digest->b, sizeof hash.b) == 0;
}

static bool get_signed(const json_t *o, struct kedge_site_signed *ret)
{
    const char *job = json_string_value(json_object_get(o, "job"));
    *ret = (struct kedge_site_signed){.any = o != NULL};
    ret->kind = (enum kedge_site_kind)json_integer_value(json_object_get(o, "kind"));
    ret->round = (uint32_t)json_integer_value(json_object_get(o, "round"));
    return !o || (job && kedge_id_from(kedge_view_str(job), &ret->job) == KEDGE_OK);
}

int kedge_client_memory_read(struct kedge_site_host *h, struct kedge_site_memory *ret, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    json_error_t at;
    *ret = (struct kedge_site_memory){.enrolled = false};
    kedge_buf_init(&text, MEMORY_MAX);
    int err = kedge_client_path(h, path, "memory.json");
    if (err || !kedge_file_exists(path)) {
        return err;
    }
    err = kedge_file_read(path, &text, d);
    json_t *o = err ? NULL : json_loadb((const char *)text.ptr, text.len, JSON_REJECT_DUPLICATES, &at);
    const json_t *results = json_object_get(o, "results");
    bool ok = json_is_object(o) && json_array_size(results) <= KEDGE_SITE_RESULTS_MAX;
    ret->enrolled = json_is_true(json_object_get(o, "enrolled"));
    ok = ok && get_signed(json_object_get(o, "last_signed"), &h->last_signed);
    for (size_t i = 0; ok && i < json_array_size(results); i++) {
        struct kedge_site_result *r = &ret->results[ret->result_count++];
        const json_t *row = json_array_get(results, i);
        ok = get_result(row, r) && get_envelope(row, &r->envelope, &h->envelopes[i]);
    }
    h->written = *ret;
    json_decref(o);
    kedge_buf_deinit(&text);
    if (!err && !ok) {
        err = kedge_diag_set(d, KEDGE_E_CORRUPT, "%s: damaged; move it away to forget unfinished results",
                             path);
    }
    return err;
}

bool kedge_client_memory_covers(const struct kedge_site_host *h, const struct kedge_site_memory *memory)
{
    bool all = memory->enrolled == h->written.enrolled;
    for (uint32_t i = 0; i < memory->result_count && all; i++) {
        bool found = false;
        for (uint32_t k = 0; k < h->written.result_count; k++) {
            const struct kedge_site_digest *has = &h->written.results[k].envelope;
            found = found || memcmp(has->b, memory->results[i].envelope.b, sizeof has->b) == 0;
        }
        all = found;
    }
    return all;
}

static json_t *result_json(struct kedge_site_host *h, const struct kedge_site_result *r)
{
    const struct kedge_site_envelope *e = kedge_client_envelope_find(h, &r->envelope);
    return e ? json_pack("{s:s,s:i,s:i,s:I,s:I,s:o,s:o,s:o,s:s%}", "job", r->job.s, "kind", (int)r->kind,
                         "round", (int)r->round, "group", (json_int_t)r->group, "update_len",
                         (json_int_t)r->update_len, "base", hex(&r->base), "update", hex(&r->update),
                         "envelope", hex(&r->envelope), "signed", e->text, e->len)
             : NULL;
}

int kedge_client_memory_write(struct kedge_site_host *h, const struct kedge_site_memory *memory,
                              struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    json_t *results = json_array();
    int err = results ? KEDGE_OK : KEDGE_E_NOMEM;
    for (uint32_t i = 0; i < memory->result_count && !err; i++) {
        err = json_array_append_new(results, result_json(h, &memory->results[i])) ? KEDGE_E_NOMEM : KEDGE_OK;
    }
    json_t *o = json_pack("{s:b,s:o}", "enrolled", (int)memory->enrolled, "results", results);
    const struct kedge_site_signed *last = &h->last_signed;
    if (o && last->any) {
        json_object_set_new(o, "last_signed",
                            json_pack("{s:s,s:i,s:i}", "job", last->job.s, "kind", (int)last->kind, "round",
                                      (int)last->round));
    }
    char *text = o && !err ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    err = text ? kedge_client_path(h, path, "memory.json") : KEDGE_E_NOMEM;
    err = err ? err : kedge_file_write(path, kedge_view_str(text), 0600, d);
    free(text);
    if (!err) {
        h->written = *memory;
        h->memory_is_behind = false;
    }
    return err && !d->text[0] ? kedge_diag_set(d, err, "memory.json: %s", kedge_strerror(err)) : err;
}
