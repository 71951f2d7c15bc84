/* report.html: the export for people, in one file that loads nothing. No script, no link out; everything that
 * others wrote is escaped. */
#include "chain/export/page.h"

enum { PAGE_MAX = 64 * 1024 * 1024 };

static void put_checkpoints(struct kedgei_page *p)
{
    const struct kedgei_ex_work *w = p->w;
    kedgei_page_put(p, "<h2>Checkpoints and time stamps</h2>\n<dl>\n");
    for (size_t i = 0; i < w->note_count; i++) {
        struct kedge_hash digest;
        kedge_sha256(kedge_buf_view(&w->notes[i].bytes), &digest);
        kedgei_page_put(p, "<dt>Checkpoint</dt><dd>");
        kedgei_page_text(p, w->notes[i].path);
        kedgei_page_put(p, ", SHA-256 ");
        kedgei_page_digest(p, &digest);
        kedgei_page_put(p, "</dd>\n");
    }
    for (size_t i = 0; i < w->token_count; i++) {
        kedgei_page_put(p, "<dt>Time stamp</dt><dd>");
        kedgei_page_text(p, w->tokens[i].checkpoint);
        kedgei_page_put(p, " existed on <b>");
        kedgei_page_time(p, (uint64_t)w->tokens[i].stamp.time_s * 1000, false);
        kedgei_page_put(p, "</b>, says ");
        kedgei_page_text(p, w->tokens[i].stamp.authority);
        kedge_buf_printf(&p->out, " (<code>%s</code>).</dd>\n", w->tokens[i].path);
    }
    for (size_t i = 0; i < kedge_anchor_kind_count(); i++) {
        if (w->anchors[i] > 0) {
            kedgei_page_put(p, "<dt>Anchors</dt><dd>");
            kedgei_page_count(p, w->anchors[i], "anchor", "anchors");
            kedgei_page_put(p, " of the main chain ");
            kedgei_page_put(p, kedge_anchor_kind_at(i)->where);
            kedgei_page_put(p, ", in <code>anchors/</code>.</dd>\n");
        }
    }
    kedgei_page_put(p, "</dl>\n");
    kedgei_page_put(p, w->token_count ? ""
                                      : "<p class=\"dim\">No time stamp of an outside authority is in this "
                                        "export.</p>\n");
}

static void put_how_to(struct kedgei_page *p)
{
    kedgei_page_put(
        p,
        "<h2>Check it yourself</h2>\n<pre>"
        "kedge audit verify-export . --trust TRUST.json\n"
        "sha256sum models/*/*.safetensors\n"
        "kedge audit verify-model models/NAME --signature models/NAME/model.sig --key keys/models.pub.pem\n"
        "kedge ledger verify proofs/main-INDEX.tlog-proof --log VKEY --entry entries/main-INDEX.json\n"
        "openssl ts -verify -data checkpoints/FILE.note -in tsa/01.tsr -CAfile tsa/ca.pem</pre>\n"
        "<p>The keys in this folder say nothing about who holds them: compare them with what you got over "
        "another way. The same claims for programs are in verify-report.json. The whole record, "
        "re-executed decision by decision, is what <code>kedge audit replay</code> checks.</p>\n"
        "</main>\n</body>\n</html>\n");
}

static int put_all(struct kedgei_page *p)
{
    const struct kedgei_ex_record *r = &p->w->r;
    kedgei_page_put(p, kedgei_page_head);
    kedgei_page_put(p, "<title>Provenance of ");
    kedgei_page_text(p, r->deployment);
    kedgei_page_put(p, "</title>\n");
    kedgei_page_put(p, kedgei_page_style);
    int err = kedgei_page_first(p);
    for (uint32_t j = 0; j < r->job_count && !err; j++) {
        err = r->jobs[j]->release_count > 0 ? kedgei_page_job(p, r->jobs[j]) : KEDGE_OK;
    }
    if (err) {
        return err;
    }
    put_checkpoints(p);
    put_how_to(p);
    return p->out.err
               ? kedge_diag_set(p->w->reterr, p->out.err, "report.html: %s", kedge_strerror(p->out.err))
               : KEDGE_OK;
}

int kedgei_ex_page(struct kedgei_ex_work *w)
{
    struct kedgei_page p = {.w = w};
    kedge_buf_init(&p.out, PAGE_MAX);
    int err = put_all(&p);
    if (!err) {
        err = kedgei_ex_put(&w->f, kedge_buf_view(&p.out), w->reterr, "report.html");
    }
    kedge_buf_deinit(&p.out);
    return err;
}
