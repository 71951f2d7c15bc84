package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const saltLen = 32 // in front of a tenant's checkpoint in the main chain

// trust is the auditor's file: the keys of the logs, and checkpoints seen elsewhere.
type trust struct {
	MainLog string `json:"main_log"`
	Tenants []struct{ Tenant, Log string }
	Seen    []string
}

// originOf is the name of a tenant's log, which only the tenant and auditors may know.
func (t trust) originOf(tenant string) string {
	for _, log := range t.Tenants {
		if log.Tenant == tenant {
			return strings.SplitN(log.Log, "+", 2)[0]
		}
	}
	return ""
}

func readTrust(dir string) (t trust, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "trust.json"))
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	return t, err
}

// A folder is a log as files, on a disk or behind a server.
type folder struct {
	name     string
	read     tiles
	verifier note.Verifier
	tree     tlog.Tree
	entries  [][]byte // none where it is withheld from us
	withheld int
}

func openDir(name, dir, vkey string) (*folder, error) {
	f := &folder{name: name, read: func(path string) ([]byte, error) {
		return os.ReadFile(filepath.Join(dir, name, filepath.FromSlash(path)))
	}}
	err := f.open(vkey)
	if err == nil && f.withheld > 0 {
		err = fmt.Errorf("%s: %d entries are empty", name, f.withheld)
	}
	return f, err
}

// open reads checkpoint and entries, and checks each entry by tiles alone.
func (f *folder) open(vkey string) error {
	var err error
	if f.verifier, err = note.NewVerifier(vkey); err != nil {
		return fmt.Errorf("%s: %v", vkey, err)
	}
	msg, err := f.read("checkpoint")
	if err != nil {
		return err
	}
	c, err := openCheckpoint(msg, f.verifier)
	if err != nil {
		return fmt.Errorf("%s: checkpoint: %v", f.name, err)
	}
	signed := bytes.LastIndex(msg, []byte("\n\n")) + 2
	signed += bytes.IndexByte(msg[signed:], '\n') + 1 // witnesses' lines follow
	for i := range msg[:signed] {                     // not one byte of text and log's line can be another
		bad := append([]byte(nil), msg...)
		bad[i] ^= 1
		if c, err := openCheckpoint(bad, f.verifier); err == nil && !isLenient(bad) {
			return fmt.Errorf("%s: a checkpoint with byte %d changed verifies: %v", f.name, i, c)
		}
	}
	f.tree = c.tree
	for n := int64(0); n<<8 < f.tree.N; n++ {
		tile := tlog.Tile{H: 8, L: -1, N: n, W: 256}
		if left := f.tree.N - n<<8; left < 256 {
			tile.W = int(left)
		}
		bundle, err := f.read(c2spPath(tile))
		if err != nil {
			return err
		}
		list, err := records(bundle)
		if err != nil || len(list) != tile.W {
			return fmt.Errorf("%s: %s: %d entries (%v)", f.name, c2spPath(tile), len(list), err)
		}
		f.entries = append(f.entries, list...)
	}
	for i, entry := range f.entries {
		if len(entry) == 0 {
			f.withheld++
			continue
		}
		if err := proveByTiles(f.tree, int64(i), entry, f.read); err != nil {
			return fmt.Errorf("%s: %v", f.name, err)
		}
		bad := append([]byte(nil), entry...)
		bad[i%len(bad)] ^= 1
		if proveByTiles(f.tree, int64(i), bad, f.read) == nil {
			return fmt.Errorf("%s: entry %d changed passes", f.name, i)
		}
	}
	return nil
}

// grewFrom: an earlier checkpoint of the log is a prefix of it, by tiles and by Kedge's own proof.
func (f *folder) grewFrom(old checkpoint, k *program) error {
	if old.tree.N == 0 {
		return nil
	}
	reader := tlog.TileHashReader(f.tree, tiles(f.read))
	p, err := tlog.ProveTree(f.tree.N, old.tree.N, reader)
	if err == nil {
		err = tlog.CheckTree(p, f.tree.N, f.tree.Hash, old.tree.N, old.tree.Hash)
	}
	if err != nil {
		return fmt.Errorf("%s: from %d to %d: %v", f.name, old.tree.N, f.tree.N, err)
	}
	own, err := k.consistency(f, old.tree.N)
	if err != nil {
		return err
	}
	if err = tlog.CheckTree(own, f.tree.N, f.tree.Hash, old.tree.N, old.tree.Hash); err != nil {
		return fmt.Errorf("%s: kedge ledger prove --from %d: %v", f.name, old.tree.N, err)
	}
	old.tree.Hash[7] ^= 1
	if tlog.CheckTree(own, f.tree.N, f.tree.Hash, old.tree.N, old.tree.Hash) == nil {
		return fmt.Errorf("%s: another history passes", f.name)
	}
	return nil
}

// program is kedge over one state folder.
type program struct {
	path, state string
}

func (k *program) run(args ...string) ([]byte, error) {
	cmd := exec.Command(k.path, append(args, "--state", k.state)...)
	var trouble bytes.Buffer
	cmd.Stderr = &trouble
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kedge %s: %v: %s", strings.Join(args, " "), err, trouble.String())
	}
	return out, err
}

func (k *program) consistency(f *folder, from int64) (tlog.TreeProof, error) {
	out, err := k.run("ledger", "prove", f.name, "--from", strconv.FormatInt(from, 10), "--to",
		strconv.FormatInt(f.tree.N, 10), "--format", "json")
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct{ Path []string }
	}
	if err = json.Unmarshal(out, &answer); err != nil {
		return nil, err
	}
	p := tlog.TreeProof{}
	for _, text := range answer.Data.Path {
		var h tlog.Hash
		if _, err = hex.Decode(h[:], []byte(text)); err != nil {
			return nil, err
		}
		p = append(p, h)
	}
	return p, nil
}

// parseReceipt takes a c2sp.org/tlog-proof apart.
func parseReceipt(text string) (index int64, p tlog.RecordProof, msg string, err error) {
	head, msg := text, ""
	if i := strings.Index(text, "\n\n"); i >= 0 {
		head, msg = text[:i], text[i+2:]
	}
	lines := strings.Split(head, "\n")
	if len(lines) < 2 || lines[0] != "c2sp.org/tlog-proof@v1" || !strings.HasPrefix(lines[1], "index ") {
		return 0, nil, "", fmt.Errorf("no receipt: %q", text)
	}
	if index, err = strconv.ParseInt(strings.TrimPrefix(lines[1], "index "), 10, 64); err != nil {
		return 0, nil, "", err
	}
	for _, line := range lines[2:] {
		raw, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(raw) != tlog.HashSize {
			return 0, nil, "", fmt.Errorf("receipt: hash %q", line)
		}
		var h tlog.Hash
		copy(h[:], raw)
		p = append(p, h)
	}
	return index, p, msg, nil
}

// receipt: Kedge's proof file of an entry, with nothing but the log's key.
func (k *program) receipt(f *folder, i int) error {
	text, err := k.run("ledger", "prove", f.name, strconv.Itoa(i))
	if err != nil {
		return err
	}
	index, p, msg, err := parseReceipt(string(text))
	if err != nil {
		return err
	}
	c, err := openCheckpoint([]byte(msg), f.verifier)
	if err == nil && index == int64(i) {
		err = tlog.CheckRecord(p, c.tree.N, c.tree.Hash, index, tlog.RecordHash(f.entries[i]))
	}
	if err != nil || index != int64(i) {
		return fmt.Errorf("%s: receipt of entry %d says %d: %v", f.name, i, index, err)
	}
	for at := range p {
		p[at][i%tlog.HashSize] ^= 1
		if tlog.CheckRecord(p, c.tree.N, c.tree.Hash, index, tlog.RecordHash(f.entries[i])) == nil {
			return fmt.Errorf("%s: receipt of entry %d with hash %d changed passes", f.name, i, at)
		}
		p[at][i%tlog.HashSize] ^= 1
	}
	return nil
}

// checkpointsIn: the tenants' signed checkpoints in the main chain, by log.
func checkpointsIn(main *folder, logs []*folder) (map[*folder][]checkpoint, error) {
	found := map[*folder][]checkpoint{}
	for i, entry := range main.entries {
		if len(entry) <= saltLen || bytes.HasPrefix(entry, []byte("{")) {
			continue // a statement
		}
		for _, f := range logs {
			if !bytes.HasPrefix(entry[saltLen:], []byte(f.verifier.Name()+"\n")) {
				continue
			}
			c, err := openCheckpoint(entry[saltLen:], f.verifier)
			if err != nil {
				return nil, fmt.Errorf("main chain, entry %d: %v", i, err)
			}
			found[f] = append(found[f], c)
		}
	}
	return found, nil
}

func checkRecord(kedge, dir, files string) error {
	t, err := readTrust(dir)
	if err != nil {
		return err
	}
	k := &program{path: kedge, state: filepath.Join(dir, "state")}
	main, err := openDir("main", files, t.MainLog)
	if err != nil {
		return err
	}
	logs := []*folder{}
	for _, tenant := range t.Tenants {
		f, err := openDir(tenant.Tenant, files, tenant.Log)
		if err != nil {
			return err
		}
		logs = append(logs, f)
	}
	earlier, err := checkpointsIn(main, logs)
	if err != nil {
		return err
	}
	for _, text := range t.Seen {
		c, err := openCheckpoint([]byte(text), main.verifier)
		if err != nil {
			return fmt.Errorf("trust.json: seen: %v", err)
		}
		earlier[main] = append(earlier[main], c)
	}
	steps, entries := 0, 0
	for _, f := range append(logs, main) {
		if len(earlier[f]) == 0 {
			return fmt.Errorf("%s: no earlier checkpoint was found", f.name)
		}
		for _, old := range earlier[f] {
			if err = f.grewFrom(old, k); err != nil {
				return err
			}
			steps++
		}
		for i := range f.entries {
			if err = k.receipt(f, i); err != nil {
				return err
			}
		}
		entries += len(f.entries)
	}
	fmt.Printf("%d logs with %d entries: each entry by tiles and by its receipt, %d earlier checkpoints\n",
		len(logs)+1, entries, steps)
	return nil
}
