/* An attacker who fills a log fills a disk. So refusals are counted, and at most one line a second says
 * how many there were and who was the last. */
#include "common/net/admission/pressure.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/os/log.h"
#include "common/base/text.h"

#define NS_PER_S 1000000000u
enum { KEY_SHOWN = 8 }; /* bytes of a key, enough to find it in a list of sites */

void kedgei_pressure_note(struct kedgei_pressure *p, enum kedgei_pressure_kind kind,
                          const uint8_t address[16], const struct kedge_public_key *key)
{
    p->count[kind]++;
    memcpy(p->address, address, sizeof p->address);
    p->has_key = key != NULL;
    if (key) {
        p->key = *key;
    }
}

static void format_peer(const struct kedgei_pressure *p, char *out, size_t out_len)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff}, none[16] = {0};
    char address[INET6_ADDRSTRLEN] = "ipc", key[2 * KEY_SHOWN + 1];
    bool v4 = memcmp(p->address, mapped, sizeof mapped) == 0;
    if (memcmp(p->address, none, sizeof none) != 0) {
        (void)inet_ntop(v4 ? AF_INET : AF_INET6, p->address + (v4 ? sizeof mapped : 0), address,
                        sizeof address);
    }
    kedge_hex_encode(p->key.b, KEY_SHOWN, key);
    snprintf(out, out_len, "%s%s%s", address, p->has_key ? ", key " : "", p->has_key ? key : "");
}

bool kedgei_pressure_say(struct kedgei_pressure *p, const char *server, uint64_t now_ns)
{
    const uint64_t *n = p->count;
    char peer[INET6_ADDRSTRLEN + 64];
    if (n[KEDGEI_TURNED_AWAY] + n[KEDGEI_EVICTED] + n[KEDGEI_PUT_OFF] == 0) {
        return false;
    }
    if (p->said_ns != 0 && now_ns < p->said_ns + NS_PER_S) {
        return true;
    }
    format_peer(p, peer, sizeof peer);
    kedge_log(KEDGE_LOG_WARN, "turned away",
              "%s: %" PRIu64 " connections refused, %" PRIu64 " idle ones closed, %" PRIu64
              " requests told to come later; the last: %s",
              server, n[KEDGEI_TURNED_AWAY], n[KEDGEI_EVICTED], n[KEDGEI_PUT_OFF], peer);
    *p = (struct kedgei_pressure){.said_ns = now_ns};
    return false;
}
