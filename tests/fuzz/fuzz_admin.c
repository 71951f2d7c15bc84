/* Any bytes as an operator's request, its arguments read as every verb reads them: an error that says what is
 * wrong, or names, texts and numbers within their bounds. */
#include <jansson.h>
#include <string.h>

#include "chain/statement/statement.h"
#include "common/base/limits.h"
#include "common/base/mem.h"
#include "common/wire/token.h"
#include "coordinator/daemon/admin/admin_args.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void try_submit(const json_t *args)
{
    struct kedge_admin_submit a;
    struct kedge_diag d = {.text = ""};
    if (kedge_admin_submit_args(args, &a, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0]);
        return;
    }
    KEDGE_ASSERT(a.spec && (!a.token || (a.token[0] && strlen(a.token) <= KEDGE_ADMIN_TOKEN_MAX)));
}

static void try_token(const json_t *args)
{
    struct kedge_admin_token a;
    struct kedge_diag d = {.text = ""};
    if (kedge_admin_token_args(args, &a, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0]);
        return;
    }
    KEDGE_ASSERT(kedge_id_is_valid(kedge_view_str(a.tenant.s))
                 && kedge_id_is_valid(kedge_view_str(a.site.s)));
    KEDGE_ASSERT(!a.address || strlen(a.address) <= KEDGE_TOKEN_ADDRESS_MAX);
    KEDGE_ASSERT(a.ttl_s >= 1 && a.ttl_s <= KEDGE_ADMIN_TTL_MAX_S);
}

static void try_signed(const json_t *args)
{
    struct kedge_admin_signed a;
    struct kedge_diag d = {.text = ""};
    if (kedge_admin_signed_args(args, &a, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0]);
        return;
    }
    KEDGE_ASSERT(a.envelope.len >= 1 && a.envelope.len <= KEDGE_ENTRY_MAX
                 && a.envelope.ptr[a.envelope.len] == 0);
    d.text[0] = '\0';
    static const struct kedge_public_key another; /* deployment than any that a statement names */
    int err = kedge_admin_check_key(&a, &another, &d);
    KEDGE_ASSERT((err == KEDGE_E_POSITION || err == KEDGE_E_DENIED) && d.text[0]);
}

static void try_reader(const json_t *args)
{
    struct kedge_admin_reader a;
    struct kedge_diag d = {.text = ""};
    if (kedge_admin_reader_args(args, &a, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0]);
        return;
    }
    KEDGE_ASSERT(a.auditor != kedge_id_is_valid(kedge_view_str(a.tenant.s)));
    KEDGE_ASSERT(!a.name.s[0] || kedge_id_is_valid(kedge_view_str(a.name.s)));
    KEDGE_ASSERT(a.ttl_s >= 1 && a.ttl_s <= KEDGE_ADMIN_READER_TTL_MAX_S);
}

static void try_rest(const json_t *args)
{
    struct kedge_admin_filter filter;
    struct kedge_diag d = {.text = ""};
    struct kedge_id job;
    struct kedge_admin_role role;
    struct kedge_admin_viewer viewer;
    struct kedge_admin_quorum quorum = {.quorum = 0};
    struct kedge_admin_rotate rotate;
    struct kedge_view envelope;
    uint32_t round;
    KEDGE_ASSERT(kedge_admin_filter_args(args, &filter, &d) == KEDGE_OK || d.text[0]);
    d.text[0] = '\0';
    KEDGE_ASSERT(kedge_admin_viewer_args(args, true, &viewer, &d) == KEDGE_OK || d.text[0]);
    d.text[0] = '\0';
    KEDGE_ASSERT(kedge_admin_role_args(args, true, &role, &d) == KEDGE_OK || d.text[0]);
    d.text[0] = '\0';
    KEDGE_ASSERT(kedge_admin_role_args(args, false, &role, &d) == KEDGE_OK || d.text[0]);
    d.text[0] = '\0';
    KEDGE_ASSERT(kedge_admin_quorum_args(args, &quorum, &d) == KEDGE_OK || d.text[0]);
    KEDGE_ASSERT(quorum.quorum <= 14);
    d.text[0] = '\0';
    KEDGE_ASSERT(kedge_admin_rotate_args(args, &rotate, &d) == KEDGE_OK || d.text[0]);
    d.text[0] = '\0';
    KEDGE_ASSERT(kedge_admin_envelope_args(args, &envelope, &d) == KEDGE_OK || d.text[0]);
    d.text[0] = '\0';
    KEDGE_ASSERT(kedge_admin_from_round(args, &round, &d) == KEDGE_OK || d.text[0]);
    d.text[0] = '\0';
    struct kedge_admin_list list = {.limit = 1, .states = 1};
    KEDGE_ASSERT(kedge_admin_list_args(args, &list, &d) == KEDGE_OK || d.text[0]);
    KEDGE_ASSERT(list.limit >= 1 && list.limit <= KEDGE_ADMIN_LIST_MAX && list.states != 0);
    d.text[0] = '\0';
    struct kedge_admin_events events = {.limit = 1};
    KEDGE_ASSERT(kedge_admin_events_args(args, &events, &d) == KEDGE_OK || d.text[0]);
    KEDGE_ASSERT(events.limit >= 1 && events.limit <= KEDGE_ADMIN_EVENTS_MAX && events.from < UINT32_MAX);
    d.text[0] = '\0';
    struct kedge_admin_receipt receipt = {.key = NULL};
    KEDGE_ASSERT(kedge_admin_receipt_args(args, &receipt, &d) == KEDGE_OK || d.text[0]);
    KEDGE_ASSERT(!receipt.key || (receipt.key[0] && strlen(receipt.key) <= 200 && receipt.index == 0));
    const char *name = json_string_value(json_object_get(args, "job"));
    KEDGE_ASSERT(!name || kedge_id_from(kedge_view_str(name), &job) != KEDGE_OK || strcmp(job.s, name) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    json_t *args;
    const char *verb;
    struct kedge_diag d = {.text = ""};
    if (kedge_admin_open(kedge_view_of(data, len), &args, &verb, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0]);
        return 0;
    }
    KEDGE_ASSERT(verb == json_string_value(json_object_get(args, "verb")));
    try_submit(args);
    try_token(args);
    try_signed(args);
    try_reader(args);
    try_rest(args);
    json_decref(args);
    return 0;
}
