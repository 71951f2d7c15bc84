/* "Did you mean": the word with the fewest slips, where a slip is a character too many, missing,
 * wrong, or two exchanged (Damerau-Levenshtein in its restricted form). Three rows of the table are
 * enough for the exchange. At most two slips are forgiven, and never as many as the word is long:
 * everything would be near a short word. */
#include "common/base/nearest.h"

#include <string.h>

enum { WORD_MAX = 32, SLIPS_MAX = 2 };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned distance(const char *a, const char *b)
{
    unsigned row[3][WORD_MAX + 1];
    size_t n = strlen(a), m = strlen(b);
    if (n > WORD_MAX || m > WORD_MAX) {
        return WORD_MAX;
    }
    for (size_t j = 0; j <= m; j++) {
        row[0][j] = (unsigned)j;
    }
    for (size_t i = 1; i <= n; i++) {
        unsigned *now = row[i % 3];
        const unsigned *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= m; j++) {
            now[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                now[j] = least(now[j], before[j - 2] + 1);
            }
        }
    }
    return row[n % 3][m];
}

const char *kedge_nearest(const char *word, const char *const *words, size_t count)
{
    const char *best = NULL;
    unsigned slips = SLIPS_MAX + 1;
    for (size_t i = 0; i < count; i++) {
        unsigned d = distance(word, words[i]);
        if (d < slips && d < strlen(words[i])) {
            slips = d;
            best = words[i];
        }
    }
    return best;
}

void kedge_nearest_hint(struct kedge_diag *d, const char *word, const char *const *words, size_t count,
                        const char *otherwise)
{
    const char *near = kedge_nearest(word, words, count);
    if (near) {
        (void)kedge_diag_hint(d, "did you mean \"%s\"?", near);
    } else if (otherwise[0]) {
        (void)kedge_diag_hint(d, "%s", otherwise);
    }
}
