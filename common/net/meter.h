/* Internal to net: how many bytes of replies are on their way to one peer. nng reports a reply as sent
 * as soon as it has taken it, with up to a whole chunk still in memory; the TLS engine knows what really
 * left. */
#ifndef KEDGE_COMMON_NET_METER_H
#define KEDGE_COMMON_NET_METER_H

#include <stdbool.h>
#include <stddef.h>

/* Counted; a meter outlives its connection and its server. */
struct kedgei_meter;

/* left(arg, n): n bytes less on their way. Called with the connection's and the meter's locks held. NULL
 * without memory. */
struct kedgei_meter *kedgei_meter_new(void (*left)(void *arg, size_t n), void *arg);
void kedgei_meter_hold(struct kedgei_meter *meter);
void kedgei_meter_drop(struct kedgei_meter *meter); /* NULL is fine */
/* n bytes more on their way; false when the meter is stopped, and nothing is counted. */
bool kedgei_meter_add(struct kedgei_meter *meter, size_t n);
void kedgei_meter_sent(struct kedgei_meter *meter, size_t n);
/* All that was on its way has left, or is lost; left is not called any more once this returns. */
void kedgei_meter_stop(struct kedgei_meter *meter);

#endif
