/* Any bytes as a site's memory: an error that says what is wrong, or a memory within the ranges that the
 * core takes, with the envelopes that its digests name, which can be written and read again. */
#include <string.h>

#include "client/daemon/stored.h"
#include "common/base/mem.h"
#include "crypto/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct kedge_site_stored *s)
{
    KEDGE_ASSERT(s->memory.result_count <= KEDGE_SITE_STORED_MAX);
    for (uint32_t i = 0; i < s->memory.result_count; i++) {
        const struct kedge_site_result *r = &s->memory.results[i];
        struct kedge_hash hash;
        KEDGE_ASSERT(kedge_id_is_valid(kedge_view_str(r->job.s)));
        KEDGE_ASSERT(r->kind >= KEDGE_SITE_PRETRAIN && r->kind <= KEDGE_SITE_EVALUATE);
        KEDGE_ASSERT(r->work < KEDGE_SITE_WORKS_MAX);
        KEDGE_ASSERT(r->round <= KEDGE_ROUNDS_MAX && r->group < KEDGE_GROUPS_MAX);
        kedge_sha256(kedge_view_of(s->envelopes[i].text, s->envelopes[i].len), &hash);
        KEDGE_ASSERT(memcmp(hash.b, r->envelope.b, sizeof hash.b) == 0);
    }
    KEDGE_ASSERT(s->signeds.count <= KEDGE_SIGNEDS_MAX);
    for (uint32_t i = 0; i < s->signeds.count; i++) {
        const struct kedge_site_signed *row = &s->signeds.items[i];
        KEDGE_ASSERT(row->kind == KEDGE_SITE_PRETRAIN || row->kind == KEDGE_SITE_TRAIN);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_site_stored s, again;
    struct kedge_diag d = {.text = ""};
    struct kedge_buf text, same;
    if (kedge_stored_decode(kedge_view_of(data, len), &s, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0] != '\0');
        return 0;
    }
    check(&s);
    kedge_buf_init(&text, KEDGE_STORED_TEXT_MAX);
    kedge_buf_init(&same, KEDGE_STORED_TEXT_MAX);
    KEDGE_ASSERT(kedge_stored_encode(&s, &text) == KEDGE_OK);
    KEDGE_ASSERT(kedge_stored_decode(kedge_buf_view(&text), &again, &d) == KEDGE_OK);
    check(&again);
    KEDGE_ASSERT(kedge_stored_encode(&again, &same) == KEDGE_OK);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&text), kedge_buf_view(&same)));
    kedge_buf_deinit(&text);
    kedge_buf_deinit(&same);
    kedge_stored_deinit(&s);
    kedge_stored_deinit(&again);
    return 0;
}
