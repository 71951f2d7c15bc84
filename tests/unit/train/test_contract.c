/* The trainer's contract, spoken with the real programs over pipes: test_train_contract KEDGE_TRAIN
 * IDENTITY. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/train/task.h"
#include "common/base/mem.h"
#include "common/base/os/process.h"
#include "common/base/text.h"
#include "common/tensor/safetensors.h"

static const char *trainer_path, *identity_path;
static char dir[] = "/tmp/kedge-train-XXXXXX";

#define MODEL "\"model\":{\"preset\":\"mclr\",\"inputs\":64,\"classes\":10}"
#define DATA                                                                                \
    "\"data\":{\"train\":{\"format\":\"idx\",\"images\":\"data/digits/digits-images.idx\"," \
    "\"labels\":\"data/digits/digits-labels.idx\",\"scale\":\"0.0625\"},\"split\":\"0.8\"}"

static void start(const char *path, struct kedge_process *p)
{
    const char *argv[] = {path, NULL};
    struct kedge_process_options o = {
        .argv = argv, .pipe_stdin = true, .pipe_stdout = true, .die_with_parent = true};
    ck_assert_int_eq(kedge_process_start(&o, p, NULL), KEDGE_OK);
}

/* Sends a line and reads the reply line into out. */
static void ask(struct kedge_process *p, const char *line, char out[4096])
{
    size_t len = strlen(line), used = 0;
    ck_assert_int_eq(write(p->in_fd, line, len), (ssize_t)len);
    ck_assert_int_eq(write(p->in_fd, "\n", 1), 1);
    do {
        ssize_t n = read(p->out_fd, out + used, 4095 - used);
        ck_assert_int_gt(n, 0);
        used += (size_t)n;
    } while (out[used - 1] != '\n');
    out[used] = '\0';
    ck_assert_ptr_eq(strchr(out, '\n'), out + used - 1);
}

/* A member of the reply as text; the reply is valid JSON. */
static const char *member(const char *reply, const char *key)
{
    static char text[512];
    struct kedge_json_token tokens[512];
    struct kedge_json doc;
    ck_assert_msg(kedge_json_parse(kedge_view_str(reply), tokens, 512, &doc, NULL) == KEDGE_OK, "%s", reply);
    uint32_t at = kedge_json_find(&doc, 0, key);
    ck_assert_msg(at != KEDGE_JSON_NONE, "no %s in %s", key, reply);
    struct kedge_view v = kedge_json_text(&doc, at);
    snprintf(text, sizeof text, "%.*s", (int)v.len, (const char *)v.ptr);
    return text;
}

/* Ends a trainer by the end of its input: it must free everything (sanitizers look) and say 0. */
static void finish(struct kedge_process *p)
{
    int status = -1;
    close(p->in_fd);
    p->in_fd = -1;
    for (int i = 0; i < 6000 && !kedge_process_poll(p, &status); i++) {
        usleep(10000);
    }
    ck_assert_int_eq(status, 0);
    kedge_process_stop(p, SIGTERM, 1000);
}

static uint64_t count_of(const char *reply, const char *key)
{
    uint64_t v = 0;
    ck_assert_int_eq(kedge_decimal_decode(kedge_view_str(member(reply, key)), UINT64_MAX, &v), KEDGE_OK);
    return v;
}

static void path_of(const char *name, char out[256])
{
    snprintf(out, 256, "%s/%s", dir, name);
}

static void make_base(const char *name, uint32_t inputs, uint64_t seed)
{
    struct kedge_model_spec spec;
    struct kedge_layout layout;
    char path[256];
    path_of(name, path);
    ck_assert_int_eq(kedge_model_mclr(inputs, 10, &spec, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&spec, &layout, NULL), KEDGE_OK);
    float *values = kedge_mem_new(layout.values_count, sizeof *values);
    kedge_model_init(&spec, seed, values);
    if (seed == 666) {
        values[5] = 1.0f / 0.0f;
    }
    ck_assert_int_eq(kedge_weights_write(path, &layout, values, NULL), KEDGE_OK);
    kedge_mem_free(values);
    kedge_layout_deinit(&layout);
}

static size_t read_file(const char *name, char *out, size_t max)
{
    char path[256];
    path_of(name, path);
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(out, 1, max, f);
    fclose(f);
    return n;
}

static void ask_train(struct kedge_process *p, const char *base, const char *out, const char *more,
                      char reply[4096])
{
    char line[2048];
    snprintf(line, sizeof line,
             "{\"id\":\"t\",\"op\":\"train\"," MODEL "," DATA ",\"base\":\"%s/%s\",\"out\":"
             "\"%s/%s\",\"lr\":\"0.1\",\"l2\":\"0.0001\",\"seed\":\"18446744073709551615\",%s}",
             dir, base, dir, out, more);
    ask(p, line, reply);
}

START_TEST(a_trainer_stays_and_learns)
{
    struct kedge_process p;
    char reply[4096], a[4096], b[4096], line[2048];
    make_base("base", 64, 1);
    start(trainer_path, &p);
    ask_train(&p, "base", "a", "\"epochs\":2,\"batch\":10,\"evaluate_base\":true", reply);
    ck_assert_str_eq(member(reply, "status"), "ok");
    ck_assert_str_eq(member(reply, "id"), "t");
    ck_assert_str_eq(member(reply, "samples"), "1437");
    ck_assert_str_eq(member(reply, "steps"), "288");
    ck_assert_str_eq(member(reply, "batch"), "10");
    ck_assert_str_eq(member(reply, "test_samples"), "360");
    ck_assert_uint_lt(count_of(reply, "test_correct"), 90); /* of the base */
    ck_assert_ptr_nonnull(strstr(member(reply, "engine"), "kedge-train "));
    ask_train(&p, "base", "b", "\"epochs\":2,\"batch\":10", reply);
    ck_assert_ptr_null(strstr(reply, "test_samples"));
    size_t len = read_file("a", a, sizeof a);
    ck_assert_uint_gt(len, 2600);
    ck_assert_uint_eq(read_file("b", b, sizeof b), len);
    ck_assert_mem_eq(a, b,
                     len); /* the second task starts from the base again, not from the first's weights */
    ask_train(&p, "a", "b", "\"steps\":50,\"batch\":10,\"threads\":1", reply);
    ck_assert_str_eq(member(reply, "steps"), "50");
    snprintf(line, sizeof line, "{\"id\":\"e\",\"op\":\"evaluate\"," MODEL "," DATA ",\"base\":\"%s/a\"}",
             dir);
    ask(&p, line, reply);
    ck_assert_str_eq(member(reply, "status"), "ok");
    ck_assert_uint_gt(count_of(reply, "test_correct"), 300);
    finish(&p);
}
END_TEST

/* How far the weights of a file went from the base: the bytes behind the header are floats. */
static double distance_from_base(const char *name)
{
    char a[4096], b[4096];
    size_t len = read_file("base", a, sizeof a);
    double sum = 0;
    ck_assert_uint_eq(read_file(name, b, sizeof b), len);
    for (size_t at = 512; at + 4 <= len; at += 4) { /* behind any header of this model */
        float x, y;
        memcpy(&x, a + at, 4);
        memcpy(&y, b + at, 4);
        sum += ((double)x - (double)y) * ((double)x - (double)y);
    }
    return sum;
}

static void make_base_of(const char *name, const char *model)
{
    static struct kedge_json_token tokens[256];
    struct kedge_json doc;
    struct kedge_model_spec spec;
    struct kedge_layout layout;
    char path[256];
    path_of(name, path);
    ck_assert_int_eq(kedge_json_parse(kedge_view_str(model), tokens, 256, &doc, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_from_json(&doc, 0, &spec, NULL), KEDGE_OK);
    ck_assert_int_eq(kedge_model_layout(&spec, &layout, NULL), KEDGE_OK);
    float *values = kedge_mem_new(layout.values_count, sizeof *values);
    kedge_model_init(&spec, 5, values);
    ck_assert_int_eq(kedge_weights_write(path, &layout, values, NULL), KEDGE_OK);
    kedge_mem_free(values);
    kedge_layout_deinit(&layout);
}

/* A convolutional net on the digits' images, an LSTM on a text: both learn, twice the same, and momentum and
 * clipping change what comes of it. */
START_TEST(other_layers_learn)
{
    static const char *const models[] = {
        "{\"input\":[1,8,8],\"layers\":[{\"type\":\"conv2d\",\"out\":8,\"kernel\":3,\"padding\":1,"
        "\"activation\":\"relu\"},{\"type\":\"maxpool\",\"kernel\":2},{\"type\":\"flatten\"},"
        "{\"type\":\"dropout\",\"rate\":\"0.1\"},{\"type\":\"dense\",\"out\":10}]}",
        "{\"input\":[12],\"layers\":[{\"type\":\"embedding\",\"in\":80,\"out\":4},"
        "{\"type\":\"lstm\",\"out\":16},{\"type\":\"dense\",\"out\":80}]}"};
    struct kedge_process p;
    char reply[4096], line[2048], data[512] = DATA, text[256];
    static char a[32768], b[32768];
    if (_i == 1) { /* the sixth of each seven characters is told by the five before it */
        path_of("text", text);
        FILE *f = fopen(text, "wb");
        ck_assert_ptr_nonnull(f);
        for (int i = 0; i < 400; i++) {
            fputs("to be, ", f);
        }
        fclose(f);
        snprintf(data, sizeof data,
                 "\"data\":{\"train\":{\"format\":\"text\",\"path\":\"%s\",\"window\":12},\"split\":\"0.8\"}",
                 text);
    }
    make_base_of("base", models[_i]);
    start(trainer_path, &p);
    size_t len = 0;
    for (int run = 0; run < 3; run++) {
        snprintf(line, sizeof line,
                 "{\"id\":\"t\",\"op\":\"train\",\"model\":%s,%s,\"base\":\"%s/base\",\"out\":\"%s/"
                 "%s\",\"lr\":\"0.1\","
                 "\"epochs\":4,\"batch\":10,\"seed\":\"9\"%s}",
                 models[_i], data, dir, dir, run == 0 ? "a" : "b",
                 run == 2 ? ",\"momentum\":\"0.5\",\"clip\":\"1\"" : "");
        ask(&p, line, reply);
        ck_assert_msg(strcmp(member(reply, "status"), "ok") == 0, "%s", reply);
        size_t n = run == 0 ? (len = read_file("a", a, sizeof a)) : read_file("b", b, sizeof b);
        ck_assert_uint_eq(n, len);
        ck_assert(run == 0 || (memcmp(a, b, len) == 0) == (run == 1));
    }
    snprintf(line, sizeof line, "{\"id\":\"e\",\"op\":\"evaluate\",\"model\":%s,%s,\"base\":\"%s/a\"}",
             models[_i], data, dir);
    ask(&p, line, reply);
    ck_assert_str_eq(member(reply, "status"), "ok");
    ck_assert_uint_gt(count_of(reply, "test_correct") * 10, count_of(reply, "test_samples") * 8);
    if (_i == 1) { /* a table too small for the text's tokens */
        snprintf(
            line, sizeof line,
            "{\"id\":\"e\",\"op\":\"evaluate\",\"model\":{\"input\":[12],\"layers\":[{\"type\":\"embedding\","
            "\"in\":60,\"out\":4},{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":80}]},%s,"
            "\"base\":\"%s/small\"}",
            data, dir);
        make_base_of("small", "{\"input\":[12],\"layers\":[{\"type\":\"embedding\",\"in\":60,\"out\":4},"
                              "{\"type\":\"flatten\"},{\"type\":\"dense\",\"out\":80}]}");
        ask(&p, line, reply);
        ck_assert_str_eq(member(reply, "code"), "data-shape");
        ck_assert_ptr_nonnull(strstr(member(reply, "message"), "the embedding takes whole numbers"));
    }
    finish(&p);
}
END_TEST

START_TEST(a_pull_keeps_it_near_its_base)
{
    struct kedge_process p;
    char reply[4096], a[4096], b[4096];
    double plain, loss = 0;
    make_base("base", 64, 1);
    start(trainer_path, &p);
    ask_train(&p, "base", "a", "\"epochs\":2,\"batch\":10", reply);
    ck_assert_ptr_null(strstr(reply, "base_loss"));
    ask_train(&p, "base", "b", "\"epochs\":2,\"batch\":10,\"base_loss\":true,\"proximal\":\"0\"", reply);
    ck_assert_int_eq(kedge_real_decode(kedge_view_str(member(reply, "base_loss")), &loss), KEDGE_OK);
    ck_assert(loss > 1 && loss < 4); /* ten classes by chance: log 10 */
    size_t len = read_file("a", a, sizeof a);
    ck_assert_uint_eq(read_file("b", b, sizeof b), len);
    ck_assert_mem_eq(a, b, len); /* measuring and a pull of nothing change nothing */
    plain = distance_from_base("a");
    ck_assert(plain > 0);
    ask_train(&p, "base", "b", "\"epochs\":2,\"batch\":10,\"proximal\":\"1\"", reply);
    ck_assert_str_eq(member(reply, "status"), "ok");
    ck_assert(distance_from_base("b") < 0.7 * plain && distance_from_base("b") > 0);
    ask_train(&p, "base", "b", "\"epochs\":1,\"proximal\":\"-1\"", reply);
    ck_assert_str_eq(member(reply, "code"), "request");
    ck_assert_ptr_nonnull(strstr(member(reply, "message"), "proximal"));
    ask_train(&p, "base", "b", "\"epochs\":1,\"base_loss\":\"yes\"", reply);
    ck_assert_str_eq(member(reply, "code"), "request");
    finish(&p);
}
END_TEST

/* Ditto: a model of the site's own is kept beside the shared one, whose bytes it leaves as they are. */
START_TEST(a_model_of_its_own_is_kept)
{
    struct kedge_process p;
    char reply[4096], more[512], a[4096], b[4096];
    make_base("base", 64, 1);
    start(trainer_path, &p);
    ask_train(&p, "base", "a", "\"epochs\":2", reply);
    snprintf(more, sizeof more,
             "\"epochs\":2,\"evaluate_base\":true,\"personal\":\"%s/own\",\"personal_pull\":\"0.1\"", dir);
    ask_train(&p, "base", "b", more, reply);
    ck_assert_str_eq(member(reply, "status"), "ok");
    uint64_t shared = count_of(reply, "test_correct");
    ck_assert_uint_gt(count_of(reply, "personal_correct"), 250); /* it has learnt, the base has not */
    size_t len = read_file("a", a, sizeof a);
    ck_assert_uint_eq(read_file("b", b, sizeof b), len);
    ck_assert_mem_eq(a, b, len);
    double once = distance_from_base("own");
    ck_assert(once > 0);
    ask_train(&p, "base", "b", more, reply);
    ck_assert_uint_eq(count_of(reply, "test_correct"), shared);
    ck_assert(distance_from_base("own") > once);
    char line[2048];
    snprintf(line, sizeof line,
             "{\"id\":\"e\",\"op\":\"evaluate\"," MODEL "," DATA
             ",\"base\":\"%s/base\",\"personal\":\"%s/own\"}",
             dir, dir);
    ask(&p, line, reply);
    ck_assert_uint_gt(count_of(reply, "personal_correct"), 250);
    snprintf(more, sizeof more, "\"epochs\":1,\"personal\":\"%s\"", "");
    ask_train(&p, "base", "b", more, reply);
    ck_assert_str_eq(member(reply, "code"), "request");
    finish(&p);
}
END_TEST

/* FedRep: in each phase the tensors named change, the others keep their bytes; the biases come last. */
START_TEST(phases_train_parts)
{
#define PHASE(tensor) "{\"tensors\":[\"0." tensor "\"],\"epochs\":2}"
    struct kedge_process p;
    char reply[4096], base[4096], a[4096], b[4096];
    make_base("base", 64, 1), start(trainer_path, &p);
    ask_train(&p, "base", "a", "\"epochs\":1,\"phases\":[" PHASE("bias") "]", reply);
    ask_train(&p, "base", "b", "\"epochs\":1,\"phases\":[" PHASE("bias") "," PHASE("weight") "]", reply);
    const size_t len = read_file("base", base, sizeof base), at = len - 10 * sizeof(float);
    ck_assert(read_file("a", a, sizeof a) == len && read_file("b", b, sizeof b) == len);
    ck_assert(memcmp(base, a, at) == 0 && memcmp(base, b, at) != 0 && memcmp(a + at, b + at, len - at) == 0
              && memcmp(base + at, b + at, len - at) != 0);
    finish(&p);
}
END_TEST

START_TEST(the_end_of_input_ends_it)
{
    struct kedge_process p;
    start(_i ? identity_path : trainer_path, &p);
    finish(&p);
}
END_TEST

static const struct {
    const char *line, *code, *says;
} bad[] = {
    {"hello", "request", "JSON byte 0"},
    {"{}", "request", "\\\"id\\\" is missing"},
    {"[1]", "request", "\\\"id\\\" is missing"},
    {"{\"id\":\"1\"}", "request", "\\\"op\\\""},
    {"{\"id\":\"1\",\"op\":\"destroy\"}", "request", "\\\"op\\\""},
    {"{\"id\":\"1\",\"op\":\"train\",\"color\":1}", "request", "unknown key \\\"color\\\""},
    {"{\"id\":\"1\",\"op\":\"evaluate\"}", "request", "\\\"base\\\" is missing"},
    {"{\"id\":\"1\",\"op\":\"evaluate\",\"base\":\"x\"}", "request", "\\\"model\\\" is missing"},
    {"{\"id\":\"1\",\"op\":\"evaluate\",\"base\":\"x\"," MODEL "}", "request", "\\\"data\\\" is missing"},
    {"{\"id\":\"1\",\"op\":\"evaluate\",\"base\":\"x\",\"model\":{\"preset\":\"cnn\"}," DATA "}", "request",
     "mclr"},
    {"{\"id\":\"1\",\"op\":\"evaluate\",\"base\":\"/nonexistent\"," MODEL "," DATA "}", "model",
     "/nonexistent: No such"},
    {"{\"id\":\"1\",\"op\":\"evaluate\",\"base\":\"data/digits/digits-labels.idx\"," MODEL "," DATA "}",
     "model", "digits-labels.idx: not a safetensors file"},
    {"{\"id\":\"1\",\"op\":\"evaluate\",\"base\":\"x\"," MODEL
     ",\"data\":{\"train\":{\"format\":\"csv\",\"path\":\"/nonexistent\"}}}",
     "data-missing", "/nonexistent: No such"},
    {"{\"id\":\"1\",\"op\":\"train\",\"base\":\"x\",\"out\":\"y\",\"lr\":[0.1],\"epochs\":1," MODEL "," DATA
     "}",
     "request", "\\\"lr\\\": expected a string"},
    {"{\"id\":\"1\",\"op\":\"train\",\"base\":\"x\",\"out\":\"y\",\"epochs\":1," MODEL "," DATA "}",
     "request", "\\\"lr\\\" is missing"},
    {"{\"id\":\"1\",\"op\":\"train\",\"base\":\"x\",\"out\":\"y\",\"lr\":\"0.1\"," MODEL "," DATA "}",
     "request", "\\\"epochs\\\" or \\\"steps\\\""},
    {"{\"id\":\"1\",\"op\":\"train\",\"base\":\"x\",\"lr\":\"0.1\",\"epochs\":1," MODEL "," DATA "}",
     "request", "\\\"out\\\" is missing"},
    {"{\"id\":\"1\",\"op\":\"evaluate\",\"base\":\"x\",\"batch\":0," MODEL "," DATA "}", "request",
     "\\\"batch\\\""},
    {"{\"id\":\"1\",\"op\":\"evaluate\",\"base\":\"x\",\"seed\":7," MODEL "," DATA "}", "request",
     "\\\"seed\\\""},
};

START_TEST(bad_requests_are_answered_and_survived)
{
    struct kedge_process p;
    char reply[4096];
    make_base("base", 64, 1);
    start(trainer_path, &p);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ask(&p, bad[i].line, reply);
        ck_assert_str_eq(member(reply, "status"), "error");
        ck_assert_msg(strcmp(member(reply, "code"), bad[i].code) == 0, "%s", reply);
        ck_assert_msg(strstr(member(reply, "message"), bad[i].says) != NULL, "\"%s\" in %s", bad[i].says,
                      reply);
    }
    ask_train(&p, "base", "a", "\"epochs\":1,\"batch\":10", reply);
    ck_assert_str_eq(member(reply, "status"), "ok");
    finish(&p);
}
END_TEST

START_TEST(bad_models_and_results_leave_no_file)
{
    struct kedge_process p;
    char reply[4096], path[256];
    make_base("wide", 65, 1);
    make_base("infinite", 64, 666);
    make_base("base", 64, 1);
    path_of("none", path);
    start(trainer_path, &p);
    ask_train(&p, "wide", "none", "\"epochs\":1", reply);
    ck_assert_str_eq(member(reply, "code"), "model");
    ck_assert_ptr_nonnull(strstr(reply, "shape [10,65], expected [10,64]"));
    ask_train(&p, "infinite", "none", "\"epochs\":1", reply);
    ck_assert_str_eq(member(reply, "code"), "model");
    ck_assert_ptr_nonnull(strstr(reply, "NaN or infinity"));
    ck_assert_int_ne(access(path, F_OK), 0);
    ask_train(&p, "base", "no/such/folder", "\"epochs\":1", reply);
    ck_assert_str_eq(member(reply, "code"), "output");
    char line[2048];
    snprintf(line, sizeof line,
             "{\"id\":\"d\",\"op\":\"train\"," MODEL "," DATA ",\"base\":\"%s/base\",\"out\":"
             "\"%s/none\",\"lr\":\"1000000\",\"l2\":\"1000\",\"epochs\":3}",
             dir, dir);
    ask(&p, line, reply);
    ck_assert_str_eq(member(reply, "code"), "diverged");
    ck_assert_int_ne(access(path, F_OK), 0);
    finish(&p);
}
END_TEST

START_TEST(long_lines_are_refused_and_skipped)
{
    struct kedge_process p;
    char reply[4096];
    char *line = kedge_mem_new(200001, 1);
    memset(line, ' ', 200000);
    start(trainer_path, &p);
    ask(&p, line, reply);
    ck_assert_str_eq(member(reply, "status"), "error");
    ck_assert_ptr_nonnull(strstr(reply, "at most"));
    ask(&p, "{\"id\":\"7\"}", reply);
    ck_assert_str_eq(member(reply, "id"), "7");
    kedge_mem_free(line);
    finish(&p);
}
END_TEST

static void write_csv(const char *path, const char *text)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(the_stamp_follows_the_files)
{
    struct kedge_data_binding b = {.train = {.format = KEDGE_DATA_CSV}};
    path_of("s.csv", b.train.path);
    write_csv(b.train.path, "1,2\n");
    uint64_t before = kedge_data_binding_stamp(&b);
    ck_assert_uint_ne(before, 0);
    ck_assert(kedge_data_binding_stamp(&b) == before);
    write_csv(b.train.path, "1,2\n3,4\n");
    ck_assert(kedge_data_binding_stamp(&b) != before);
    ck_assert_int_eq(unlink(b.train.path), 0);
    ck_assert_uint_eq(kedge_data_binding_stamp(&b), 0);
}
END_TEST

START_TEST(identity_copies)
{
    struct kedge_process p;
    char reply[4096], line[1024], a[4096], b[4096];
    make_base("base", 64, 1);
    start(identity_path, &p);
    for (int i = 0; i < 2; i++) { /* twice: out is replaced */
        snprintf(line, sizeof line,
                 "{\"id\":\"i\",\"op\":\"train\",\"base\":\"%s/base\",\"out\":\"%s/a\","
                 "\"samples\":17,\"epochs\":1}",
                 dir, dir);
        ask(&p, line, reply);
        ck_assert_str_eq(member(reply, "status"), "ok");
        ck_assert_str_eq(member(reply, "samples"), "17");
    }
    size_t len = read_file("base", a, sizeof a);
    ck_assert_uint_eq(read_file("a", b, sizeof b), len);
    ck_assert_mem_eq(a, b, len);
    snprintf(line, sizeof line, "{\"id\":\"i\",\"op\":\"train\",\"base\":\"%s/absent\",\"out\":\"%s/a\"}",
             dir, dir);
    ask(&p, line, reply);
    ck_assert_str_eq(member(reply, "code"), "output");
    finish(&p);
}
END_TEST

/* The reply names what trained; without a device a task is done all the same, and stderr says so once. */
START_TEST(a_device_that_is_not_there_stops_nothing)
{
    struct kedge_process p;
    static const char *const precisions[] = {"f32", "tf32", "bf16"};
    char reply[4096], words[512] = "", wish[128], fallback[4096];
    const char *argv[] = {trainer_path, NULL};
    struct kedge_process_options o = {
        .argv = argv, .pipe_stdin = true, .pipe_stdout = true, .pipe_stderr = true, .die_with_parent = true};
    ck_assert_int_eq(kedge_process_start(&o, &p, NULL), KEDGE_OK);
    make_base("dev", 64, 1);
    ask_train(&p, "dev", "dev-cpu", "\"epochs\":1,\"device\":\"cpu\"", reply);
    ck_assert_ptr_nonnull(strstr(member(reply, "engine"), " cpu openblas"));
    ck_assert_ptr_null(strstr(reply, "fallback"));
    ask_train(&p, "dev", "dev-cuda", "\"epochs\":1,\"device\":\"cuda\"", reply);
    ck_assert_str_eq(member(reply, "status"), "ok");
    bool is_cuda = strstr(member(reply, "engine"), " cuda ") != NULL;
    ck_assert(is_cuda || strstr(member(reply, "engine"), " cpu openblas"));
    for (int i = 0; i < 3; i++) {
        snprintf(wish, sizeof wish, "\"epochs\":1,\"device\":\"auto\",\"precision\":\"%s\"", precisions[i]);
        ask_train(&p, "dev", "dev-auto", wish, reply);
        ck_assert_str_eq(member(reply, "status"), "ok");
    }
    snprintf(fallback, sizeof fallback, "%s",
             strstr(reply, "\"fallback\":") ? strstr(reply, "\"fallback\":") : "");
    ask_train(&p, "dev", "dev-no", "\"epochs\":1,\"device\":\"tpu\"", reply);
    ck_assert_ptr_nonnull(strstr(member(reply, "message"), "device"));
    ask_train(&p, "dev", "dev-no", "\"epochs\":1,\"precision\":\"f16\"", reply);
    ck_assert_ptr_nonnull(strstr(member(reply, "message"), "precision"));
    ssize_t n = is_cuda ? 0 : read(p.err_fd, words, sizeof words - 1);
    if (!is_cuda) { /* one line, and the same weights as without a device */
        char a[4096], b[4096];
        size_t len = read_file("dev-cpu", a, sizeof a);
        ck_assert_int_gt(n, 0);
        ck_assert_ptr_nonnull(strstr(words, "kedge-train: CUDA is not used: "));
        ck_assert_ptr_nonnull(strstr(fallback, "CUDA is not used: "));
        ck_assert_ptr_eq(strchr(words, '\n'), words + n - 1);
        ck_assert_uint_eq(read_file("dev-cuda", b, sizeof b), len);
        ck_assert_int_eq(memcmp(a, b, len), 0);
    }
    finish(&p);
}
END_TEST

/* For people and doctors: a line for the module, and where it loads one for the device. */
START_TEST(it_tells_its_devices)
{
    struct kedge_process p;
    char said[4096] = "";
    size_t len = 0;
    const char *argv[] = {trainer_path, "--devices", NULL};
    struct kedge_process_options o = {.argv = argv, .pipe_stdout = true, .die_with_parent = true};
    ck_assert_int_eq(kedge_process_start(&o, &p, NULL), KEDGE_OK);
    for (ssize_t n = 1; n > 0 && len < sizeof said - 1; len += (size_t)n) {
        n = read(p.out_fd, said + len, sizeof said - 1 - len);
        ck_assert_int_ge(n, 0);
    }
    kedge_process_stop(&p, SIGTERM, 1000);
    const bool loads = strstr(said, "\nmodule: ") != NULL;
    ck_assert_msg(strncmp(said, "cpu: openblas\n", 14) == 0, "%s", said);
    ck_assert(loads || strstr(said, "\nno module: this installation has no kedge-train-cuda.so\n"));
    ck_assert(!loads || strstr(said, "\ndevice: cuda ") || strstr(said, "\nno device: "));
}
END_TEST

int main(int argc, char **argv)
{
    if (argc != 3 || !mkdtemp(dir)) {
        fprintf(stderr, "usage: test_train_contract KEDGE_TRAIN IDENTITY\n");
        return 2;
    }
    trainer_path = argv[1];
    identity_path = argv[2];
    Suite *suite = suite_create("contract");
    TCase *tc = tcase_create("contract");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_trainer_stays_and_learns);
    tcase_add_loop_test(tc, other_layers_learn, 0, 2);
    tcase_add_test(tc, a_pull_keeps_it_near_its_base);
    tcase_add_test(tc, a_model_of_its_own_is_kept);
    tcase_add_test(tc, phases_train_parts);
    tcase_add_loop_test(tc, the_end_of_input_ends_it, 0, 2);
    tcase_add_test(tc, bad_requests_are_answered_and_survived);
    tcase_add_test(tc, bad_models_and_results_leave_no_file);
    tcase_add_test(tc, long_lines_are_refused_and_skipped);
    tcase_add_test(tc, the_stamp_follows_the_files);
    tcase_add_test(tc, identity_copies);
    tcase_add_test(tc, a_device_that_is_not_there_stops_nothing);
    tcase_add_test(tc, it_tells_its_devices);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    static const char *const names[] = {"base", "a",       "b",        "own",      "wide", "infinite",
                                        "dev",  "dev-cpu", "dev-cuda", "dev-auto", "text", "small"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[256];
        path_of(names[i], path);
        unlink(path);
    }
    return rmdir(dir) != 0 || failed != 0; /* nothing else may have been left behind */
}
