/* Reads STATE/config.json. It is written by people, so every key is checked by name, type and
 * range, and a key that nobody knows is an error: a misspelt limit that is silently ignored would
 * be found only when the limit is needed. */
#include "coordinator/daemon/config.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/settings.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"

/* Where the whole numbers go; their ranges and defaults are kedge_settings_coordinator's. */
static const struct {
    const char *key;
    size_t offset;
} numbers[] = {
    {"workers", offsetof(struct kedge_config, workers)},
    {"close_threads", offsetof(struct kedge_config, close_threads)},
    {"lease_ms", offsetof(struct kedge_config, lease_ms)},
    {"offline_grace_ms", offsetof(struct kedge_config, offline_grace_ms)},
    {"settle_ms", offsetof(struct kedge_config, settle_ms)},
    {"https_connections", offsetof(struct kedge_config, https_connections)},
    {"deadline_guard_s", offsetof(struct kedge_config, deadline_guard_s)},
    {"target_weight", offsetof(struct kedge_config, target_weight)},
    {"share_floor_percent", offsetof(struct kedge_config, share_floor_percent)},
    {"refused_days", offsetof(struct kedge_config, refused_days)},
    {"refused_mb", offsetof(struct kedge_config, refused_mb)},
};
enum { NUMBERS = sizeof numbers / sizeof numbers[0], CONFIG_MAX = 65536 };

/* All messages have one form: file, key, what was expected. */
static int bad(struct kedge_diag *d, const char *key, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "config.json: \"%s\": expected %s", key, expected);
}

static int read_listen(const json_t *v, struct kedge_config *c, struct kedge_diag *d)
{
    size_t n = json_array_size(v);
    if (!json_is_array(v) || n > KEDGE_NET_URLS_MAX - 1) {
        return bad(d, "listen", "a list of at most 3 addresses like \"tls+tcp://0.0.0.0:7443\"");
    }
    for (size_t i = 0; i < n; i++) {
        const char *url = json_string_value(json_array_get(v, i));
        if (!url || strlen(url) >= KEDGE_NET_URL_MAX) {
            return bad(d, "listen", "addresses like \"tls+tcp://0.0.0.0:7443\"");
        }
        snprintf(c->listen[i], sizeof c->listen[i], "%s", url);
    }
    c->listen_count = (unsigned)n;
    return KEDGE_OK;
}

/* Operators are TLS keys and not names: the party that holds the key is the operator, and no table of
 * users has to be kept right. */
static int read_operators(const json_t *v, struct kedge_config *c, struct kedge_diag *d)
{
    size_t n = json_array_size(v);
    if (!json_is_array(v) || n > KEDGE_CONFIG_OPERATORS_MAX) {
        return bad(d, "operators", "a list of at most 16 keys in hex");
    }
    for (size_t i = 0; i < n; i++) {
        const char *hex = json_string_value(json_array_get(v, i));
        if (!hex || kedge_hex_decode(kedge_view_str(hex), c->operators[i].b, KEDGE_KEY_LEN) != KEDGE_OK) {
            return bad(d, "operators", "keys of 64 lower-case hex digits");
        }
    }
    c->operator_count = (unsigned)n;
    return KEDGE_OK;
}

/* The texts of "https_listen", "https_certificate" and "https_key"; *ret_taken: it is one of them. */
static int read_https(const char *key, const json_t *v, struct kedge_config *c, bool *ret_taken,
                      struct kedge_diag *d)
{
    const char *s = json_string_value(v);
    bool listen = strcmp(key, "https_listen") == 0, certificate = strcmp(key, "https_certificate") == 0;
    *ret_taken = listen || certificate || strcmp(key, "https_key") == 0;
    if (listen) {
        bool good = s && strlen(s) < sizeof c->https_listen
                    && (strncmp(s, "https://", 8) == 0 || strncmp(s, "http://", 7) == 0);
        snprintf(c->https_listen, sizeof c->https_listen, "%s", good ? s : "");
        return good ? KEDGE_OK : bad(d, key, "an address like \"https://0.0.0.0:8443\"");
    }
    if (*ret_taken) {
        char *out = certificate ? c->https_certificate : c->https_key;
        bool good = s && s[0] == '/' && strlen(s) < sizeof c->https_key;
        snprintf(out, sizeof c->https_key, "%s", good ? s : "");
        return good ? KEDGE_OK : bad(d, key, "the absolute path of a PEM file");
    }
    return KEDGE_OK;
}

/* On this machine only: the stream is neither encrypted nor asks who comes. */
static bool is_loopback(const char *url)
{
    static const char *const starts[] = {
        "tcp://127.0.0.1:", "tcp://[::1]:", "ws://127.0.0.1:", "ws://[::1]:"};
    bool is = false;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        is = is || strncmp(url, starts[i], strlen(starts[i])) == 0;
    }
    return is && strlen(url) < KEDGE_NET_URL_MAX && !strchr(url, '\n');
}

static int read_events_listen(const json_t *v, struct kedge_config *c, struct kedge_diag *d)
{
    const size_t n = json_array_size(v);
    if (!json_is_array(v) || n > KEDGE_CONFIG_EVENTS_LISTEN_MAX) {
        return bad(d, "events_listen", "a list of at most 3 addresses like \"tcp://127.0.0.1:7444\"");
    }
    for (size_t i = 0; i < n; i++) {
        const char *url = json_string_value(json_array_get(v, i));
        if (!url || !is_loopback(url)) {
            return bad(d, "events_listen",
                       "addresses of this machine, \"tcp://127.0.0.1:PORT\" or \"ws://127.0.0.1:PORT/PATH\"");
        }
        snprintf(c->events_listen[i], sizeof c->events_listen[i], "%s", url);
    }
    c->events_listen_count = (unsigned)n;
    return KEDGE_OK;
}

static int read_events_tenants(const json_t *v, struct kedge_config *c, struct kedge_diag *d)
{
    const size_t n = json_array_size(v);
    if (!json_is_array(v) || n > KEDGE_EVENT_STREAMS_MAX) {
        return bad(d, "events_tenants", "a list of at most 64 tenants");
    }
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(v, i));
        if (!name || kedge_id_from(kedge_view_str(name), &c->events_tenants[i]) != KEDGE_OK) {
            return bad(d, "events_tenants", "names of tenants");
        }
    }
    c->events_tenant_count = (unsigned)n;
    return KEDGE_OK;
}

/* "events" and those that begin with it; *ret_taken: it is one of them. */
static int read_events(const char *key, const json_t *v, struct kedge_config *c, bool *ret_taken,
                       struct kedge_diag *d)
{
    const char *s = json_string_value(v);
    *ret_taken = true;
    if (strcmp(key, "events") == 0) {
        c->events_off = json_is_false(v);
        return json_is_boolean(v) ? KEDGE_OK : bad(d, key, "true or false");
    }
    if (strcmp(key, "events_listen") == 0) {
        return read_events_listen(v, c, d);
    }
    if (strcmp(key, "events_tenants") == 0) {
        return read_events_tenants(v, c, d);
    }
    *ret_taken = strcmp(key, "events_folder") == 0;
    if (*ret_taken && (!s || s[0] != '/' || strlen(s) >= sizeof c->events_folder)) {
        return bad(d, key, "the absolute path of a folder");
    }
    if (*ret_taken) {
        snprintf(c->events_folder, sizeof c->events_folder, "%s", s);
    }
    return KEDGE_OK;
}

/* One key and its value. Keys that are plain numbers are rows of a table; the rest has rules of its
 * own. "pack_blobs" is checked here although chain/state reads it: two readers of one file must
 * agree on what is valid. */
static int read_key(const char *key, const json_t *v, struct kedge_config *c, struct kedge_diag *d)
{
    if (strcmp(key, "deployment") == 0) {
        const char *s = json_string_value(v);
        if (!s || strlen(s) == 0 || strlen(s) >= sizeof c->deployment) {
            return bad(d, key, "a host-like name of at most 128 characters");
        }
        snprintf(c->deployment, sizeof c->deployment, "%s", s);
        return KEDGE_OK;
    }
    if (strcmp(key, "listen") == 0) {
        return read_listen(v, c, d);
    }
    if (strcmp(key, "operators") == 0) {
        return read_operators(v, c, d);
    }
    if (strcmp(key, "witness_strict") == 0) {
        c->witness_strict = json_is_true(v);
        return json_is_boolean(v) ? KEDGE_OK : bad(d, key, "true or false");
    }
    if (strcmp(key, "encrypt_blobs") == 0) {
        c->encrypt_blobs = json_is_true(v);
        return json_is_boolean(v) ? KEDGE_OK : bad(d, key, "true or false");
    }
    if (strcmp(key, "pack_blobs") == 0) { /* chain/state reads it */
        return json_is_boolean(v) ? KEDGE_OK : bad(d, key, "true or false");
    }
    if (strcmp(key, "insecure") == 0) {
        c->insecure = json_is_true(v);
        return json_is_boolean(v) ? KEDGE_OK : bad(d, key, "true or false");
    }
    bool taken;
    int err = read_https(key, v, c, &taken, d);
    if (!taken) {
        err = read_events(key, v, c, &taken, d);
    }
    if (taken) {
        return err;
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        const struct kedge_setting *row = kedge_setting_find(kedge_settings_coordinator, key);
        json_int_t n = json_integer_value(v);
        if (!row || strcmp(key, numbers[i].key) != 0) {
            continue;
        }
        if (!json_is_integer(v) || n < (json_int_t)row->least || n > (json_int_t)row->most) {
            (void)kedge_diag_set(d, KEDGE_E_FORMAT,
                                 "config.json: \"%s\": expected a whole number from %u to %u", key,
                                 (unsigned)row->least, (unsigned)row->most);
            if (numbers[i].offset == offsetof(struct kedge_config, lease_ms)) {
                (void)kedge_diag_hint(d,
                                      "a site is heard of every %d ms while it works: a shorter lease takes "
                                      "it for gone",
                                      KEDGE_HEARTBEAT_MS);
            }
            return KEDGE_E_FORMAT;
        }
        *(uint32_t *)(void *)((char *)c + numbers[i].offset) = (uint32_t)n;
        return KEDGE_OK;
    }
    return kedge_setting_unknown("config.json", kedge_settings_coordinator, key, d);
}

static int read_keys(json_t *root, struct kedge_config *c, struct kedge_diag *reterr)
{
    const char *key;
    json_t *v;
    json_object_foreach(root, key, v)
    {
        KEDGE_TRY(read_key(key, v, c, reterr));
    }
    if (!c->deployment[0]) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "config.json: \"deployment\" is missing");
    }
    if (!c->https_certificate[0] != !c->https_key[0]) {
        return kedge_diag_set(
            reterr, KEDGE_E_FORMAT,
            "config.json: \"https_certificate\" and \"https_key\" stand together or not at all");
    }
    return KEDGE_OK;
}

/* The defaults come from the same table as the ranges (common/base/settings.h), which the
 * documentation is made from, too. The result is written only when the whole file is right: half of
 * a configuration is none. */
int kedge_config_parse(struct kedge_view text, struct kedge_config *ret, struct kedge_diag *reterr)
{
    json_auto_t *root = NULL;
    KEDGE_TRY(kedgei_json_load(text, CONFIG_MAX, "config.json", &root, reterr));
    struct kedge_config c = {.listen_count = 0};
    for (size_t i = 0; i < NUMBERS; i++) {
        const struct kedge_setting *row = kedge_setting_find(kedge_settings_coordinator, numbers[i].key);
        KEDGE_ASSERT(row);
        *(uint32_t *)(void *)((char *)&c + numbers[i].offset) = (uint32_t)row->fallback;
    }
    KEDGE_TRY(read_keys(root, &c, reterr));
    *ret = c;
    return KEDGE_OK;
}
