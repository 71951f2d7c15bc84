/* How fast chunks and small requests go through Kedge's server and client, and what the machine itself
 * can do. */
#ifndef KEDGE_BENCH_BENCH_TRANSPORT_H
#define KEDGE_BENCH_BENCH_TRANSPORT_H

#include "common/net/server.h"

/* Bytes per second of 4 MiB replies over loopback with `in_flight` calls at a time. Negative kedge_err
 * on failure. */
double kedge_bench_chunks(enum kedge_net_kind kind, unsigned in_flight, unsigned chunks);
/* Median seconds of one 1 KB request and reply, one in flight. */
double kedge_bench_latency(enum kedge_net_kind kind, unsigned calls);
/* Bytes per second of send(2) to recv(2) over loopback TCP, 1 MiB at a time. */
double kedge_bench_loopback(unsigned chunks);
/* The same through OpenSSL's TLS 1.3, AES-256-GCM, one blocking thread at each end. */
double kedge_bench_openssl(unsigned chunks);
/* Bytes per second of memcpy between two 4 MiB blocks. */
double kedge_bench_memcpy(unsigned chunks);

#endif
