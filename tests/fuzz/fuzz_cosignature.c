/* Lines added to notes, and notes merged: what comes out is a note that has every line of what went in but
 * the replaced one, byte for byte, and adding again changes nothing. The input is two notes, parted by a NUL.
 */
#include <string.h>

#include "chain/log/cosignature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct kedge_note before, after, from;

static bool has_key(const struct kedge_note *note, const struct kedge_note_line *line)
{
    for (uint32_t i = 0; i < note->line_count; i++) {
        if (kedge_view_eq(note->lines[i].name, line->name)
            && memcmp(note->lines[i].id, line->id, KEDGE_KEY_ID_LEN) == 0) {
            return true;
        }
    }
    return false;
}

static bool has_line(const struct kedge_note *note, struct kedge_view line)
{
    for (uint32_t i = 0; i < note->line_count; i++) {
        if (kedge_view_eq(note->lines[i].line, line)) {
            return true;
        }
    }
    return false;
}

static void try_add(struct kedge_view note, struct kedge_view line)
{
    struct kedge_buf once KEDGE_CLEANUP(kedge_buf_deinit), twice KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&once, KEDGE_NOTE_MAX);
    kedge_buf_init(&twice, KEDGE_NOTE_MAX);
    if (kedge_note_add_line(note, line, &once) != KEDGE_OK) {
        KEDGE_ASSERT(once.len == 0);
        return;
    }
    KEDGE_ASSERT(kedge_note_parse(note, &before) == KEDGE_OK);
    KEDGE_ASSERT(kedge_note_parse(kedge_buf_view(&once), &after) == KEDGE_OK);
    KEDGE_ASSERT(kedge_view_eq(before.text, after.text) && has_line(&after, line));
    KEDGE_ASSERT(kedge_note_add_line(kedge_buf_view(&once), line, &twice) == KEDGE_OK);
    KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&once), kedge_buf_view(&twice)));
    for (uint32_t i = 0; i < before.line_count; i++) {
        KEDGE_ASSERT(has_key(&after, &before.lines[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const uint8_t *nul = len ? memchr(data, 0, len) : NULL;
    size_t at = nul ? (size_t)(nul - data) : len;
    struct kedge_view note = kedge_view_of(data, at);
    struct kedge_view other = nul ? kedge_view_of(nul + 1, len - at - 1) : note;
    if (kedge_note_parse(other, &from) == KEDGE_OK) {
        uint32_t count = from.line_count;
        for (uint32_t i = 0; i < count && i < 4; i++) {
            KEDGE_ASSERT(kedge_note_parse(other, &from) == KEDGE_OK);
            try_add(note, from.lines[i].line);
        }
        /* What a witness cosigns is what it was given, no matter who else signed it. */
        struct kedge_seed seed = {{1}};
        struct kedge_key_pair pair;
        struct kedge_vkey key;
        kedge_key_from_seed(&seed, &pair);
        struct kedge_buf line KEDGE_CLEANUP(kedge_buf_deinit), out KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&line, KEDGE_COSIGNATURE_LINE_MAX);
        kedge_buf_init(&out, KEDGE_NOTE_MAX);
        KEDGE_ASSERT(kedge_vkey_make(kedge_view_str("w"), KEDGE_KEY_COSIGNATURE, &pair.public, &key)
                     == KEDGE_OK);
        KEDGE_ASSERT(kedge_note_parse(other, &from) == KEDGE_OK);
        if (kedge_cosignature_make(from.text, kedge_view_str("w"), &pair, len, &line) == KEDGE_OK
            && kedge_cosignature_accept(other, kedge_buf_view(&line), &key, 1, &out, NULL) == KEDGE_OK) {
            struct kedge_note_verdict verdict;
            KEDGE_ASSERT(kedge_note_parse(kedge_buf_view(&out), &after) == KEDGE_OK);
            KEDGE_ASSERT(kedge_note_verify(&after, &key, 1, &verdict, NULL) == KEDGE_OK);
            KEDGE_ASSERT(verdict.time_s >= len);
        }
    }
    return 0;
}
