/* Notes and vkeys: accepting means that the parts are the whole, byte for byte. */
#include <string.h>

#include "chain/log/note.h"
#include "common/base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void try_vkey(struct kedge_view text)
{
    struct kedge_vkey v;
    if (kedge_vkey_decode(text, &v) == KEDGE_OK) {
        struct kedge_buf b KEDGE_CLEANUP(kedge_buf_deinit);
        kedge_buf_init(&b, KEDGE_VKEY_MAX);
        kedge_vkey_encode(&v, &b);
        KEDGE_ASSERT(kedge_view_eq(kedge_buf_view(&b), text));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    static struct kedge_note note;
    struct kedge_view bytes = kedge_view_of(data, len);
    try_vkey(bytes);
    if (kedge_note_parse(bytes, &note) != KEDGE_OK) {
        return 0;
    }
    size_t total = note.text.len + 1;
    KEDGE_ASSERT(note.text.ptr == data && note.line_count > 0);
    for (uint32_t i = 0; i < note.line_count; i++) {
        KEDGE_ASSERT(note.lines[i].line.ptr == data + total);
        KEDGE_ASSERT(kedge_key_name_is_valid(note.lines[i].name));
        total += note.lines[i].line.len;
    }
    KEDGE_ASSERT(total == len);
    /* A key that nobody made signs nothing: with the note's own names and IDs it must fail, never crash. */
    struct kedge_vkey known = {.type = (len % 2) ? KEDGE_KEY_ED25519 : KEDGE_KEY_COSIGNATURE};
    memset(known.key.b, 0x5a, sizeof known.key.b);
    memcpy(known.name, note.lines[0].name.ptr, note.lines[0].name.len);
    memcpy(known.id, note.lines[0].id, sizeof known.id);
    KEDGE_ASSERT(kedge_note_verify(&note, &known, 1, NULL, NULL) == KEDGE_E_VERIFY);
    return 0;
}
