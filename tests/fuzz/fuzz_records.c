/* Any bytes as a record of coordinator.lmdb: an error that names table and key, or a record with everything
 * in its range, which encodes to what decodes to the same. Input: table, length of the key, key, value. */
#include <string.h>

#include "chain/statement/statement.h"
#include "common/base/mem.h"
#include "coordinator/daemon/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_refused(int err, const struct kedge_diag *d, const char *table)
{
    KEDGE_ASSERT(err == KEDGE_E_CORRUPT && strstr(d->text, table) && strstr(d->text, "key \""));
    KEDGE_ASSERT(strlen(d->text) < sizeof d->text - 1); /* not cut */
}

static void try_token(struct kedge_view key, struct kedge_view value)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_token_record r, again;
    struct kedge_buf out;
    int err = kedge_token_record_decode(key, value, &r, &d);
    if (err) {
        check_refused(err, &d, "table token");
        return;
    }
    kedge_buf_init(&out, KEDGE_RECORD_MAX);
    KEDGE_ASSERT(r.expiry_s <= (uint64_t)1 << 53);
    KEDGE_ASSERT(kedge_id_is_valid(kedge_view_str(r.tenant.s))
                 && kedge_id_is_valid(kedge_view_str(r.site.s)));
    KEDGE_ASSERT(kedge_token_record_encode(&r, &out) == KEDGE_OK);
    KEDGE_ASSERT(kedge_token_record_decode(key, kedge_buf_view(&out), &again, &d) == KEDGE_OK);
    KEDGE_ASSERT(memcmp(&r, &again, sizeof r) == 0);
    kedge_buf_deinit(&out);
}

static void try_read_token(struct kedge_view key, struct kedge_view value)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_read_token_record r, again;
    struct kedge_buf out;
    int err = kedge_read_token_record_decode(key, value, &r, &d);
    if (err) {
        check_refused(err, &d, "table state");
        return;
    }
    kedge_buf_init(&out, KEDGE_RECORD_MAX);
    KEDGE_ASSERT(r.expiry_s <= (uint64_t)1 << 53 && kedge_id_is_valid(kedge_view_str(r.name.s)));
    KEDGE_ASSERT(r.auditor != kedge_id_is_valid(kedge_view_str(r.tenant.s)));
    KEDGE_ASSERT(kedge_read_token_record_encode(&r, &out) == KEDGE_OK);
    KEDGE_ASSERT(kedge_read_token_record_decode(key, kedge_buf_view(&out), &again, &d) == KEDGE_OK);
    KEDGE_ASSERT(memcmp(&r, &again, sizeof r) == 0);
    kedge_buf_deinit(&out);
}

static void try_job(struct kedge_view key, struct kedge_view value)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_job_record r, again;
    struct kedge_buf out;
    int err = kedge_job_record_decode(key, value, &r, &d);
    if (err) {
        check_refused(err, &d, "table job");
        return;
    }
    kedge_buf_init(&out, KEDGE_RECORD_MAX);
    KEDGE_ASSERT(kedge_view_eq(key, kedge_view_str(r.job.s)) && kedge_id_is_valid(key));
    KEDGE_ASSERT(r.state <= KEDGE_JOB_CANCELLED && r.reason <= 0 && r.created_ms <= (uint64_t)1 << 53);
    KEDGE_ASSERT(strlen(r.token) == 0 || strlen(r.token) == KEDGE_HASH_HEX_LEN);
    KEDGE_ASSERT(kedge_job_record_encode(&r, &out) == KEDGE_OK);
    KEDGE_ASSERT(kedge_job_record_decode(key, kedge_buf_view(&out), &again, &d) == KEDGE_OK);
    KEDGE_ASSERT(memcmp(&r, &again, sizeof r) == 0);
    kedge_buf_deinit(&out);
}

static void try_refusal(struct kedge_view key, struct kedge_view value)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_refusal_record r;
    struct kedge_buf out_key, out;
    int err = kedge_refusal_record_decode(key, value, &r, &d);
    if (err) {
        check_refused(err, &d, "table round");
        return;
    }
    KEDGE_ASSERT(r.round <= KEDGE_ROUNDS_MAX && r.weight <= KEDGE_ST_COUNT_MAX);
    KEDGE_ASSERT(r.kind == KEDGE_TASK_PRETRAIN || r.kind == KEDGE_TASK_TRAIN);
    KEDGE_ASSERT(kedge_err_class(r.err) == KEDGE_CLASS_REJECT);
    kedge_buf_init(&out_key, KEDGE_RECORD_KEY_MAX);
    kedge_buf_init(&out, KEDGE_RECORD_MAX);
    kedge_refusal_record_encode(&r, &out_key, &out); /* one encoding each */
    KEDGE_ASSERT(kedge_view_eq(key, kedge_buf_view(&out_key)) && kedge_view_eq(value, kedge_buf_view(&out)));
    kedge_buf_deinit(&out_key);
    kedge_buf_deinit(&out);
}

static void try_seen(struct kedge_view key, struct kedge_view value)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_seen_record r;
    int err = kedge_seen_record_decode(key, value, &r, &d);
    if (err) {
        check_refused(err, &d, "table state");
        return;
    }
    KEDGE_ASSERT(r.ms > 0 && r.ms <= (uint64_t)1 << 53 && value.len == 8);
}

static void try_job_token(struct kedge_view key, struct kedge_view value)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_id job;
    int err = kedge_job_token_decode(key, value, &job, &d);
    if (err) {
        check_refused(err, &d, "table state");
        return;
    }
    KEDGE_ASSERT(kedge_view_eq(value, kedge_view_str(job.s)) && kedge_id_is_valid(value));
}

static void try_move(struct kedge_view key, struct kedge_view value)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_job_move m;
    struct kedge_buf out_key, out;
    int err = kedge_job_move_decode(key, value, &m, &d);
    if (err) {
        check_refused(err, &d, "table state");
        return;
    }
    KEDGE_ASSERT(kedge_job_state_allows(m.from, m.to) && m.cause < KEDGE_CAUSE_COUNT && m.epoch >= 1);
    KEDGE_ASSERT(kedge_text_is_plain(kedge_view_str(m.actor)) && m.actor[0]);
    kedge_buf_init(&out_key, KEDGE_RECORD_KEY_MAX);
    kedge_buf_init(&out, KEDGE_RECORD_MAX);
    kedge_job_move_encode(&m, &out_key, &out); /* one encoding each */
    KEDGE_ASSERT(kedge_view_eq(key, kedge_buf_view(&out_key)) && kedge_view_eq(value, kedge_buf_view(&out)));
    kedge_buf_deinit(&out_key);
    kedge_buf_deinit(&out);
}

static void try_viewer(struct kedge_view key, struct kedge_view value)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_viewer_record r, again;
    struct kedge_buf out_key, out;
    int err = kedge_viewer_record_decode(key, value, &r, &d);
    if (err) {
        check_refused(err, &d, "table state");
        return;
    }
    kedge_buf_init(&out_key, KEDGE_RECORD_KEY_MAX);
    kedge_buf_init(&out, KEDGE_RECORD_MAX);
    KEDGE_ASSERT(kedge_viewer_record_encode(&r, &out_key, &out) == KEDGE_OK);
    KEDGE_ASSERT(kedge_view_eq(key, kedge_buf_view(&out_key)));
    KEDGE_ASSERT(kedge_viewer_record_decode(key, kedge_buf_view(&out), &again, &d) == KEDGE_OK);
    KEDGE_ASSERT(memcmp(&r, &again, sizeof r) == 0);
    kedge_buf_deinit(&out_key);
    kedge_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static void (*const tables[])(struct kedge_view key, struct kedge_view value) = {
        try_token, try_job, try_refusal, try_read_token, try_seen, try_job_token, try_move, try_viewer};
    if (len < 2 || len - 2 < data[1]) {
        return 0;
    }
    struct kedge_view key = kedge_view_of(data + 2, data[1]);
    tables[data[0] % (sizeof tables / sizeof tables[0])](
        key, kedge_view_of(data + 2 + key.len, len - 2 - key.len));
    return 0;
}
