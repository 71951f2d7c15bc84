/* Whom to ask about a site, without putting it into a ledger from which nothing can be taken away. The
 * ledger holds a commitment; the text and its salt are in a file that its owner can destroy, and then the
 * commitment says nothing (crypto/commitment.h). The file is read strictly: it is what a person shows to
 * prove what was committed to. */
#include "chain/statement/contact.h"

#include <jansson.h>
#include <string.h>

#include "common/base/text.h"
#include "common/base/try.h"
#include "common/json/json.h"

static const char FORMAT[] = "kedge-contact/v1";

void kedge_contact_commitment(const struct kedge_contact *contact, struct kedge_hash *ret)
{
    kedge_commitment_make(&contact->salt, kedge_view_str(contact->text), ret);
}

bool kedge_contact_text_is_valid(struct kedge_view text)
{
    bool fits = text.len > 0 && text.len <= KEDGE_CONTACT_TEXT_MAX;
    return fits && !memchr(text.ptr, '\t', text.len) && kedge_text_is_plain_lines(text);
}

int kedge_contact_write(const struct kedge_contact *contact, struct kedge_buf *out)
{
    char salt[2 * KEDGE_COMMITMENT_SALT_LEN + 1];
    kedge_hex_encode(contact->salt.b, sizeof contact->salt.b, salt);
    kedge_buf_printf(out,
                     "{\n  \"format\": \"%s\",\n  \"tenant\": \"%s\",\n  \"about\": \"%s\",\n  \"salt\": "
                     "\"%s\",\n  \"text\": ",
                     FORMAT, contact->tenant.s, contact->about.s, salt);
    kedgei_json_put_string(out, contact->text);
    kedge_buf_put_str(out, "\n}\n");
    return out->err;
}

static const char *take_fields(const json_t *o, struct kedge_contact *ret)
{
    const char *format = json_string_value(json_object_get(o, "format"));
    const char *tenant = json_string_value(json_object_get(o, "tenant"));
    const char *about = json_string_value(json_object_get(o, "about"));
    const char *salt = json_string_value(json_object_get(o, "salt"));
    const char *text = json_string_value(json_object_get(o, "text"));
    if (!format || strcmp(format, FORMAT) != 0) {
        return "format: expected \"kedge-contact/v1\"";
    }
    if (!tenant || kedge_id_from(kedge_view_str(tenant), &ret->tenant) != KEDGE_OK) {
        return "tenant: expected a tenant's name";
    }
    if (!about || (about[0] && kedge_id_from(kedge_view_str(about), &ret->about) != KEDGE_OK)) {
        return "about: expected a site's name, or nothing for the tenant itself";
    }
    if (!salt || kedge_hex_decode(kedge_view_str(salt), ret->salt.b, sizeof ret->salt.b) != KEDGE_OK) {
        return "salt: expected 64 lower-case hex digits";
    }
    if (!text || !kedge_contact_text_is_valid(kedge_view_str(text))) {
        return "text: expected 1 to 1,000 bytes of UTF-8 without control characters";
    }
    memcpy(ret->text, text, strlen(text) + 1);
    return json_object_size(o) == 5 ? NULL : "a key that does not belong there";
}

int kedge_contact_read(struct kedge_view file, struct kedge_contact *ret, struct kedge_diag *reterr)
{
    json_t *o = NULL;
    KEDGE_TRY(kedgei_json_load(file, KEDGE_CONTACT_FILE_MAX, "contact", &o, reterr));
    struct kedge_contact contact = {.text = ""};
    const char *wrong = take_fields(o, &contact);
    json_decref(o);
    if (wrong) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "contact: %s", wrong);
    }
    *ret = contact;
    return KEDGE_OK;
}
