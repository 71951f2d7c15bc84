/* policy.json, the owner's decisions, read into a struct. Pure.
 *
 * Strict on purpose: an unknown key is an error with the nearest known one as a hint, because a misspelt
 * limit that was passed over would be a limit that the owner believes in and that does not hold. Every error
 * names file, key and what was expected, as owners edit this file by hand. Ranges of numbers are in one table
 * (common/base/settings.h), which the documentation and `kedge-client doctor` use, too. */
#include "client/daemon/policy.h"

#include <jansson.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/settings.h"
#include "common/base/try.h"
#include "common/json/json.h"

static int bad(struct kedge_diag *d, const char *where, const char *key, const char *expected)
{
    return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"%s\": expected %s", where, key, expected);
}

static int check_keys(json_t *o, const char *where, struct kedge_diag *d)
{
    const char *key;
    json_t *v;
    json_object_foreach(o, key, v)
    {
        if (!kedge_setting_find(kedge_settings_policy, key)) {
            return kedge_setting_unknown(where, kedge_settings_policy, key, d);
        }
    }
    return KEDGE_OK;
}

static int read_jobs(const json_t *v, const char *where, struct kedge_site_policy *p, struct kedge_diag *d)
{
    const char *all = json_string_value(v);
    p->allow_all = !v || (all && strcmp(all, "*") == 0);
    if (p->allow_all) {
        return KEDGE_OK;
    }
    if (!json_is_array(v) || json_array_size(v) > KEDGE_POLICY_JOBS_MAX) {
        return bad(d, where, "jobs", "\"*\" or a list of at most 64 job names");
    }
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *name = json_string_value(json_array_get(v, i));
        if (!name || kedge_id_from(kedge_view_str(name), &p->jobs[i]) != KEDGE_OK) {
            return bad(d, where, "jobs", "job names");
        }
    }
    p->job_count = (uint32_t)json_array_size(v);
    return KEDGE_OK;
}

static int read_trainer(const json_t *v, const char *where, struct kedge_site_policy *p, struct kedge_diag *d)
{
    size_t n = json_array_size(v);
    if (v && (!json_is_array(v) || n == 0 || n > KEDGE_TRAINER_ARGS_MAX)) {
        return bad(d, where, "trainer", "a command as a list of words, like [\"kedge-train\"]");
    }
    for (size_t i = 0; i < n; i++) {
        const char *word = json_string_value(json_array_get(v, i));
        if (!word || (i == 0 && !word[0])) {
            return bad(d, where, "trainer", "a list of words");
        }
        p->trainer[i] = kedge_mem_strdup(word);
        if (!p->trainer[i]) {
            return kedge_diag_set(d, KEDGE_E_NOMEM, "%s: %s", where, kedge_strerror(KEDGE_E_NOMEM));
        }
    }
    return KEDGE_OK;
}

/* The table has the default, so an absent key and one with the default's value are the same. */
static int read_number(const json_t *o, const char *where, const char *key, uint64_t *ret,
                       struct kedge_diag *d)
{
    const struct kedge_setting *row = kedge_setting_find(kedge_settings_policy, key);
    const json_t *v = json_object_get(o, key);
    KEDGE_ASSERT(row);
    json_int_t n = v ? json_integer_value(v) : (json_int_t)row->fallback;
    if ((v && !json_is_integer(v)) || n < (json_int_t)row->least || n > (json_int_t)row->most) {
        return kedge_diag_set(d, KEDGE_E_FORMAT, "%s: \"%s\": expected a whole number from %llu to %llu",
                              where, key, (unsigned long long)row->least, (unsigned long long)row->most);
    }
    *ret = (uint64_t)n;
    return KEDGE_OK;
}

static int read_numbers(const json_t *o, const char *where, struct kedge_site_policy *p, struct kedge_diag *d)
{
    uint64_t threads = 0, seconds = 0, idle = 0, stop = 0, jobs = 0, gpu = 0;
    KEDGE_TRY(read_number(o, where, "threads", &threads, d));
    KEDGE_TRY(read_number(o, where, "train_seconds_max", &seconds, d));
    KEDGE_TRY(read_number(o, where, "trainer_idle_seconds", &idle, d));
    KEDGE_TRY(read_number(o, where, "memory_max", &p->memory_max, d));
    KEDGE_TRY(read_number(o, where, "model_bytes_max", &p->model_bytes_max, d));
    KEDGE_TRY(read_number(o, where, "witness_age_max_s", &p->witness_age_max_s, d));
    KEDGE_TRY(read_number(o, where, "stop_seconds", &stop, d));
    KEDGE_TRY(read_number(o, where, "jobs_at_once", &jobs, d));
    KEDGE_TRY(read_number(o, where, "gpu_at_once", &gpu, d));
    KEDGE_TRY(read_number(o, where, "memory_all", &p->memory_all, d));
    p->jobs_at_once = (uint32_t)jobs;
    p->gpu_at_once = (uint32_t)gpu;
    p->stop_seconds = (uint32_t)stop;
    p->threads = threads ? (uint32_t)threads : 1;
    p->train_seconds_max = (uint32_t)seconds;
    p->trainer_idle_seconds = (uint32_t)idle;
    return KEDGE_OK;
}

struct kedge_admission_limits kedge_policy_limits(const struct kedge_site_policy *p)
{
    return (struct kedge_admission_limits){.jobs_at_once = p->jobs_at_once > 0 ? p->jobs_at_once : 1,
                                           .threads = p->threads > 0 ? p->threads : 1,
                                           .gpu_at_once = p->gpu_at_once > 0 ? p->gpu_at_once : 1,
                                           .memory_all = p->memory_all};
}

uint32_t kedge_policy_threads(const struct kedge_site_policy *p)
{
    const struct kedge_admission_limits l = kedge_policy_limits(p);
    return kedge_admission_threads(&l);
}

uint64_t kedge_policy_memory(const struct kedge_site_policy *p, uint64_t own_max)
{
    const struct kedge_admission_limits l = kedge_policy_limits(p);
    return kedge_admission_memory(&l, own_max ? own_max : p->memory_max);
}

/* What an address may be is for the network to say, which names the key. */
static int read_proxy(const json_t *v, const char *where, struct kedge_site_policy *p, struct kedge_diag *d)
{
    const char *text = v ? json_string_value(v) : "";
    size_t len = text ? strlen(text) : 0;
    bool known = text && (!v || strncmp(text, "http://", 7) == 0 || strncmp(text, "relay://", 8) == 0);
    if (!known || len > KEDGE_POLICY_PROXY_MAX) {
        return bad(d, where, "proxy", "\"http://HOST:PORT\" or \"relay://HOST:PORT\"");
    }
    memcpy(p->proxy, text, len + 1);
    return KEDGE_OK;
}

static const char *const devices[] = {"cpu", "cuda", "auto"};

const char *kedge_policy_device_name(enum kedge_policy_device device)
{
    return devices[device];
}

/* Owner and job each say how far products may be rounded; what rounds least of the two counts, so neither can
 * weaken the other. */
enum kedge_precision kedge_policy_precision(const struct kedge_site_policy *p, enum kedge_precision job)
{
    return p->precision < job ? p->precision : job;
}

static int read_device(const json_t *o, const char *where, struct kedge_site_policy *p, struct kedge_diag *d)
{
    const json_t *device = json_object_get(o, "device"), *precision = json_object_get(o, "precision");
    const char *word = device ? json_string_value(device) : devices[KEDGE_POLICY_CPU];
    size_t i = 0;
    while (i < sizeof devices / sizeof devices[0] && !(word && strcmp(word, devices[i]) == 0)) {
        i++;
    }
    if (i == sizeof devices / sizeof devices[0]) {
        return bad(d, where, "device", "\"cpu\", \"cuda\" or \"auto\"");
    }
    p->device = (enum kedge_policy_device)i;
    return !precision || kedge_precision_parse(json_string_value(precision), &p->precision) == KEDGE_OK
               ? KEDGE_OK
               : bad(d, where, "precision", "\"f32\", \"tf32\" or \"bf16\"");
}

/* "battery", "reasons", or a list of such words: what may be told beyond what the work itself tells. */
static int read_tell(const json_t *v, const char *where, struct kedge_site_policy *p, struct kedge_diag *d)
{
    static const char expected[] = "\"nothing\", \"battery\", \"reasons\" or a list of the last two";
    size_t n = json_is_array(v) ? json_array_size(v) : v ? 1 : 0;
    if (n > 2) {
        return bad(d, where, "tell", expected);
    }
    for (size_t i = 0; i < n; i++) {
        const char *word = json_string_value(json_is_array(v) ? json_array_get(v, i) : v);
        bool battery = word && strcmp(word, "battery") == 0, reasons = word && strcmp(word, "reasons") == 0;
        if (!battery && !reasons && !(word && !json_is_array(v) && strcmp(word, "nothing") == 0)) {
            return bad(d, where, "tell", expected);
        }
        p->energy.tells_battery = p->energy.tells_battery || battery;
        p->tells_reasons = p->tells_reasons || reasons;
    }
    return KEDGE_OK;
}

static int read_login_file(const json_t *v, const char *where, struct kedge_site_policy *p,
                           struct kedge_diag *d)
{
    const char *text = v ? json_string_value(v) : "";
    size_t len = text ? strlen(text) : 0;
    if (!text || len > KEDGE_POLICY_PROXY_MAX || (v && len == 0)
        || (v && strncmp(p->proxy, "http://", 7) != 0)) {
        return bad(d, where, "proxy_login_file",
                   "the name of a file with one line, USER:PASSWORD, beside a \"proxy\" of http://");
    }
    memcpy(p->proxy_login_file, text, len + 1);
    return KEDGE_OK;
}

/* All members; what was taken before an error stays in *p. */
static int read_members(json_t *o, const char *where, struct kedge_site_policy *p, struct kedge_diag *reterr)
{
    KEDGE_TRY(check_keys(o, where, reterr));
    KEDGE_TRY(read_jobs(json_object_get(o, "jobs"), where, p, reterr));
    KEDGE_TRY(read_trainer(json_object_get(o, "trainer"), where, p, reterr));
    KEDGE_TRY(kedge_trainers_parse(json_object_get(o, "trainers"), where, &p->trainers, reterr));
    KEDGE_TRY(read_numbers(o, where, p, reterr));
    KEDGE_TRY(kedge_policy_energy_read(json_object_get(o, "energy"), where, &p->energy, reterr));
    KEDGE_TRY(read_tell(json_object_get(o, "tell"), where, p, reterr));
    KEDGE_TRY(kedge_idle_parse(json_object_get(o, "idle"), where, &p->idle, reterr));
    KEDGE_TRY(read_device(o, where, p, reterr));
    KEDGE_TRY(read_proxy(json_object_get(o, "proxy"), where, p, reterr));
    KEDGE_TRY(read_login_file(json_object_get(o, "proxy_login_file"), where, p, reterr));
    const json_t *insecure = json_object_get(o, "insecure");
    json_t *data = json_object_get(o, "data");
    if (insecure && !json_is_boolean(insecure)) {
        return bad(reterr, where, "insecure", "true or false");
    }
    if (data && !json_is_object(data)) {
        return bad(reterr, where, "data", "an object: name to binding");
    }
    p->insecure = json_is_true(insecure);
    p->data = json_incref(data);
    return KEDGE_OK;
}

int kedge_policy_parse(struct kedge_view text, const char *where, struct kedge_site_policy *ret,
                       struct kedge_diag *reterr)
{
    struct kedge_site_policy p = {.allow_all = false};
    json_t *o = NULL;
    int err = kedgei_json_load(text, KEDGE_POLICY_FILE_MAX, where, &o, reterr);
    if (!err) {
        err = read_members(o, where, &p, reterr);
    }
    if (err) {
        kedge_policy_deinit(&p);
    } else {
        *ret = p;
    }
    json_decref(o);
    return err;
}

void kedge_policy_deinit(struct kedge_site_policy *p)
{
    for (size_t i = 0; i <= KEDGE_TRAINER_ARGS_MAX; i++) {
        kedge_mem_free(p->trainer[i]);
    }
    json_decref(p->data);
    kedge_trainers_deinit(&p->trainers);
    *p = (struct kedge_site_policy){.allow_all = false};
}
