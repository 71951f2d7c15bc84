/* status.json as its owner's command reads it: any text is refused with words, or told in bounded ones. */
#include <jansson.h>

#include "client/daemon/idle.h"
#include "client/daemon/status.h"
#include "common/base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_idle_rules rules;
    struct kedge_idle_ticks ticks;
    struct kedge_buf said;
    json_t *o = NULL;
    (void)kedge_idle_read_ticks(kedge_view_of(data, len), &ticks);
    if (kedge_status_decode(kedge_view_of(data, len), "status.json", &o, &d) != KEDGE_OK) {
        KEDGE_ASSERT(d.text[0]);
        return 0;
    }
    kedge_buf_init(&said, 65536);
    int err = kedge_status_tell(o, len % 2 == 0, 1, &said);
    KEDGE_ASSERT(err == KEDGE_OK || err == KEDGE_E_TOO_LONG || err == KEDGE_E_NOMEM);
    err = kedge_idle_parse(json_object_get(o, "idle"), "policy.json", &rules, &d);
    KEDGE_ASSERT(err == KEDGE_OK || d.text[0]);
    kedge_buf_deinit(&said);
    json_decref(o);
    return 0;
}
