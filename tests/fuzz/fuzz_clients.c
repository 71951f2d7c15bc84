/* Any bytes as clients' data: CSV with a column of clients, npz with an array of them, LEAF's JSON, by
 * options that the first byte chooses: no crash; what reads has labels, clients, groups and steps in range,
 * finite features but for those that may be missing, plain names, and can be dealt out and scaled or is
 * refused. */
#include <math.h>
#include <string.h>

#include "common/base/text.h"
#include "sim/partition/clients_impl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct kedge_clients *c, const struct kedge_clients_source *s)
{
    KEDGE_ASSERT(c->n > 0 && c->features > 0 && c->classes > 0 && c->count > 0 && c->steps > 0);
    KEDGE_ASSERT(c->count <= KEDGE_CLIENTS_MAX && c->steps <= KEDGE_CLIENTS_STEPS_MAX);
    for (uint32_t i = 0; i < c->n; i++) {
        KEDGE_ASSERT(c->client[i] < c->count && c->step[i] < c->steps);
        KEDGE_ASSERT(c->labels[i] >= 0 && (uint32_t)c->labels[i] < c->classes);
    }
    for (size_t k = 0; k < (size_t)c->n * c->features; k++) {
        KEDGE_ASSERT(isfinite(c->x[k]) || (isnan(c->x[k]) && s->missing == KEDGE_CSV_MISSING_MEAN));
    }
    for (uint32_t u = 0; u < c->count; u++) {
        KEDGE_ASSERT(strlen(c->names[u]) <= KEDGE_CLIENTS_NAME_MAX);
        KEDGE_ASSERT(c->names[u][0] != '\0' && kedge_text_is_plain(kedge_view_str(c->names[u])));
        KEDGE_ASSERT(!c->truth || c->truth[u] < c->true_count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static kedgei_clients_read_fn *const readers[] = {kedgei_clients_csv, kedgei_clients_npz,
                                                      kedgei_clients_leaf, kedgei_clients_csv};
    struct kedge_diag diag = {.text = ""};
    struct kedge_clients c;
    struct kedge_partition p;
    if (size < 1) {
        return 0;
    }
    uint8_t a = data[0];
    const struct kedge_clients_source s = {.path = "",
                                           .client = a & 4 ? "who" : "",
                                           .label = a & 8 ? "label" : "",
                                           .group = a & 16 ? "group" : "",
                                           .step = a & 32 ? "step" : "",
                                           .truth = "",
                                           .missing = (enum kedge_csv_missing)((a >> 6) % 3)};
    int err = kedgei_clients_parse(&s, readers[a & 3], kedge_view_of(data + 1, size - 1), &c, &diag);
    if (err != KEDGE_OK) {
        KEDGE_ASSERT(err < 0 && diag.text[0] != '\0');
        return 0;
    }
    check(&c, &s);
    if (kedge_clients_deal(&c, 0, a, &p, &diag) == KEDGE_OK) {
        bool fill = s.missing == KEDGE_CSV_MISSING_MEAN;
        err = kedge_clients_prepare(&c, &p, fill, true, &diag);
        KEDGE_ASSERT(err == KEDGE_OK || diag.text[0] != '\0');
        for (size_t k = 0; k < (size_t)c.n * c.features && err == KEDGE_OK && c.steps == 1; k++) {
            KEDGE_ASSERT(isfinite(c.x[k]));
        }
        kedge_partition_deinit(&p);
    }
    kedge_clients_deinit(&c);
    return 0;
}
