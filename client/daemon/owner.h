/* What a site's owner asks of kedge-client beside running it. */
#ifndef KEDGE_CLIENT_DAEMON_OWNER_H
#define KEDGE_CLIENT_DAEMON_OWNER_H

/* `kedge-client status --site DIR [--format json|text]`; argv begins with "status". Prints to stdout; returns
 * the exit code: 0 it runs and works, 1 it does not run, was stopped or refuses, 2 usage, 3 nothing to read.
 */
int kedge_client_status_main(int argc, char **argv);

#endif
