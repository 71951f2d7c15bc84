/* What an operator watches of a coordinator: version, how long it runs, room on its disk, and what wants
 * looking at, in words. On the loop thread. */
#ifndef KEDGE_COORDINATOR_DAEMON_ADMIN_HEALTH_H
#define KEDGE_COORDINATOR_DAEMON_ADMIN_HEALTH_H

struct json_t;
struct kedge_host;

#define KEDGE_COORDINATOR_VERSION "0.1.0"

/* Adds "version", "uptime_s", "disk" {"free_bytes", "total_bytes"}, "warnings" [text] to an object. */
void kedge_host_put_health(const struct kedge_host *h, struct json_t *o);

#endif
