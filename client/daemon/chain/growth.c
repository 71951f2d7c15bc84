/* What an answer proves of the main chain: that it is signed, grew out of what this site has seen (RFC 6962
 * §2.1.2), and, where the owner's trust file has a witness policy, that the federation's witnesses stand
 * behind it. On the threads of calls. */
#include <inttypes.h>
#include <string.h>

#include "chain/log/merkle.h"
#include "chain/log/witness_quorum.h"
#include "client/daemon/host.h"
#include "common/base/mem.h"
#include "common/base/os/clock.h"
#include "common/base/os/log.h"
#include "common/base/try.h"

/* Whether the tree of `to` contains that of `from`. */
static bool grew(const struct kedge_site_chain *from, const struct kedge_site_chain *to,
                 struct kedge_view path)
{
    struct kedge_hash hashes[KEDGE_PROOF_MAX], old_root, root;
    memcpy(old_root.b, from->root.b, sizeof old_root.b);
    memcpy(root.b, to->root.b, sizeof root.b);
    if (path.len > sizeof hashes) {
        return false;
    }
    if (path.len > 0) {
        memcpy(hashes, path.ptr, path.len);
    }
    return kedge_consistency_verify(from->size, to->size, &old_root, &root, hashes,
                                    path.len / sizeof hashes[0])
           == KEDGE_OK;
}

/* Whether `to` contradicts `from`; nothing does when nothing was seen, and a smaller one is the core's to
 * judge. */
static bool breaks_with(const struct kedge_site_chain *from, const struct kedge_site_chain *to,
                        struct kedge_view path)
{
    if (from->size == 0 || to->size < from->size) {
        return false;
    }
    if (to->size == from->size) {
        return memcmp(to->root.b, from->root.b, sizeof to->root.b) != 0;
    }
    return !grew(from, to, path);
}

bool kedge_client_heals(const struct kedge_site_chain *seen, const struct kedge_site_chain *shown,
                        bool breaks)
{
    return seen->size > 0 && shown->size >= seen->size && !breaks;
}

/* The quorum's checkpoint counts by the policy and is part of the chain that is shown. Witnesses cosign now
 * and then, so their newest checkpoint is mostly older than the newest of the log: a proof of consistency
 * connects the two, or a coordinator could show one history to witnesses and another to sites. */
static int check_quorum(const struct kedge_site_host *h, const struct kedge_shown_main *shown,
                        const struct kedge_site_chain *newest, struct kedge_diag *d)
{
    uint64_t now_s = kedge_os_unix_ms() / 1000, age = atomic_load(&h->witness_age_max_s);
    struct kedge_site_chain cosigned;
    struct kedge_witness_demand demand = {.origin = kedge_view_str(h->trust.main_log.name),
                                          .logs = &h->trust.main_log,
                                          .log_count = 1,
                                          .time_min_s = age > 0 && now_s > age ? now_s - age : 0};
    struct kedge_witness_evaluation *e KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *e);
    KEDGE_TRY_MEM(e);
    KEDGE_TRY(shown->cosigned.len > 0
                  ? kedge_witness_policy_evaluate(h->trust.witness_policy, shown->cosigned, &demand, e, d)
                  : kedge_diag_set(d, KEDGE_E_DENIED,
                                   "the coordinator shows no checkpoint that witnesses cosigned"));
    cosigned.size = e->checkpoint.size;
    memcpy(cosigned.root.b, e->checkpoint.root.b, sizeof cosigned.root.b);
    bool same =
        cosigned.size == newest->size && memcmp(cosigned.root.b, newest->root.b, sizeof newest->root.b) == 0;
    if (!same && (cosigned.size >= newest->size || !grew(&cosigned, newest, shown->since_cosigned))) {
        return kedge_diag_set(d, KEDGE_E_DENIED,
                              "what the witnesses cosigned is not part of the chain that is shown");
    }
    return KEDGE_OK;
}

int kedge_client_check_main(const struct kedge_site_host *h, const struct kedge_site_chain *seen,
                            const struct kedge_shown_main *shown, struct kedge_site_chain *ret,
                            bool *ret_breaks)
{
    struct kedge_diag d = {.text = ""};
    int err = kedge_client_chain_of(shown->newest, h->trust.known ? &h->trust.main_log : NULL, ret);
    if (err) {
        kedge_log(KEDGE_LOG_ERROR, "main checkpoint", "it is not signed by the main log: %s",
                  kedge_strerror(err));
        return KEDGE_E_VERIFY;
    }
    if (seen->size > 0 && ret->size > seen->size && shown->since_seen.len == 0) {
        kedge_log(KEDGE_LOG_WARN, "main checkpoint",
                  "%" PRIu64 " entries after %" PRIu64
                  " without a proof that they grew out of them: asking again",
                  ret->size, seen->size);
        return KEDGE_E_FORMAT;
    }
    *ret_breaks = breaks_with(seen, ret, shown->since_seen);
    if (!*ret_breaks && h->trust.witness_policy
        && h->trust.witness_policy->quorum.kind != KEDGE_QUORUM_NONE) {
        err = check_quorum(h, shown, ret, &d);
    }
    if (err) {
        kedge_log(KEDGE_LOG_ERROR, "witnesses",
                  "%s; nothing is trained until their quorum stands behind the main chain",
                  d.text[0] ? d.text : kedge_strerror(err));
    }
    return err;
}
