/* Witnesses come and go as their tenants' ledgers say; and what is told of them. */
#include <inttypes.h>
#include <jansson.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/try.h"
#include "coordinator/daemon/sites/known.h"
#include "coordinator/daemon/witness/witness_impl.h"

enum { WITNESS_HERE_MS = 60000 };

/* A place for a new row: one that is revoked is given up. */
static struct kedgei_witness *free_row(struct kedge_witnesses *w)
{
    for (uint32_t i = 0; i < w->count; i++) {
        if (!w->rows[i].active) {
            return &w->rows[i];
        }
    }
    bool fits = w->count < KEDGE_HOST_WITNESSES_MAX
                && kedge_mem_grow(&w->rows, &w->room, w->count, 16, sizeof *w->rows);
    return fits ? &w->rows[w->count++] : NULL;
}

/* The bounds are per tenant and for all. Without the first, one tenant could take all places; a
 * note has room for a bounded number of lines. */
int kedge_host_witness_check(const struct kedge_host *h, uint32_t tenant,
                             const struct kedge_public_key *tls_key)
{
    uint32_t all = 0, own = 0;
    for (uint32_t i = 0; i < h->witnesses->count; i++) {
        const struct kedgei_witness *w = &h->witnesses->rows[i];
        all += w->active;
        own += w->active && w->tenant == tenant;
        if (w->active && kedge_public_key_eq(&w->tls_key, tls_key)) {
            return KEDGE_E_EXISTS;
        }
    }
    if (kedge_host_site_by_key(h, tls_key) != KEDGE_COORD_NONE) {
        return KEDGE_E_EXISTS;
    }
    return own >= KEDGE_TENANT_WITNESSES_MAX || all >= KEDGE_HOST_WITNESSES_MAX ? KEDGE_E_FULL : KEDGE_OK;
}

/* By name and key together: a policy names both, and a key under another name signs another line of
 * the note (the key's id is a hash over both). */
static bool is_in_policy(const struct kedge_witness_policy *policy, const struct kedge_vkey *vkey)
{
    for (uint32_t i = 0; policy && i < policy->witness_count; i++) {
        const struct kedge_vkey *known = &policy->witnesses[i].vkey;
        if (policy->witnesses[i].is_supported && strcmp(known->name, vkey->name) == 0
            && kedge_public_key_eq(&known->key, &vkey->key)) {
            return true;
        }
    }
    return false;
}

int kedge_host_witness_add(struct kedge_host *h, uint32_t tenant, const struct kedge_st_witness_enrolled *st)
{
    struct kedge_witnesses *w = h->witnesses;
    struct kedgei_witness row = {.tenant = tenant, .id = st->witness, .tls_key = st->tls_key, .active = true};
    KEDGE_TRY(kedge_host_witness_check(h, tenant, &st->tls_key));
    KEDGE_TRY(kedge_vkey_make(kedge_view_str(st->name), KEDGE_KEY_COSIGNATURE, &st->cosign_key, &row.vkey));
    struct kedgei_witness *place = free_row(w);
    if (!place) {
        return KEDGE_E_FULL;
    }
    row.in_policy = is_in_policy(w->policy, &row.vkey);
    *place = row;
    kedge_host_known_refresh(h);
    return KEDGE_OK;
}

void kedge_host_witness_revoke(struct kedge_host *h, uint32_t witness)
{
    h->witnesses->rows[witness].active = false;
    kedge_host_known_refresh(h);
}

/* Without a quorum everything is final that stands in the chain: no policy asks for more. */
uint64_t kedge_host_final_size(const struct kedge_host *h)
{
    return h->witnesses->has_quorum ? h->witnesses->final_size : kedge_ledger_size(h->main.ledger);
}

void kedge_host_final_note(const struct kedge_host *h, struct kedge_buf *out)
{
    kedge_buf_put(out, h->witnesses->final_note.ptr, h->witnesses->final_note.len);
}

void kedge_host_witness_policy(const struct kedge_host *h, struct kedge_buf *out)
{
    if (h->witnesses->policy) {
        kedge_witness_policy_encode(h->witnesses->policy, out);
    }
}

/* For people who wait for a release: who has cosigned how far. */
void kedge_host_witness_tell(const struct kedge_host *h, struct kedge_buf *out)
{
    const char *between = "";
    for (uint32_t i = 0; i < h->witnesses->count; i++) {
        const struct kedgei_witness *w = &h->witnesses->rows[i];
        if (w->active) {
            kedge_buf_printf(out, "%s%s of %s %" PRIu64, between, w->id.s, h->tenants[w->tenant].id.s,
                             w->main_size);
            between = ", ";
        }
    }
    const struct kedge_witness_policy *policy = h->witnesses->policy;
    for (uint32_t i = 0; policy && i < policy->witness_count; i++) {
        if (policy->witnesses[i].url.len > 0) {
            char name[KEDGE_WITNESS_SHOWN_MAX];
            kedge_buf_printf(out, "%s%s elsewhere %" PRIu64, between,
                             kedge_witness_name_show(policy->witnesses[i].name, name),
                             h->witnesses->outside_size[i]);
            between = ", ";
        }
    }
    if (!between[0]) {
        kedge_buf_put_str(out, "there are none");
    }
}

bool kedge_host_witness_presence(const struct kedge_host *h, uint32_t witness, uint32_t *ret_tenant,
                                 struct kedge_id *ret_id)
{
    const struct kedgei_witness *w = &h->witnesses->rows[witness];
    const uint64_t rhythm_ms = 2 * (w->every_ns / 1000000), now_ms = kedge_os_unix_ms();
    *ret_tenant = w->tenant;
    *ret_id = w->id;
    return w->active && w->last_seen_ms > 0
           && now_ms < w->last_seen_ms + (rhythm_ms > WITNESS_HERE_MS ? rhythm_ms : WITNESS_HERE_MS);
}

/* Those of the policy that are asked over HTTP (kedge witness push). */
static void outside_rows(const struct kedge_host *h, json_t *list)
{
    const struct kedge_witness_policy *policy = h->witnesses->policy;
    for (uint32_t i = 0; policy && i < policy->witness_count; i++) {
        const struct kedge_witness *w = &policy->witnesses[i];
        char name[KEDGE_WITNESS_SHOWN_MAX];
        if (w->url.len > 0) {
            json_array_append_new(
                list, json_pack("{s:s,s:s,s:s,s:I,s:I,s:s%}", "tenant", "-", "witness",
                                kedge_witness_name_show(w->name, name), "state", "elsewhere", "main_size",
                                (json_int_t)h->witnesses->outside_size[i], "own_size", (json_int_t)0, "vkey",
                                (const char *)w->vkey_text.ptr, w->vkey_text.len));
        }
    }
}

void kedge_host_witness_rows(const struct kedge_host *h, json_t *list)
{
    outside_rows(h, list);
    for (uint32_t i = 0; i < h->witnesses->count; i++) {
        const struct kedgei_witness *w = &h->witnesses->rows[i];
        char tls[2 * KEDGE_KEY_LEN + 1], cosign_key[2 * KEDGE_KEY_LEN + 1];
        struct kedge_buf vkey;
        kedge_buf_init(&vkey, KEDGE_VKEY_MAX + 1);
        kedge_vkey_encode(&w->vkey, &vkey);
        kedge_hex_encode(w->tls_key.b, KEDGE_KEY_LEN, tls);
        kedge_hex_encode(w->vkey.key.b, KEDGE_KEY_LEN, cosign_key);
        json_array_append_new(
            list, json_pack("{s:s,s:s,s:s,s:I,s:I,s:I,s:s,s:s,s:s%}", "tenant", h->tenants[w->tenant].id.s,
                            "witness", w->id.s, "state", w->active ? "active" : "revoked", "last_seen_ms",
                            (json_int_t)w->last_seen_ms, "main_size", (json_int_t)w->main_size, "own_size",
                            (json_int_t)w->own_size, "tls_key", tls, "cosign_key", cosign_key, "vkey",
                            (const char *)vkey.ptr, vkey.len));
        kedge_buf_deinit(&vkey);
    }
}
