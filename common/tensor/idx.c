/* The container of the MNIST family, and the look at first bytes that tells people what a file is
 * when it is not what it should be. */
#include "common/tensor/idx.h"

#include <stdio.h>
#include <string.h>

static bool is_printable(struct kedge_view v)
{
    for (size_t i = 0; i < v.len && i < 8; i++) {
        if ((v.ptr[i] < 0x20 || v.ptr[i] > 0x7e) && v.ptr[i] != '\n' && v.ptr[i] != '\r'
            && v.ptr[i] != '\t') {
            return false;
        }
    }
    return true;
}

/* By magic numbers. A file that is still compressed is a common mistake, so that answer says what
 * to do with it. */
static const char *guess_kind(struct kedge_view v)
{
    static const struct {
        const char *magic;
        size_t len;
        const char *kind;
    } kinds[] = {
        {"PK\x03\x04", 4, "a zip archive"},
        {"\x1f\x8b", 2, "a gzip file: gunzip it first"},
        {"\x89PNG", 4, "a PNG image"},
        {"\x93NUMPY", 6, "a NumPy array"},
        {"\xff\xd8\xff", 3, "a JPEG image"},
        {"BZh", 3, "a bzip2 file"},
        {"\xfd"
         "7zXZ",
         5, "an xz file"},
        {"%PDF", 4, "a PDF"},
        {"\x89HDF", 4, "an HDF5 file"},
        {"PAR1", 4, "a Parquet file"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (v.len >= kinds[i].len && memcmp(v.ptr, kinds[i].magic, kinds[i].len) == 0) {
            return kinds[i].kind;
        }
    }
    if (v.len >= 4 && v.ptr[0] == 0 && v.ptr[1] == 0 && v.ptr[2] >= 8 && v.ptr[2] <= 14) {
        return "an IDX file";
    }
    return is_printable(v) ? "text" : "unknown";
}

void kedge_sniff_text(struct kedge_view file, char out[KEDGE_SNIFF_TEXT_MAX])
{
    if (file.len == 0) {
        snprintf(out, KEDGE_SNIFF_TEXT_MAX, "missing (an empty file)");
        return;
    }
    size_t used = 0;
    for (size_t i = 0; i < 4 && i < file.len; i++) {
        int n = snprintf(out + used, KEDGE_SNIFF_TEXT_MAX - used, "%02x ", file.ptr[i]);
        used += n > 0 ? (size_t)n : 0;
    }
    snprintf(out + used, KEDGE_SNIFF_TEXT_MAX - used, "(%s)", guess_kind(file));
}

/* The number of bytes must be exactly the product of the dimensions; the product is checked for
 * overflow at each step. */
int kedge_idx_read(struct kedge_view file, struct kedge_idx *ret, struct kedge_diag *reterr)
{
    struct kedge_reader r = kedge_reader_of(file);
    struct kedge_idx idx = {.count = 1};
    uint32_t magic = kedge_read_u32(&r);
    if (r.failed || magic >> 16 != 0 || (magic >> 8 & 0xff) < 8) {
        char found[KEDGE_SNIFF_TEXT_MAX];
        kedge_sniff_text(file, found);
        return kedge_diag_set(reterr, KEDGE_E_FORMAT, "not an IDX file: first bytes are %s", found);
    }
    idx.dims_count = magic & 0xff;
    if (magic >> 8 != 8 || idx.dims_count == 0 || idx.dims_count > KEDGE_IDX_DIMS_MAX) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "IDX type 0x%02x with %u dimensions: expected unsigned bytes (0x08), 1 to %d",
                              magic >> 8 & 0xff, idx.dims_count, KEDGE_IDX_DIMS_MAX);
    }
    for (uint32_t i = 0; i < idx.dims_count; i++) {
        idx.dims[i] = kedge_read_u32(&r);
        if (!r.failed && (idx.dims[i] == 0 || idx.count > UINT64_MAX / idx.dims[i])) {
            return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                                  "IDX dimension %u is %u, with %llu values outside it", i, idx.dims[i],
                                  (unsigned long long)idx.count);
        }
        idx.count *= idx.dims[i];
    }
    if (r.failed || r.rest.len != idx.count) {
        return kedge_diag_set(reterr, KEDGE_E_FORMAT,
                              "IDX file of %zu bytes: its header promises %llu values, "
                              "found %zu",
                              file.len, (unsigned long long)idx.count, r.rest.len);
    }
    idx.data = r.rest.ptr;
    *ret = idx;
    return KEDGE_OK;
}

void kedge_idx_put_header(const uint32_t *dims, uint32_t dims_count, struct kedge_buf *out)
{
    KEDGE_ASSERT(dims_count >= 1 && dims_count <= KEDGE_IDX_DIMS_MAX);
    kedge_buf_put_u32(out, 0x0800u | dims_count);
    for (uint32_t i = 0; i < dims_count; i++) {
        kedge_buf_put_u32(out, dims[i]);
    }
}
