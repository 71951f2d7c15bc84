/* Which key files a command used, told when the coordinator refuses: "denied" is most often the wrong file,
 * and its public key is what the operator can look up. Nothing is told where the error has another cause. */
#include "cli/keys_used.h"

#include <string.h>

#include "crypto/keyfile.h"

void kedge_cli_note_key(struct kedge_cli *c, const char *option, const char *value)
{
    static const char *const options[] = {"key", "admin-key", "recovery-key"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(option, options[i]) == 0) {
            kedge_cli_note_key_file(c, options[i], value);
        }
    }
}

void kedge_cli_note_key_file(struct kedge_cli *c, const char *option, const char *file)
{
    if (c->key_count < KEDGE_CLI_KEYS_MAX) {
        c->keys[c->key_count].option = option;
        c->keys[c->key_count++].file = file;
    }
}

/* What the coordinator says of a key, or that it does not talk to us. */
static bool is_about_keys(const struct kedge_cli *c, int err)
{
    switch (err) {
    case KEDGE_E_DENIED:
    case KEDGE_E_REVOKED:
    case KEDGE_E_NOT_ENROLLED:
    case KEDGE_E_KEY:
    case KEDGE_E_VERIFY:
        return c->told;
    case KEDGE_E_PEER_AUTH:
    case KEDGE_E_UNREACHABLE:
    case KEDGE_E_CLOSED:
        return c->connect != NULL;
    default:
        return false;
    }
}

/* Nobody is asked for a passphrase: a sealed file says whose it is. */
static bool read_public(const char *path, struct kedge_public_key *ret)
{
    struct kedge_key_pair pair;
    bool sealed = false;
    if (kedge_keyfile_is_sealed(path, &sealed, ret, NULL) != KEDGE_OK) {
        return false;
    }
    if (sealed) {
        return true;
    }
    if (kedge_keyfile_read_private(path, &pair, NULL) != KEDGE_OK) {
        return false;
    }
    *ret = pair.public;
    kedge_key_wipe(&pair);
    return true;
}

/* A key that speaks (--key) is told where a connection was refused, keys that sign where the coordinator
 * refused what they signed. The other ones have nothing to do with the error and would lead astray. */
json_t *kedge_cli_keys_used(const struct kedge_cli *c, int err)
{
    json_t *keys = NULL;
    for (unsigned i = 0; i < c->key_count && is_about_keys(c, err); i++) {
        const bool speaks = strcmp(c->keys[i].option, "key") == 0; /* the others sign */
        if (speaks ? !c->connect : !c->told) {
            continue;
        }
        struct kedge_public_key key;
        char hex[2 * KEDGE_KEY_LEN + 1];
        json_t *row = json_pack("{s:s+,s:s}", "option", "--", c->keys[i].option, "file", c->keys[i].file);
        if (read_public(c->keys[i].file, &key)) {
            kedge_hex_encode(key.b, KEDGE_KEY_LEN, hex);
            json_object_set_new(row, "public", json_string(hex));
        }
        keys = keys ? keys : json_array();
        json_array_append_new(keys, row);
    }
    return keys;
}
