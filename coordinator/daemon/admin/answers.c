/* What verbs of operators answer, and how much of it the asker may see. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/daemon/admin/admin.h"
#include "coordinator/daemon/host.h"

/* Verbs that can answer much come in pages, so an answer beyond the bound comes of a question that
 * asked for too much. */
void kedge_admin_ok(struct kedge_net_request *req, json_t *data)
{
    char *text = json_dumps(data, JSON_COMPACT);
    json_decref(data);
    if (!text || strlen(text) > KEDGE_ADMIN_JSON_MAX) {
        kedge_host_reply_error(req, KEDGE_E_TOO_LONG, 0, "the answer is too long; ask for less");
    } else {
        struct kedge_msg msg = {.type = KEDGE_MSG_ADMIN_OK};
        msg.u.admin_ok.json = kedge_view_str(text);
        kedge_host_reply(req, &msg);
    }
    free(text);
}

void kedge_admin_error(struct kedge_net_request *req, int err, const struct kedge_diag *d)
{
    kedge_host_reply_error(req, err, 0, d && d->text[0] ? d->text : kedge_strerror(err));
}

void kedge_admin_answer(struct kedge_net_request *req, int err, const struct kedge_diag *d, json_t *data)
{
    if (err) {
        json_decref(data);
        kedge_admin_error(req, err, d);
    } else {
        kedge_admin_ok(req, data);
    }
}

bool kedge_admin_sees_texts(const struct kedge_host *h, const struct kedge_net_request *req)
{
    /* what auditors may not ask: they read records, and these texts are in none */
    const struct kedge_net_peer *peer = kedge_net_request_peer(req);
    return kedge_host_may_ask(h, peer, "job.cancel") || kedge_host_is_of_tenant(h, peer);
}
