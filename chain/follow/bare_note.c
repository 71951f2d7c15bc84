#include "chain/follow/bare_note.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/try.h"

static bool is_of(const struct kedge_note_line *line, const struct kedge_vkey *vkey)
{
    return kedge_view_eq(line->name, kedge_view_str(vkey->name))
           && memcmp(line->id, vkey->id, sizeof vkey->id) == 0;
}

/* Lines are tried one at a time, because a note may have several that bear the log's name and key id and
 * only one of them need hold: anybody who passes a note on can add lines. */
static int find_line(const struct kedge_note *note, const struct kedge_vkey *log, struct kedge_note *one,
                     struct kedge_view *ret)
{
    for (uint32_t i = 0; i < note->line_count; i++) {
        one->text = note->text;
        one->line_count = 1;
        one->lines[0] = note->lines[i];
        int err = is_of(&note->lines[i], log) ? kedge_note_verify(one, log, 1, NULL, NULL) : KEDGE_E_VERIFY;
        if (err != KEDGE_E_VERIFY) {
            *ret = note->lines[i].line;
            return err;
        }
    }
    return KEDGE_E_VERIFY;
}

int kedge_follow_bare_note(struct kedge_view note, const struct kedge_vkey *log, struct kedge_buf *ret_note)
{
    struct kedge_note *two KEDGE_CLEANUP(kedge_mem_release) =
        kedge_mem_new(2, sizeof *two); /* too large for a stack */
    struct kedge_view line;
    KEDGE_TRY(two ? kedge_note_parse(note, &two[0]) : KEDGE_E_NOMEM);
    KEDGE_TRY(find_line(&two[0], log, &two[1], &line));
    kedge_buf_put(ret_note, two[0].text.ptr, two[0].text.len);
    kedge_buf_put_str(ret_note, "\n");
    kedge_buf_put(ret_note, line.ptr, line.len);
    return ret_note->err;
}
