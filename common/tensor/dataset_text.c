/* Windows of a text: sample i is the characters from i · step on, its label the one after them. Windows
 * overlap in memory (struct kedge_dataset's stride), so a text costs a byte a character and a label a window.
 */
#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"
#include "common/tensor/dataset_impl.h"

/* LEAF's 80 characters of Shakespeare, in its order (Caldas et al. 2018). */
const char kedge_text_alphabet[] =
    "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}";

/* The token of every byte; of those that the alphabet lacks the space's, or the first where it lacks that. */
static int make_table(const char *alphabet, uint8_t table[256], struct kedge_diag *reterr)
{
    const char *space = strchr(alphabet, ' ');
    bool seen[256] = {false};
    memset(table, space ? (int)(space - alphabet) : 0, 256);
    for (uint32_t i = 0; alphabet[i] != '\0'; i++) {
        uint8_t c = (uint8_t)alphabet[i];
        if (seen[c]) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT, "\"alphabet\": byte %u is there twice", c);
        }
        seen[c] = true;
        table[c] = (uint8_t)i;
    }
    return KEDGE_OK;
}

/* A sample is a window into the text, so the text is kept once however much windows overlap. */
int kedge_dataset_load_text(const struct kedge_data_source *source, struct kedge_dataset *ds,
                            struct kedge_diag *reterr)
{
    uint8_t *file, table[256];
    size_t len;
    KEDGE_TRY(make_table(source->x, table, reterr));
    KEDGE_TRY(kedge_data_file_read(source->path, &file, &len, reterr));
    ds->storage = file;
    if (len <= source->window || (len - source->window - 1) / source->step >= UINT32_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "%s: %zu bytes, expected more than a window of %u",
                              source->path, len, source->window);
    }
    ds->n = (uint32_t)((len - source->window - 1) / source->step + 1);
    ds->features = source->window;
    ds->stride = source->step;
    ds->bytes = file;
    ds->scale = 1.0f;
    ds->labels = kedge_mem_new(ds->n, sizeof *ds->labels);
    if (!ds->labels) {
        return kedge_diag_set(reterr, KEDGE_E_NOMEM, "%s: no memory for %u labels", source->path, ds->n);
    }
    for (size_t i = 0; i < len; i++) {
        file[i] = table[file[i]];
    }
    for (uint32_t i = 0; i < ds->n; i++) {
        ds->labels[i] = file[(size_t)i * source->step + source->window];
    }
    return KEDGE_OK;
}

/* Windows from … from + count of a text, with the characters they need and no others. */
static int take_windows(const struct kedge_dataset *all, uint32_t from, uint32_t count,
                        struct kedge_dataset *ret)
{
    size_t len = (size_t)(count - 1) * all->stride + all->features;
    struct kedge_dataset out = *all;
    uint8_t *bytes = kedge_mem_new(len, 1);
    out.n = count;
    out.labels = kedge_mem_new(count, sizeof *out.labels);
    out.storage = bytes;
    if (!bytes || !out.labels) {
        kedge_dataset_deinit(&out);
        return KEDGE_E_NOMEM;
    }
    memcpy(bytes, all->bytes + (size_t)from * all->stride, len);
    memcpy(out.labels, all->labels + from, count * sizeof *out.labels);
    out.bytes = bytes;
    *ret = out;
    return KEDGE_OK;
}

/* Split by place and not by chance: windows that share characters would put parts of the test text
 * into the training. */
int kedge_dataset_split_text(const struct kedge_dataset *all, uint32_t kept, struct kedge_dataset *train,
                             struct kedge_dataset *test, struct kedge_diag *reterr)
{
    uint32_t apart = all->features / all->stride + 1; /* no character is in both */
    if (all->n - kept <= apart) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "\"split\": %u windows after the first %u are too few: those that share "
                              "characters with them are left out, %u here",
                              all->n - kept, kept, apart);
    }
    int err = take_windows(all, 0, kept, train);
    if (!err) {
        err = take_windows(all, kept + apart, all->n - kept - apart, test);
        if (err) {
            kedge_dataset_deinit(train);
        }
    }
    return err ? kedge_diag_set(reterr, err, "no memory for %u windows", all->n) : KEDGE_OK;
}
