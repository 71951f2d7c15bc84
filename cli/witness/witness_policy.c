/* kedge witness policy: what a policy file demands, and whether its quorum is worth demanding. */
#include "cli/witness/witness_policy.h"

#include <stdio.h>

#include "cli/cli.h"
#include "cli/local.h"

int kedge_cli_witness_policy(const char *path, struct kedge_witness_policy **ret, struct kedge_diag *d)
{
    struct kedge_buf text;
    int err = kedge_cli_read_file(path, KEDGE_WITNESS_POLICY_MAX, &text, d);
    if (!err) {
        err = kedge_witness_policy_parse(kedge_buf_view(&text), ret, d);
        err = err ? kedge_diag_wrap(d, err, "%s", path) : KEDGE_OK;
    }
    kedge_buf_deinit(&text);
    return err;
}

/* Exit code 1 where the quorum is not worth demanding: too few of the witnesses could sign two histories, or
 * more are demanded than there are. The file may be correct all the same. */
int kedge_cmd_witness_policy(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_witness_policy *policy = NULL;
    struct kedge_quorum_safety safety;
    struct kedge_buf words;
    const char *path = kedge_cli_argument(c, 0);
    if (!path) {
        return kedge_cli_usage(c, "FILE is missing: a witness policy (c2sp.org/tlog-policy)");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    kedge_buf_init(&words, 1 << 20);
    int err = kedge_cli_witness_policy(path, &policy, &d);
    if (!err) {
        kedge_witness_policy_describe(policy, &words);
        kedge_witness_quorum_safety(policy, &safety);
        err = words.err;
    }
    json_t *o = err ? NULL
                    : json_pack("{s:b,s:b,s:i,s:i,s:i,s:s}", "safe", safety.is_safe, "reachable",
                                safety.is_reachable, "witnesses", (int)safety.n, "quorum", (int)safety.k,
                                "needed", (int)safety.needed, "text", safety.text);
    if (!err) {
        kedge_cli_say(c, "%.*s", (int)words.len, words.ptr ? (const char *)words.ptr : "");
    }
    kedge_buf_deinit(&words);
    kedge_witness_policy_free(policy);
    return err ? kedge_cli_fail(c, err, &d)
               : kedge_cli_answer(c, o, safety.is_safe && safety.is_reachable ? 0 : 1);
}
