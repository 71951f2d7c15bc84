/* kedge audit evidence: does a file convict a log of two histories? */
#include <stdio.h>
#include <string.h>

#include "chain/log/fork_evidence.h"
#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/mem.h"
#include "common/base/try.h"

/* The signatures count by the key that the caller names, never by one in the file: who makes a file can
 * sign it with a key of his own. */
static int judge(const char *path, const struct kedge_vkey *vkey, struct kedge_buf *words,
                 struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit);
    struct kedge_hash actual;
    struct kedge_fork_evidence *e KEDGE_CLEANUP(kedge_mem_release) = kedge_mem_new(1, sizeof *e);
    kedge_buf_init(&text, KEDGE_FORK_EVIDENCE_MAX);
    KEDGE_TRY(e ? kedge_file_read(path, &text, d) : KEDGE_E_NOMEM);
    if (kedge_fork_evidence_decode(kedge_buf_view(&text), e) != KEDGE_OK) {
        return kedge_diag_set(d, KEDGE_E_USAGE,
                              "%s is no fork evidence (its first line is kedge.dev/fork-evidence@v1)", path);
    }
    KEDGE_TRY(kedge_fork_evidence_verify(e, vkey, 1, &actual, d));
    kedge_fork_evidence_describe(e, &actual, words);
    return words->err;
}

/* Exit code 0 means "this log has two histories". Evidence that does not verify is an answer too (1), since a
 * file that convicts nobody is what a slanderer hands out. */
int kedge_cmd_audit_evidence(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_vkey vkey;
    struct kedge_buf words;
    const char *text = kedge_cli_option(c, "log", NULL), *path = kedge_cli_argument(c, 0);
    if (!path) {
        return kedge_cli_usage(c, "FILE is missing: evidence that kedge ledger follow kept");
    }
    if (!text || kedge_vkey_decode(kedge_view_str(text), &vkey) != KEDGE_OK
        || vkey.type != KEDGE_KEY_ED25519) {
        return kedge_cli_usage(c, "--log VKEY: expected the log's verifier key, from a trust file");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    kedge_buf_init(&words, 8192);
    int err = judge(path, &vkey, &words, &d);
    json_t *o = NULL;
    if (err == KEDGE_OK || err == KEDGE_E_VERIFY) {
        o = json_pack("{s:b,s:s%}", "fork", err == KEDGE_OK, "text", err ? d.text : (const char *)words.ptr,
                      err ? strlen(d.text) : words.len);
        kedge_cli_say(c, "%.*s", err ? 0 : (int)words.len, words.ptr ? (const char *)words.ptr : "");
        kedge_cli_say(c, "%s%s\n",
                      err ? "This proves no fork: " : "The holder of this log's key signed two histories.",
                      err ? d.text : "");
    }
    kedge_buf_deinit(&words);
    return o ? kedge_cli_answer(c, o, err ? 1 : 0) : kedge_cli_fail(c, err, &d);
}
