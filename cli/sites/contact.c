/* kedge contact set, show, forget: who answers for a site or a tenant. The ledger gets a commitment, the text
 * stays in a file of the organisation. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chain/statement/contact.h"
#include "chain/statement/statement.h"
#include "cli/cli.h"
#include "cli/local.h"
#include "cli/sites/contact.h"
#include "common/base/mem.h"
#include "common/base/os/file.h"
#include "common/base/try.h"

/* One file; errors name it. */
static int cli_contact_read(const char *path, struct kedge_contact *ret, struct kedge_diag *d)
{
    struct kedge_buf text;
    int err = kedge_cli_read_file(path, KEDGE_CONTACT_FILE_MAX, &text, d);
    if (!err) {
        err = kedge_contact_read(kedge_buf_view(&text), ret, d);
        err = err ? kedge_diag_wrap(d, err, "%s", path) : KEDGE_OK;
    }
    kedge_buf_deinit(&text);
    return err;
}

/* ---- set ---- */

/* The ledger gets a commitment only. Salt and text are in this one file, so that a person's name can be
 * forgotten where a ledger never forgets. */
static int make_opening(const char *text_path, const char *path, struct kedge_contact *contact,
                        struct kedge_diag *d)
{
    struct kedge_buf text KEDGE_CLEANUP(kedge_buf_deinit), file KEDGE_CLEANUP(kedge_buf_deinit);
    kedge_buf_init(&file, KEDGE_CONTACT_FILE_MAX);
    KEDGE_TRY(kedge_cli_read_file(text_path, KEDGE_CONTACT_TEXT_MAX + 1, &text, d));
    struct kedge_view view = kedge_buf_view(&text);
    view.len -= view.len > 0 && view.ptr[view.len - 1] == '\n';
    if (!kedge_contact_text_is_valid(view)) {
        return kedge_diag_set(d, KEDGE_E_FORMAT,
                              "--text-file %s: expected 1 to %d bytes of UTF-8 without control characters",
                              text_path, KEDGE_CONTACT_TEXT_MAX);
    }
    memcpy(contact->text, view.ptr, view.len);
    kedge_commitment_salt_new(&contact->salt);
    KEDGE_TRY(kedge_contact_write(contact, &file));
    return kedge_file_write(path, kedge_buf_view(&file), 0600, d);
}

/* An opening that is there already is sent again: the answer to the first time may have been lost. */
static int take_opening(const char *text_path, const char *path, struct kedge_contact *contact,
                        struct kedge_diag *d)
{
    struct kedge_contact known;
    if (!kedge_file_exists(path)) {
        return text_path
                   ? make_opening(text_path, path, contact, d)
                   : kedge_diag_set(d, KEDGE_E_USAGE, "--text-file FILE is missing: who answers, in words");
    }
    int err = cli_contact_read(path, &known, d);
    if (!err
        && (!kedge_id_eq(&known.tenant, &contact->tenant) || !kedge_id_eq(&known.about, &contact->about))) {
        err = kedge_diag_set(d, KEDGE_E_EXISTS, "--opening %s: there is one already, about somebody else",
                             path);
    } else if (!err && text_path) {
        err =
            kedge_diag_set(d, KEDGE_E_EXISTS,
                           "--opening %s: there is one already; without --text-file it is sent again", path);
    }
    *contact = err ? *contact : known;
    return err;
}

/* The statement holds the commitment and no word of the text (docs/record.md). */
static int send_contact(struct kedge_cli *c, const struct kedge_contact *contact, json_t **ret,
                        struct kedge_diag *d)
{
    struct kedge_key_pair admin;
    json_t *envelope = NULL;
    struct kedge_statement *st = kedge_mem_new(1, sizeof *st);
    int err = st ? kedge_cli_key(c->admin_key, false, &admin, d)
                 : kedge_diag_set(d, KEDGE_E_NOMEM, "out of memory");
    if (!err) {
        st->kind = KEDGE_ST_CONTACT;
        st->u.contact = (struct kedge_st_contact){.tenant = contact->tenant, .about = contact->about};
        kedge_contact_commitment(contact, &st->u.contact.commitment);
        err = kedge_cli_sign(c, st, &admin, &envelope, d);
        kedge_key_wipe(&admin);
    }
    kedge_mem_free(st);
    return err ? err
               : kedge_cli_admin(c,
                                 json_pack("{s:s,s:s,s:o}", "verb", "contact.set", "tenant",
                                           contact->tenant.s, "envelope", envelope),
                                 ret, d);
}

/* The file is written before the commitment is sent: a commitment without its opening could never be shown.
 * One that the ledger refused for good is removed again, one whose answer was lost is kept. */
int kedge_cmd_contact_set(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_contact contact = {.text = ""};
    json_t *o = NULL;
    const char *text = kedge_cli_option(c, "text-file", NULL), *path = kedge_cli_option(c, "opening", NULL);
    const char *tenant = kedge_cli_argument(c, 0), *site = kedge_cli_argument(c, 1);
    if (!tenant || kedge_id_from(kedge_view_str(tenant), &contact.tenant) != KEDGE_OK
        || (site && kedge_id_from(kedge_view_str(site), &contact.about) != KEDGE_OK)) {
        return kedge_cli_usage(
            c, "expected TENANT, and SITE unless it is about the tenant: names of a-z, 0-9, '.', '_', '-'");
    }
    if (!path) {
        return kedge_cli_usage(c, "--opening FILE is missing: where salt and text are kept");
    }
    if (!kedge_cli_no_more(c, 2)) {
        return 2;
    }
    bool is_new = !kedge_file_exists(path);
    int err = take_opening(text, path, &contact, &d);
    bool is_made = is_new && !err;
    if (!err) {
        err = send_contact(c, &contact, &o, &d);
    }
    if (is_made && kedge_err_class(err) == KEDGE_CLASS_REJECT) { /* the ledger will never commit to it */
        (void)unlink(path);
    }
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_cli_say(c,
                  "Entry %lld of the ledger of %s commits to who answers for %s.\nThe text is in %s alone: "
                  "keep it, show it to an "
                  "auditor, or kedge contact forget it.\n",
                  (long long)kedge_cli_int(o, "leaf_index"), contact.tenant.s, site ? site : "the tenant",
                  path);
    return kedge_cli_ok(c, o);
}

/* ---- show, forget ---- */

/* Prints the commitment as well, so that the file can be compared with the ledger by eye. */
int kedge_cmd_contact_show(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_contact contact;
    struct kedge_hash commitment;
    char hex[KEDGE_HASH_HEX_LEN + 1];
    const char *path = kedge_cli_argument(c, 0);
    if (!path) {
        return kedge_cli_usage(c, "OPENING is missing: the file that kedge contact set wrote");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    int err = cli_contact_read(path, &contact, &d);
    if (err) {
        return kedge_cli_fail(c, err, &d);
    }
    kedge_contact_commitment(&contact, &commitment);
    kedge_hash_hex(&commitment, hex);
    kedge_cli_say(
        c,
        "%s%s%s: %s\ncommitment %s; an auditor holds it to the ledger: kedge audit verify DIR --contact %s\n",
        contact.tenant.s, contact.about.s[0] ? "/" : "", contact.about.s, contact.text, hex, path);
    return kedge_cli_ok(c, json_pack("{s:s,s:s,s:s,s:s}", "tenant", contact.tenant.s, "about",
                                     contact.about.s, "text", contact.text, "commitment", hex));
}

/* Zeros in its place before it goes: what that is worth is said in docs/modules/store.md. */
static int overwrite(const char *path, struct kedge_diag *d)
{
    struct stat st;
    static const char zeros[KEDGE_CONTACT_FILE_MAX];
    int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    bool done = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= (off_t)sizeof zeros
                && pwrite(fd, zeros, (size_t)st.st_size, 0) == st.st_size && fsync(fd) == 0;
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    return done ? KEDGE_OK
                : kedge_diag_set(d, KEDGE_E_IO, "%s: cannot be overwritten: %s", path, strerror(error));
}

/* The file is read first, so that only an opening is destroyed; then overwritten before it is unlinked,
 * because its blocks would otherwise keep the text. */
int kedge_cmd_contact_forget(struct kedge_cli *c)
{
    struct kedge_diag d = {.text = ""};
    struct kedge_contact contact;
    const char *path = kedge_cli_argument(c, 0);
    if (!path) {
        return kedge_cli_usage(c, "OPENING is missing: the file that kedge contact set wrote");
    }
    if (!kedge_cli_no_more(c, 1)) {
        return 2;
    }
    KEDGE_CLI_TRY(c, cli_contact_read(path, &contact, &d), &d); /* nothing else is destroyed by a slip */
    KEDGE_CLI_TRY(c, overwrite(path, &d), &d);
    if (unlink(path) != 0) {
        return kedge_cli_fail(
            c, kedge_diag_set(&d, KEDGE_E_IO, "%s: overwritten, but not removed: %s", path, strerror(errno)),
            &d);
    }
    kedge_cli_say(c,
                  "%s is gone. Without it, what the ledger of %s holds is noise; copies of the file are "
                  "yours to find.\n",
                  path, contact.tenant.s);
    return kedge_cli_ok(c, json_pack("{s:s,s:s}", "tenant", contact.tenant.s, "about", contact.about.s));
}

/* ---- --contact OPENING of audits ---- */

/* Read at once, since a wrong file is a mistake of the command line and should cost no audit. */
bool kedge_cli_contacts_take(struct kedge_cli *c, struct kedge_cli_contacts *ret)
{
    const char *path;
    ret->count = 0;
    while ((path = kedge_cli_option(c, "contact", NULL)) != NULL) {
        struct kedge_diag d = {.text = ""};
        if (ret->count == KEDGE_CLI_CONTACTS_MAX) {
            (void)kedge_cli_usage(c, "--contact: at most %d", KEDGE_CLI_CONTACTS_MAX);
            return false;
        }
        if (cli_contact_read(path, &ret->items[ret->count++], &d) != KEDGE_OK) {
            (void)kedge_cli_usage(c, "--contact %s", d.text);
            return false;
        }
    }
    return true;
}
