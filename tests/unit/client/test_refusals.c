/* What a site takes for a refusal of its update: signed by the coordinator's key in force, about the very
 * envelope that it sent. All else is no answer: nothing is kept, and the log says so. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chain/statement/mainbook.h"
#include "client/daemon/host.h"
#include "common/base/os/log.h"
#include "tests/fixtures/run.h"

#define DEPLOYMENT "fl.example.org"

static const char envelope[] = "what the site has sent";
static struct kedge_site_host *host;
static struct kedge_site_result result;
static struct kedge_statement st; /* the refusal, before it is signed */
static struct kedge_buf rotations;

static struct kedge_key_pair pair_of(uint8_t seed_byte)
{
    struct kedge_seed seed;
    struct kedge_key_pair pair;
    memset(seed.b, seed_byte, sizeof seed.b);
    kedge_key_from_seed(&seed, &pair);
    return pair;
}

static struct kedge_id id_of(const char *s)
{
    struct kedge_id id;
    ck_assert_int_eq(kedge_id_from(kedge_view_str(s), &id), KEDGE_OK);
    return id;
}

/* A refusal as it should be, of an update that waits in the working folder. */
static void begin(void)
{
    struct kedge_hash hash;
    char path[KEDGE_PATH_MAX];
    ck_assert_int_eq(kedge_crypto_init(), KEDGE_OK);
    kedge_log_init("test", KEDGE_LOG_WARN);
    host = calloc(1, sizeof *host);
    ck_assert_ptr_nonnull(host);
    snprintf(host->dir, sizeof host->dir, "/tmp/kedge-refusal-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(host->dir));
    host->config.tenant = id_of("org-a");
    host->config.site = id_of("site-1");
    host->trust.known = true;
    host->trust.statement_key = pair_of(1).public;
    snprintf(host->trust.deployment, sizeof host->trust.deployment, DEPLOYMENT);
    host->works[0].h = host;
    result = (struct kedge_site_result){
        .job = id_of("digits"), .kind = KEDGE_SITE_TRAIN, .round = 3, .group = 1, .update_len = 6};
    kedge_sha256(kedge_view_str(envelope), &hash);
    memcpy(result.envelope.b, hash.b, sizeof result.envelope.b);
    memset(result.update.b, 7, sizeof result.update.b);
    st = (struct kedge_statement){.kind = KEDGE_ST_REFUSED, .subject = hash};
    st.u.refused = (struct kedge_st_refused){.job = result.job,
                                             .round = 3,
                                             .group = 1,
                                             .update_kind = KEDGE_TRAIN_TRAIN,
                                             .tenant = host->config.tenant,
                                             .site = host->config.site,
                                             .listed = 1,
                                             .main_size = 9,
                                             .kept_until_s = 1792592000};
    memset(st.u.refused.update.b, 7, sizeof st.u.refused.update.b);
    snprintf(st.u.refused.code, sizeof st.u.refused.code, "BOUND");
    kedge_buf_init(&rotations, 65536);
    ck_assert_int_eq(kedge_client_work_file(&host->works[0], "", path), KEDGE_OK);
    ck_assert_int_eq(kedge_dir_make(path, 0700, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_client_work_path(&host->works[0], "update", &result.update, path), KEDGE_OK);
    ck_assert_int_eq(kedge_file_write(path, kedge_view_str("update"), 0600, NULL), KEDGE_OK);
}

static void end(void)
{
    kedge_buf_deinit(&rotations);
    ck_assert_int_eq(kedge_dir_remove(host->dir), KEDGE_OK);
    free(host);
}

/* Files in SITE/refusals. */
static unsigned count_kept(void)
{
    char path[KEDGE_PATH_MAX];
    unsigned count = 0;
    ck_assert_int_eq(kedge_client_path(host, path, "refusals"), KEDGE_OK);
    DIR *dir = opendir(path);
    for (const struct dirent *e; dir && (e = readdir(dir)) != NULL;) {
        count += e->d_name[0] != '.';
    }
    if (dir) {
        closedir(dir);
    }
    return count;
}

/* What the log says is on stderr, which is a file meanwhile. */
static int take_text(struct kedge_view text, int code, char said[4096])
{
    char path[KEDGE_PATH_MAX];
    struct kedge_msg error = kedge_msg_of_error(code, 0, "refused"), msg = {.type = KEDGE_MSG_REFUSED};
    msg.u.refused = (struct kedge_msg_refused){.code = error.u.error.code,
                                               .text = error.u.error.text,
                                               .envelope = text,
                                               .rotations = kedge_buf_view(&rotations)};
    int why = KEDGE_OK;
    ck_assert_int_eq(kedge_client_path(host, path, "log"), KEDGE_OK);
    fflush(stderr);
    int before = dup(2);
    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    int err = kedge_client_take_refused(&host->works[0], &msg, &result, kedge_view_str(envelope), &why);
    fflush(stderr);
    dup2(before, 2);
    close(before);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    size_t len = fread(said, 1, 4095, f);
    said[len] = '\0';
    fclose(f);
    ck_assert_int_eq(why, err ? KEDGE_OK : code);
    return err;
}

/* What the site makes of `st` when that key has signed it. */
static void expect(const char *what, uint8_t signer, int code, bool is_taken)
{
    struct kedge_key_pair key = pair_of(signer);
    struct kedge_buf text;
    char said[4096];
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_statement_sign(&st, &key, &text, NULL), KEDGE_OK);
    int err = take_text(kedge_buf_view(&text), code, said);
    ck_assert_msg((err == KEDGE_OK) == is_taken, "%s: %s", what, kedge_strerror(err));
    ck_assert_msg(
        strstr(said, is_taken ? "the signed refusal is kept" : "not signed by the coordinator, or not"),
        "%s: the log says: %s", what, said);
    ck_assert_msg(count_kept() == (is_taken ? 3 : 0), "%s: %u files are kept", what, count_kept());
    kedge_buf_deinit(&text);
}

START_TEST(an_honest_one_is_kept)
{
    begin();
    expect("as it should be", 1, KEDGE_E_BOUND, true);
    end();
}
END_TEST

/* Who was selected the site does not know: it keeps what was signed for those who have the list, and its log
 * calls nothing true. */
START_TEST(one_that_the_site_cannot_judge)
{
    struct kedge_key_pair key = pair_of(1);
    struct kedge_buf text;
    char said[4096];
    begin();
    snprintf(st.u.refused.code, sizeof st.u.refused.code, "NOT_SELECTED");
    expect("not selected", 1, KEDGE_E_NOT_SELECTED, true);
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_statement_sign(&st, &key, &text, NULL), KEDGE_OK);
    ck_assert_int_eq(take_text(kedge_buf_view(&text), KEDGE_E_NOT_SELECTED, said), KEDGE_OK);
    ck_assert_msg(strstr(said, "round=3: refused; the signed refusal is kept in refusals/\"}"), "%s", said);
    kedge_buf_deinit(&text);
    end();
}
END_TEST

static void spoil(int how)
{
    struct kedge_st_refused *r = &st.u.refused;
    switch (how) {
    case 0:
        st.subject.b[31] ^= 1;
        break;
    case 1:
        r->update.b[0] ^= 1;
        break;
    case 2:
        r->site = id_of("site-2");
        break;
    case 3:
        r->tenant = id_of("org-b");
        break;
    case 4:
        r->job = id_of("other");
        break;
    case 5:
        r->round++;
        break;
    case 6:
        r->group++;
        break;
    case 7:
        r->update_kind = KEDGE_TRAIN_PRETRAIN;
        break;
    case 8:
        snprintf(r->code, sizeof r->code, "SHAPE");
        break;
    default: /* another statement of the coordinator's about this envelope */
        st.kind = KEDGE_ST_CLOSED;
        st.u.closed = (struct kedge_st_closed){result.job, 3, host->config.tenant, host->config.site, "x"};
        break;
    }
}

START_TEST(one_about_something_else)
{
    static const char *const what[] = {"envelope", "update", "site", "tenant", "job",
                                       "round",    "group",  "kind", "reason", "statement"};
    for (int how = 0; how < 10; how++) {
        begin();
        spoil(how);
        expect(what[how], 1, KEDGE_E_BOUND, false);
        end();
    }
}
END_TEST

/* A reason that is none for good is not one to give a task up for, no matter who signs it. */
START_TEST(one_that_is_not_for_good)
{
    begin();
    snprintf(st.u.refused.code, sizeof st.u.refused.code, "BUSY");
    expect("busy", 1, KEDGE_E_BUSY, false);
    end();
}
END_TEST

START_TEST(one_by_another_key)
{
    begin();
    expect("a stranger's", 2, KEDGE_E_BOUND, false);
    end();
}
END_TEST

START_TEST(one_that_was_altered)
{
    struct kedge_key_pair key = pair_of(1);
    struct kedge_buf text;
    char said[4096];
    begin();
    kedge_buf_init(&text, KEDGE_ENTRY_MAX);
    ck_assert_int_eq(kedge_statement_sign(&st, &key, &text, NULL), KEDGE_OK);
    for (size_t i = 0; i < text.len; i += 7) {
        text.ptr[i] ^= 1;
        ck_assert_msg(take_text(kedge_buf_view(&text), KEDGE_E_BOUND, said) != KEDGE_OK, "byte %zu", i);
        text.ptr[i] ^= 1;
    }
    ck_assert_uint_eq(count_kept(), 0);
    ck_assert_int_eq(take_text(kedge_buf_view(&text), KEDGE_E_BOUND, said), KEDGE_OK);
    kedge_buf_deinit(&text);
    end();
}
END_TEST

/* The coordinator shows that key 1 went for key 2. */
static void rotate(void)
{
    static struct kedge_statement change;
    struct kedge_key_pair old = pair_of(1), next = pair_of(2);
    struct kedge_buf one, both;
    kedge_buf_init(&one, KEDGE_ENTRY_MAX);
    kedge_buf_init(&both, KEDGE_ENTRY_MAX);
    change = (struct kedge_statement){.kind = KEDGE_ST_STATEMENT_KEY_ROTATED};
    change.u.statement_key_rotated = (struct kedge_st_statement_key_rotated){
        {DEPLOYMENT, pair_of(9).public, 1000}, old.public, next.public, ""};
    ck_assert_int_eq(kedge_statement_sign(&change, &old, &one, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_statement_cosign(kedge_buf_view(&one), &next, &both, NULL), KEDGE_OK);
    kedge_buf_put_u32(&rotations, (uint32_t)both.len);
    kedge_buf_put(&rotations, both.ptr, both.len);
    kedge_buf_deinit(&one);
    kedge_buf_deinit(&both);
}

START_TEST(after_a_rotation)
{
    begin();
    rotate();
    expect("by the key that went", 1, KEDGE_E_BOUND, false);
    expect("by the key that came", 2, KEDGE_E_BOUND, true);
    end();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("refusals");
    tcase_add_test(tc, an_honest_one_is_kept);
    tcase_add_test(tc, one_that_the_site_cannot_judge);
    tcase_add_test(tc, one_about_something_else);
    tcase_add_test(tc, one_that_is_not_for_good);
    tcase_add_test(tc, one_by_another_key);
    tcase_add_test(tc, one_that_was_altered);
    tcase_add_test(tc, after_a_rotation);
    Suite *s = suite_create("client/refusals");
    suite_add_tcase(s, tc);
    return run_suite(s);
}
