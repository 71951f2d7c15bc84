/* What an explanation is written with. */
#include "chain/audit/explain/explain_impl.h"
#include "common/json/json.h"

void kedgei_json_set(json_t *o, const char *name, json_t *value, bool *nomem)
{
    if (json_object_set_new(o, name, value) != 0) {
        *nomem = true;
    }
}

json_t *kedgei_json_hash(const struct kedge_hash *h)
{
    return kedgei_json_hex(h->b, sizeof h->b);
}

json_t *kedgei_json_source(const struct kedgei_log *log, const struct kedgei_fact *fact)
{
    bool nomem = false;
    json_t *o = json_object();
    kedgei_json_set(o, "log", json_string(log->name), &nomem);
    kedgei_json_set(o, "index", json_integer((json_int_t)fact->index), &nomem);
    if (fact->has_key) {
        struct kedge_hash id;
        kedge_public_key_hash(&fact->key, &id);
        kedgei_json_set(o, "key", kedgei_json_hash(&id), &nomem);
    }
    if (nomem) {
        json_decref(o);
        return NULL;
    }
    return o;
}
