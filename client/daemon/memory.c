/* What survives a crash: SITE/memory, two slots that are written in turn. It holds all that was signed and
 * has no receipt yet, so that one durable write stands between signing and sending. */
#include <string.h>

#include "client/daemon/host.h"
#include "common/base/os/slots.h"

_Static_assert((int)KEDGE_STORED_TEXT_MAX <= (int)KEDGE_SLOT_CONTENT_MAX, "a memory fits its slot");

struct kedge_site_envelope *kedge_client_envelope_find(struct kedge_site_host *h,
                                                       const struct kedge_site_digest *digest)
{
    return kedge_envelope_find(h->envelopes, digest);
}

int kedge_client_memory_read(struct kedge_site_host *h, struct kedge_site_memory *ret, struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    struct kedge_diag wrong = {.text = ""};
    struct kedge_site_stored s = {.memory = {.enrolled = false}};
    int err = kedge_client_path(h, path, "memory");
    if (err) {
        return err;
    }
    if (kedge_file_exists(path)) {
        kedge_buf_init(&text, KEDGE_STORED_TEXT_MAX);
        err = kedge_slots_read(path, &text, &h->memory_sequence, d);
        if (!err && kedge_stored_decode(kedge_buf_view(&text), &s, &wrong) != KEDGE_OK) {
            err = kedge_diag_set(d, wrong.err == KEDGE_E_NOMEM ? wrong.err : KEDGE_E_CORRUPT,
                                 "%s: damaged (%.200s); move it away to forget unfinished results", path,
                                 wrong.text);
        }
        kedge_buf_deinit(&text);
    }
    if (!err) {
        *ret = h->written = s.memory;
        h->signeds = s.signeds;
        h->groupeds = s.groupeds;
        h->kept = s.kept;
        memcpy(h->envelopes, s.envelopes, sizeof h->envelopes);
    }
    return err;
}

/* A write of the memory costs a flush of the disk, so one that would only say that results were settled is
 * put off: the stored memory then names results that no longer wait, and after a kill they are submitted once
 * more, which the coordinator answers by the same receipt. It may be put off only if nothing would be lost:
 * every result, every shift that is still to be told and the enrolment must be in the file already. */
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
    for (uint32_t i = 0; i < memory->shift_count && all; i++) { /* what is still to be told */
        bool found = memory->shifts[i].answered;
        for (uint32_t k = 0; k < h->written.shift_count; k++) {
            const struct kedge_site_shift *has = &h->written.shifts[k];
            found = found || (!has->answered && kedge_id_eq(&has->job, &memory->shifts[i].job));
        }
        all = found;
    }
    return all;
}

/* Two slots, written in turn with a growing sequence number (common/base/os/slots.h): a power cut in the
 * middle of a write leaves the slot of the write before. The number grows only after a write that went well,
 * so a failed one is repeated in the same slot and never overwrites the good one. */
int kedge_client_memory_write(struct kedge_site_host *h, const struct kedge_site_memory *memory,
                              struct kedge_diag *d)
{
    char path[KEDGE_PATH_MAX];
    struct kedge_buf text;
    struct kedge_site_stored s = {
        .memory = *memory, .signeds = h->signeds, .groupeds = h->groupeds, .kept = h->kept};
    memcpy(s.envelopes, h->envelopes, sizeof s.envelopes); /* lent */
    kedge_buf_init(&text, KEDGE_STORED_TEXT_MAX);
    int err = kedge_client_path(h, path, "memory");
    if (!err) {
        err = kedge_stored_encode(&s, &text);
    }
    if (!err) {
        err = kedge_slots_write(path, h->memory_sequence + 1, kedge_buf_view(&text), d);
    }
    kedge_buf_deinit(&text);
    if (!err) {
        h->memory_sequence++;
        h->written = *memory;
        h->memory_is_behind = false;
    }
    return err && !d->text[0] ? kedge_diag_set(d, err, "memory: %s", kedge_strerror(err)) : err;
}
