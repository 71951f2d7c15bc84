/* What survives a crash: SITE/memory.json, replaced atomically. */
#include <stdlib.h>
#include <string.h>

#include "client/daemon/host.h"
#include "crypto/sign.h"

enum { MEMORY_MAX = 16384 };

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
    for (size_t i = 0; ok && i < json_array_size(results); i++) {
        ok = get_result(json_array_get(results, i), &ret->results[ret->result_count++]);
    }
    json_decref(o);
    kedge_buf_deinit(&text);
    if (!err && !ok) {
        err = kedge_diag_set(d, KEDGE_E_CORRUPT, "%s: damaged; move it away to forget unfinished results",
                             path);
    }
    return err;
}

int kedge_client_memory_write(struct kedge_site_host *h, const struct kedge_site_memory *memory,
                              struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    json_t *results = json_array();
    for (uint32_t i = 0; i < memory->result_count; i++) {
        const struct kedge_site_result *r = &memory->results[i];
        json_array_append_new(results,
                              json_pack("{s:s,s:i,s:i,s:I,s:I,s:o,s:o,s:o}", "job", r->job.s, "kind",
                                        (int)r->kind, "round", (int)r->round, "group", (json_int_t)r->group,
                                        "update_len", (json_int_t)r->update_len, "base", hex(&r->base),
                                        "update", hex(&r->update), "envelope", hex(&r->envelope)));
    }
    json_t *o = json_pack("{s:b,s:o}", "enrolled", (int)memory->enrolled, "results", results);
    char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    json_decref(o);
    int err = text ? kedge_client_path(h, path, "memory.json") : KEDGE_E_NOMEM;
    err = err ? err : kedge_file_write(path, kedge_view_str(text), 0600, d);
    free(text);
    return err;
}
