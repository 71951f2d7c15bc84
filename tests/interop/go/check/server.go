package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A reader is somebody with a token at a coordinator that serves logs over HTTPS.
type reader struct {
	client *http.Client
	url    string
	token  string // none: without one
}

func newReader(url, scratch, token string) (*reader, error) {
	pool := x509.NewCertPool()
	cert, err := os.ReadFile(filepath.Join(scratch, "cert.pem"))
	if err != nil || !pool.AppendCertsFromPEM(cert) {
		return nil, fmt.Errorf("cert.pem: %v", err)
	}
	text := []byte{}
	if token != "" {
		text, err = os.ReadFile(filepath.Join(scratch, token))
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13}}
	return &reader{&http.Client{Transport: transport, Timeout: 20 * time.Second}, url,
		strings.TrimSpace(string(text))}, err
}

// do asks for a path; everything about the answer but its date, and its body.
func (r *reader) do(method, path string) (status int, about string, body []byte, err error) {
	req, err := http.NewRequest(method, r.url+"/"+path, nil)
	if err != nil {
		return 0, "", nil, err
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	resp.Header.Del("Date")
	return resp.StatusCode, fmt.Sprint(resp.Status, resp.Header, string(body)), body, err
}

// log opens one log as the reader sees it. What was read once is not asked for again.
func (r *reader) log(name, vkey string) (*folder, error) {
	cache := map[string][]byte{}
	f := &folder{name: name, read: func(path string) ([]byte, error) {
		if data, ok := cache[path]; ok {
			return data, nil
		}
		status, about, body, err := r.do("GET", name+"/"+path)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%s/%s: %s", name, path, about)
		}
		if err == nil {
			cache[path] = body
		}
		return body, err
	}}
	return f, f.open(vkey)
}

// refused: these paths are answered by the status, all in the same words.
func (r *reader) refused(status int, method string, paths ...string) error {
	first := ""
	for i, path := range paths {
		got, about, _, err := r.do(method, path)
		if err != nil || got != status {
			return fmt.Errorf("%s %s: %s, expected %d (%v)", method, path, about, status, err)
		}
		if i == 0 {
			first = about
		} else if about != first {
			return fmt.Errorf("%s: %s, but %s: %s", path, about, paths[0], first)
		}
	}
	return nil
}

// seesPart: the tenant's main chain is the auditor's with entries left out, none of them about it alone; the
// tree is whole.
func seesPart(part, whole *folder, other string) error {
	if part.tree != whole.tree || part.withheld == 0 || part.withheld == len(part.entries) {
		return fmt.Errorf("main as a tenant sees it: %d of %d entries withheld", part.withheld, len(part.entries))
	}
	hashes := tlog.TileHashReader(part.tree, part.read)
	for i, entry := range part.entries {
		if bytes.Contains(entry, []byte(other)) {
			return fmt.Errorf("main as a tenant sees it: entry %d names %s", i, other)
		}
		if len(entry) > 0 && !bytes.Equal(entry, whole.entries[i]) {
			return fmt.Errorf("main as a tenant sees it: another entry %d", i)
		}
		leaf, err := hashes.ReadHashes([]int64{tlog.StoredHashIndex(0, int64(i))})
		if err != nil || leaf[0] != tlog.RecordHash(whole.entries[i]) {
			return fmt.Errorf("main as a tenant sees it: leaf hash of %d: %v", i, err)
		}
	}
	return nil
}

// cosignedBy: the checkpoint that is served has the line of the tenant's witness, and a changed one has not.
func cosignedBy(f *folder, file string) error {
	vkey, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	v, err := newVerifier(strings.TrimSpace(string(vkey)))
	if err != nil {
		return err
	}
	msg, err := f.read("checkpoint")
	if err != nil {
		return err
	}
	n, err := note.Open(msg, note.VerifierList(f.verifier, v))
	if err != nil || len(n.Sigs) != 2 {
		return fmt.Errorf("%s: no cosignature of %s: %q (%v)", f.name, v.Name(), msg, err)
	}
	if age := time.Since(time.Unix(int64(v.(*cosigner).time), 0)); age < -time.Minute || age > time.Hour {
		return fmt.Errorf("%s: cosigned %v ago", f.name, age)
	}
	bad := append([]byte(nil), msg...)
	bad[len(bad)-10] ^= 1
	if _, err = note.Open(bad, note.VerifierList(f.verifier, v)); err == nil {
		return fmt.Errorf("%s: a changed cosignature passes", f.name)
	}
	return nil
}

func checkServer(url, dir, scratch string) error {
	t, err := readTrust(dir)
	if err != nil || len(t.Tenants) < 2 {
		return fmt.Errorf("trust.json: %v", err)
	}
	auditor, err := newReader(url, scratch, "auditor.token")
	if err != nil {
		return err
	}
	tenant, err := newReader(url, scratch, "tenant.token")
	if err != nil {
		return err
	}
	nobody, err := newReader(url, scratch, "")
	if err != nil {
		return err
	}
	own, other := t.Tenants[0], t.Tenants[1]
	logs := 0
	for _, log := range append(t.Tenants, struct{ Tenant, Log string }{"main", t.MainLog}) {
		f, err := auditor.log(log.Tenant, log.Log)
		if err != nil || f.withheld > 0 {
			return fmt.Errorf("auditor: %s: %d entries withheld, %v", log.Tenant, f.withheld, err)
		}
		logs++
	}
	f, err := tenant.log(own.Tenant, own.Log)
	if err != nil || f.withheld > 0 {
		return fmt.Errorf("%s: %d entries withheld, %v", own.Tenant, f.withheld, err)
	}
	whole, err := auditor.log("main", t.MainLog)
	if err != nil {
		return err
	}
	part, err := tenant.log("main", t.MainLog)
	if err != nil {
		return err
	}
	if err = seesPart(part, whole, t.originOf(other.Tenant)); err != nil {
		return err
	}
	for _, log := range []*folder{f, part} {
		if err = cosignedBy(log, filepath.Join(scratch, "witness.vkey")); err != nil {
			return err
		}
	}
	beyond := fmt.Sprintf("%s/tile/0/000.p/%d", own.Tenant, f.tree.N+1)
	if err = tenant.refused(404, "GET", other.Tenant+"/checkpoint", "no-such-tenant/checkpoint", beyond,
		other.Tenant+"/tile/0/000.p/1", own.Tenant+"/tile/0/000.p/01", own.Tenant+"/tile/8/0/000.p/1"); err != nil {
		return err
	}
	if err = nobody.refused(401, "GET", own.Tenant+"/checkpoint", "no-such-tenant/checkpoint", "main/tile/0/000",
		beyond); err != nil {
		return err
	}
	nobody.token = strings.Repeat("0", len(tenant.token))
	if err = nobody.refused(401, "GET", own.Tenant+"/checkpoint", "main/checkpoint"); err != nil {
		return err
	}
	if err = tenant.refused(405, "POST", own.Tenant+"/checkpoint"); err != nil {
		return err
	}
	fmt.Printf("over HTTPS: %d logs as an auditor; as %s its own, and main with %d of %d entries withheld; "+
		"cosigned by its witness\n", logs,
		own.Tenant, part.withheld, len(part.entries))
	return nil
}
