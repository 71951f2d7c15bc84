/* kedge key protect, unprotect, public: what becomes of a key's own file. */
#include <string.h>

#include "cli/cli.h"
#include "cli/local.h"
#include "common/base/try.h"
#include "common/json/json.h"
#include "crypto/keyfile.h"
#include "crypto/passphrase.h"

/* FILE alone, or NULL after a usage error. */
static const char *take_file(struct kedge_cli *c)
{
    const char *path = kedge_cli_argument(c, 0);
    if (!path) {
        (void)kedge_cli_usage(c, "FILE: expected a private key");
        return NULL;
    }
    return kedge_cli_no_more(c, 1) ? path : NULL;
}

/* Key and passphrase are wiped on every way out. */
static int seal(const char *path, const struct kedge_seal_cost *cost, struct kedge_public_key *ret_public,
                struct kedge_diag *d)
{
    struct kedge_key_pair pair;
    struct kedge_buf passphrase;
    bool sealed = false;
    int err = kedge_keyfile_is_sealed(path, &sealed, ret_public, d);
    if (!err && sealed) {
        (void)kedge_diag_set(d, KEDGE_E_EXISTS, "%s: the key is sealed already", path);
        return kedge_diag_hint(d, "kedge key unprotect %s, then seal it with another passphrase", path);
    }
    if (err) {
        return err;
    }
    KEDGE_TRY(kedge_keyfile_read_private(path, &pair, d));
    kedge_buf_init(&passphrase, KEDGE_PASSPHRASE_MAX);
    err = kedge_passphrase_new(path, &passphrase, d);
    if (!err) {
        err = kedge_keyfile_seal(path, &pair, kedge_buf_view(&passphrase), cost, d);
    }
    *ret_public = pair.public;
    kedge_key_wipe(&pair);
    kedge_wipe(passphrase.ptr, passphrase.cap);
    kedge_buf_deinit(&passphrase);
    return err;
}

/* The cost is for guessing the passphrase and is paid at each use; "small" is for small devices. */
int kedge_cmd_key_protect(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_public_key key;
    const char *cost = kedge_cli_option(c, "cost", "moderate");
    bool small = strcmp(cost, "small") == 0;
    if (!small && strcmp(cost, "moderate") != 0) {
        return kedge_cli_usage(c, "--cost %s: expected moderate or small", kedge_cli_word(cost).s);
    }
    const char *path = take_file(c);
    if (!path) {
        return 2;
    }
    int err = seal(path, small ? &kedge_seal_small : &kedge_seal_moderate, &key, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(c,
                  "%s is sealed. Without its passphrase the key is lost. Copies of the file made before are "
                  "not sealed.\n",
                  path);
    return kedge_cli_ok(c, json_pack("{s:s,s:o,s:b}", "file", path, "key",
                                     kedgei_json_hex(key.b, KEDGE_KEY_LEN), "sealed", 1));
}

/* The plain key is written over the sealed one in one step (kedge_file_write), so that at no moment there is
 * neither. */
int kedge_cmd_key_unprotect(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair pair;
    struct kedge_public_key key;
    const char *path = take_file(c);
    if (!path) {
        return 2;
    }
    int err = kedge_keyfile_read_private(path, &pair, &d);
    if (!err) {
        key = pair.public;
        err = kedge_keyfile_write_private(path, &pair, &d);
        kedge_key_wipe(&pair);
    }
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(c, "%s is a plain key again, guarded by its mode 0600 alone.\n", path);
    return kedge_cli_ok(c, json_pack("{s:s,s:o,s:b}", "file", path, "key",
                                     kedgei_json_hex(key.b, KEDGE_KEY_LEN), "sealed", 0));
}

/* A sealed file holds its public half in the clear: no passphrase is asked for what is no secret. */
int kedge_cmd_key_public(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_key_pair pair;
    struct kedge_public_key key;
    bool sealed = false;
    const char *path = take_file(c);
    if (!path) {
        return 2;
    }
    int err = kedge_keyfile_is_sealed(path, &sealed, &key, &d);
    if (!err && !sealed) {
        err = kedge_keyfile_read_private(path, &pair, &d);
        if (!err) {
            key = pair.public;
            kedge_key_wipe(&pair);
        }
    }
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    char hex[2 * KEDGE_KEY_LEN + 1];
    kedge_hex_encode(key.b, KEDGE_KEY_LEN, hex);
    kedge_cli_say(c, "%s\n", hex);
    return kedge_cli_ok(c, json_pack("{s:s,s:o,s:b}", "file", path, "key",
                                     kedgei_json_hex(key.b, KEDGE_KEY_LEN), "sealed", sealed));
}
