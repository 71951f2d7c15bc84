package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A stream reads the records of interop_log; the first failure ends it.
type stream struct {
	r   *bufio.Reader
	err error
}

func (s *stream) bytes(n int) []byte {
	b := make([]byte, n)
	if s.err == nil {
		_, s.err = io.ReadFull(s.r, b)
	}
	return b
}

func (s *stream) number(n int) int64 {
	b := append(make([]byte, 8-n), s.bytes(n)...)
	return int64(binary.BigEndian.Uint64(b))
}

func (s *stream) hash() (h tlog.Hash) {
	copy(h[:], s.bytes(tlog.HashSize))
	return h
}

func (s *stream) path() []tlog.Hash {
	list := make([]tlog.Hash, s.number(1))
	for i := range list {
		list[i] = s.hash()
	}
	return list
}

// A twin is the log as Go has it, and what was compared.
type twin struct {
	in       stream
	verifier note.Verifier
	entries  [][]byte
	hashes   storage
	roots    map[int64]tlog.Hash
	files    map[string][]byte
	counts   map[byte]int
}

func (t *twin) root(size int64) tlog.Hash {
	h, ok := t.roots[size]
	if !ok {
		var err error
		if h, err = rootOf(size, t.hashes); err != nil && t.in.err == nil {
			t.in.err = err
		}
		t.roots[size] = h
	}
	return h
}

func (t *twin) key() (err error) {
	vkey := string(t.in.bytes(int(t.in.number(2))))
	if t.verifier, err = note.NewVerifier(vkey); err != nil {
		return fmt.Errorf("vkey %s: %v", vkey, err)
	}
	return nil
}

func (t *twin) entry() error {
	data := t.in.bytes(int(t.in.number(4)))
	more, err := tlog.StoredHashes(int64(len(t.entries)), data, t.hashes)
	t.entries = append(t.entries, data)
	t.hashes = append(t.hashes, more...)
	return err
}

// checkpoint is of the size that the log has now.
func (t *twin) checkpoint() error {
	msg := t.in.bytes(int(t.in.number(4)))
	c, err := openCheckpoint(msg, t.verifier)
	if err != nil {
		return err
	}
	if size := int64(len(t.entries)); c.tree.N != size || c.tree.Hash != t.root(size) {
		return fmt.Errorf("checkpoint of size %d: root %v, expected %v of size %d", c.tree.N, c.tree.Hash,
			t.root(size), size)
	}
	msg[bytes.IndexByte(msg, '\n')-1] ^= 1 // another origin
	if _, err = openCheckpoint(msg, t.verifier); err == nil {
		return fmt.Errorf("a changed checkpoint verifies")
	}
	return nil
}

// cosigned is the newest checkpoint with a witness's line: both keys sign it, each opens it alone, and the
// witness's alone says when.
func (t *twin) cosigned() error {
	vkey, time := string(t.in.bytes(int(t.in.number(2)))), uint64(t.in.number(8))
	msg := t.in.bytes(int(t.in.number(4)))
	v, err := newVerifier(vkey)
	if err != nil {
		return err
	}
	n, err := note.Open(msg, note.VerifierList(t.verifier, v))
	if err != nil || len(n.Sigs) != 2 || v.(*cosigner).time != time {
		return fmt.Errorf("cosigned at %d: %q: %v", time, msg, err)
	}
	for _, one := range []note.Verifier{t.verifier, v} {
		if n, err = note.Open(msg, note.VerifierList(one)); err != nil || len(n.UnverifiedSigs) != 1 {
			return fmt.Errorf("cosigned, by %s alone: %q: %v", one.Name(), msg, err)
		}
	}
	msg[bytes.IndexByte(msg, '\n')-1] ^= 1
	if _, err = note.Open(msg, note.VerifierList(v)); err == nil {
		return fmt.Errorf("a changed checkpoint has its cosignature")
	}
	return nil
}

func (t *twin) checkRoot() error {
	size, root := t.in.number(8), t.in.hash()
	if root != t.root(size) {
		return fmt.Errorf("root of size %d: %v, expected %v", size, root, t.root(size))
	}
	return nil
}

// same: both have the one path there is.
func same(got, expected []tlog.Hash) bool {
	if len(got) != len(expected) {
		return false
	}
	for i := range got {
		if got[i] != expected[i] {
			return false
		}
	}
	return true
}

func (t *twin) inclusion() error {
	index, size, path := t.in.number(8), t.in.number(8), t.in.path()
	if index >= size || size > int64(len(t.entries)) {
		return fmt.Errorf("inclusion of %d in %d", index, size)
	}
	leaf := tlog.RecordHash(t.entries[index])
	if err := tlog.CheckRecord(path, size, t.root(size), index, leaf); err != nil {
		return fmt.Errorf("inclusion of %d in %d: %v", index, size, err)
	}
	own, err := tlog.ProveRecord(size, index, t.hashes)
	if err != nil || !same(path, own) {
		return fmt.Errorf("inclusion of %d in %d: %v, expected %v (%v)", index, size, path, own, err)
	}
	leaf[size%tlog.HashSize] ^= 4
	if tlog.CheckRecord(path, size, t.root(size), index, leaf) == nil {
		return fmt.Errorf("inclusion of %d in %d: another leaf verifies", index, size)
	}
	return nil
}

func (t *twin) consistency() error {
	old, size, path := t.in.number(8), t.in.number(8), t.in.path()
	if err := tlog.CheckTree(path, size, t.root(size), old, t.root(old)); err != nil {
		return fmt.Errorf("consistency from %d to %d: %v", old, size, err)
	}
	own, err := tlog.ProveTree(size, old, t.hashes)
	if err != nil || !same(path, own) {
		return fmt.Errorf("consistency from %d to %d: %v, expected %v (%v)", old, size, path, own, err)
	}
	root := t.root(old)
	root[size%tlog.HashSize] ^= 4
	if tlog.CheckTree(path, size, t.root(size), old, root) == nil {
		return fmt.Errorf("consistency from %d to %d: another root verifies", old, size)
	}
	return nil
}

// tile is hashes as Go would publish them, or the entries.
func (t *twin) tile() error {
	path := string(t.in.bytes(int(t.in.number(2))))
	data := t.in.bytes(int(t.in.number(4)))
	tile, err := parseTile(path)
	if err != nil {
		return err
	}
	t.files[path] = data
	if tile.L >= 0 {
		own, err := tlog.ReadTileData(tile, t.hashes)
		if err != nil || !bytes.Equal(data, own) {
			return fmt.Errorf("%s: another tile than Go's (%v)", path, err)
		}
		return nil
	}
	list, err := records(data)
	if err != nil || len(list) != tile.W {
		return fmt.Errorf("%s: %d entries, expected %d (%v)", path, len(list), tile.W, err)
	}
	for i, entry := range list {
		if !bytes.Equal(entry, t.entries[tile.N<<8+int64(i)]) {
			return fmt.Errorf("%s: another entry %d", path, i)
		}
	}
	return nil
}

// published: the files are those that Go names for a log of this size, no more and no less.
func (t *twin) published() error {
	size := int64(len(t.entries))
	expected := map[string]bool{}
	for _, tile := range tlog.NewTiles(8, 0, size) {
		if last := size >> (8 * uint(tile.L)); tile.W < 256 && tile.W != int(last&255) {
			continue // of an earlier size
		}
		expected[c2spPath(tile)] = true
		if tile.L == 0 {
			tile.L = -1
			expected[c2spPath(tile)] = true
		}
	}
	if len(expected) != len(t.files) {
		return fmt.Errorf("%d files, expected %d", len(t.files), len(expected))
	}
	for path := range expected {
		if t.files[path] == nil {
			return fmt.Errorf("%s: there is no such file", path)
		}
	}
	return nil
}

func (t *twin) read(path string) ([]byte, error) {
	if data, ok := t.files[path]; ok {
		return data, nil
	}
	return nil, fmt.Errorf("%s: no such tile", path)
}

// byTiles: a client that has the root and the tiles proves entries, and notices a hash that is not the log's.
// What is changed is a hash of the proof: this tlog compares with their parents not all tiles that it reads.
func (t *twin) byTiles() error {
	size := int64(len(t.entries))
	tree := tlog.Tree{N: size, Hash: t.root(size)}
	rng := rand.New(rand.NewSource(size))
	for k := int64(0); k < 100 && k < size; k++ {
		i := rng.Int63n(size)
		if err := proveByTiles(tree, i, t.entries[i], t.read); err != nil {
			return err
		}
		bad := func(path string) ([]byte, error) {
			data, err := t.read(path)
			if tile, _ := parseTile(path); err == nil && tile.L == 0 && tile.N == i>>8 {
				data = append([]byte(nil), data...)
				data[int(i^1)&255*tlog.HashSize+rng.Intn(tlog.HashSize)] ^= 1 << uint(rng.Intn(8))
			}
			return data, err
		}
		if i^1 < size && proveByTiles(tree, i, t.entries[i], bad) == nil {
			return fmt.Errorf("entry %d: a changed tile passes", i)
		}
	}
	return nil
}

// proveByTiles makes and checks the proof of an entry from tiles that are checked against the root.
func proveByTiles(tree tlog.Tree, i int64, entry []byte, read tiles) error {
	p, err := tlog.ProveRecord(tree.N, i, tlog.TileHashReader(tree, read))
	if err == nil {
		err = tlog.CheckRecord(p, tree.N, tree.Hash, i, tlog.RecordHash(entry))
	}
	if err != nil {
		return fmt.Errorf("entry %d by tiles: %v", i, err)
	}
	return nil
}

func checkLog(in io.Reader) error {
	t := &twin{in: stream{r: bufio.NewReaderSize(in, 1<<20)}, roots: map[int64]tlog.Hash{},
		files: map[string][]byte{}, counts: map[byte]int{}}
	steps := map[byte]func() error{'K': t.key, 'E': t.entry, 'C': t.checkpoint, 'W': t.cosigned,
		'R': t.checkRoot, 'I': t.inclusion, 'P': t.consistency, 'T': t.tile}
	for {
		letter, err := t.in.r.ReadByte()
		if err == io.EOF {
			break
		}
		if err != nil || steps[letter] == nil {
			return fmt.Errorf("record %q: %v", letter, err)
		}
		if err = steps[letter](); err == nil {
			err = t.in.err
		}
		if err != nil {
			return err
		}
		t.counts[letter]++
	}
	if t.verifier == nil || t.counts['C'] == 0 || t.counts['W'] == 0 {
		return fmt.Errorf("no log")
	}
	if err := t.published(); err != nil {
		return err
	}
	if err := t.byTiles(); err != nil {
		return err
	}
	fmt.Printf("%d entries: %d checkpoints, %d cosigned, %d roots, %d inclusion and %d consistency proofs, %d tiles\n",
		len(t.entries), t.counts['C'], t.counts['W'], t.counts['R'], t.counts['I'], t.counts['P'], t.counts['T'])
	return nil
}
