package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// parseTile reads a C2SP path as Go reads its own of height 8.
func parseTile(path string) (tlog.Tile, error) {
	rest := strings.TrimPrefix(path, "tile/")
	if rest == path || strings.HasPrefix(rest, "data/") {
		return tlog.Tile{}, fmt.Errorf("%q: no tile", path)
	}
	if strings.HasPrefix(rest, "entries/") {
		rest = "data/" + strings.TrimPrefix(rest, "entries/")
	}
	tile, err := tlog.ParseTilePath("tile/8/" + rest)
	if err == nil && tile.L > 63 {
		err = fmt.Errorf("%q: level", path)
	}
	return tile, err
}

// A bench gathers cases for interop_log judge, and Go's verdict on each.
type bench struct {
	rng      *rand.Rand
	cases    bytes.Buffer
	verdicts []byte
	names    []string
	lenient  []bool // Go decodes base64 that is not canonical
}

func (b *bench) add(ok, lenient bool, format string, args ...interface{}) {
	v := byte(0)
	if ok {
		v = 1
	}
	b.verdicts = append(b.verdicts, v)
	b.lenient = append(b.lenient, lenient)
	b.names = append(b.names, fmt.Sprintf(format, args...))
}

func (b *bench) put(values ...interface{}) {
	for _, v := range values {
		switch v := v.(type) {
		case []byte:
			b.cases.Write(v)
		case string:
			b.cases.WriteString(v)
		default:
			if err := binary.Write(&b.cases, binary.BigEndian, v); err != nil {
				panic(err)
			}
		}
	}
}

// A proof of either kind: first is a leaf hash and a an index, or first is the root of the old size a.
type proof struct {
	letter      byte
	a, size     int64
	first, root tlog.Hash
	path        []tlog.Hash
}

func (b *bench) judge(p proof, what string) {
	var err error
	if p.letter == 'I' {
		err = tlog.CheckRecord(p.path, p.size, p.root, p.a, p.first)
	} else {
		err = tlog.CheckTree(p.path, p.size, p.root, p.a, p.first)
	}
	b.put(p.letter, p.a, p.size, p.first[:], p.root[:], byte(len(p.path)))
	for _, h := range p.path {
		b.put(h[:])
	}
	b.add(err == nil, false, "%c %s a=%d size=%d path=%d", p.letter, what, p.a, p.size, len(p.path))
}

func (b *bench) random() (h tlog.Hash) {
	b.rng.Read(h[:])
	return h
}

// damage changes one thing; the change may be none (a swap of equals): Go says what it is worth.
func (b *bench) damage(p proof) (proof, string) {
	p.path = append([]tlog.Hash(nil), p.path...)
	n := len(p.path)
	at := 0
	if n > 0 {
		at = b.rng.Intn(n)
	}
	bit := func(h *tlog.Hash) { h[b.rng.Intn(tlog.HashSize)] ^= 1 << uint(b.rng.Intn(8)) }
	switch kind := b.rng.Intn(18); {
	case kind == 0 && n > 0:
		bit(&p.path[at])
		return p, "a bit of the path"
	case kind == 1:
		bit(&p.first)
		return p, "a bit of the first hash"
	case kind == 2:
		bit(&p.root)
		return p, "a bit of the root"
	case kind == 3 && n > 0:
		p.path = append(p.path[:at], p.path[at+1:]...)
		return p, "a hash taken out"
	case kind == 4:
		p.path = append(p.path[:at], append([]tlog.Hash{b.random()}, p.path[at:]...)...)
		return p, "a hash put in"
	case kind == 5 && n > 0:
		p.path = append(p.path, p.path[at])
		return p, "a hash again at the end"
	case kind == 6 && n > 1:
		other := b.rng.Intn(n)
		p.path[at], p.path[other] = p.path[other], p.path[at]
		return p, "two hashes swapped"
	case kind == 7:
		p.path = append(p.path, p.root)
		return p, "the root at the end"
	case kind == 8:
		p.path = append([]tlog.Hash{p.root}, p.path...)
		return p, "the root in front"
	case kind == 9:
		p.a += int64(b.rng.Intn(5)) - 2
		return p, "another index"
	case kind == 10:
		p.a ^= 2
		return p, "index xor 2"
	case kind == 11:
		p.size += int64(b.rng.Intn(5)) - 2
		return p, "another size"
	case kind == 12:
		p.size *= 2
		return p, "twice the size"
	case kind == 13:
		p.size /= 2
		return p, "half the size"
	case kind == 14:
		p.first, p.root = p.root, p.first
		return p, "hashes swapped"
	case kind == 15:
		p.path = nil
		return p, "no path"
	case kind == 16:
		p.size = b.rng.Int63n(1 << 60)
		p.a = b.rng.Int63n(p.size + 1)
		return p, "a large tree"
	}
	p.root = b.random()
	return p, "a random root"
}

// proofs of random trees, each as it is and with several damages.
func (b *bench) proofs(count, damages int) error {
	var hashes storage
	const largest = 2000
	for i := int64(0); i < largest; i++ {
		more, err := tlog.StoredHashes(i, []byte(fmt.Sprintf("%d %d", i, b.rng.Int63())), hashes)
		if err != nil {
			return err
		}
		hashes = append(hashes, more...)
	}
	for k := 0; k < count; k++ {
		p := proof{letter: "IP"[k%2], size: 1 + b.rng.Int63n(largest)}
		if k%3 == 0 {
			p.size = 1 + b.rng.Int63n(20)
		}
		p.root, _ = rootOf(p.size, hashes)
		var err error
		if p.letter == 'I' {
			p.a = b.rng.Int63n(p.size)
			p.first = hashes[tlog.StoredHashIndex(0, p.a)]
			p.path, err = tlog.ProveRecord(p.size, p.a, hashes)
		} else {
			p.a = 1 + b.rng.Int63n(p.size)
			p.first, _ = rootOf(p.a, hashes)
			p.path, err = tlog.ProveTree(p.size, p.a, hashes)
		}
		if err != nil {
			return err
		}
		b.judge(p, "as it is")
		for i := 0; i < damages; i++ {
			bad, what := b.damage(p)
			b.judge(bad, what)
		}
	}
	return nil
}

// isLenient: a signature's base64 that Go decodes though it is not what encoding gives.
func isLenient(msg []byte) bool {
	for _, line := range strings.Split(string(msg), "\n") {
		if f := strings.Split(line, " "); len(f) == 3 && f[0] == "—" {
			raw, err := base64.StdEncoding.DecodeString(f[2])
			if err == nil && base64.StdEncoding.EncodeToString(raw) != f[2] {
				return true
			}
		}
	}
	return false
}

func (b *bench) judgeNote(vkey string, msg []byte, what string) error {
	v, err := newVerifier(vkey)
	if err != nil {
		return err
	}
	_, err = note.Open(msg, note.VerifierList(v))
	b.put(byte('N'), uint16(len(vkey)), vkey, uint32(len(msg)), msg)
	b.add(err == nil, isLenient(msg), "note %s: %q by %s", what, msg, vkey)
	return nil
}

// signer is a log or a witness.
func (b *bench) signer(name string) (note.Signer, string, error) {
	if b.rng.Intn(2) == 0 {
		c, err := newCosigner(b.rng, name, b.rng.Uint64()>>1>>uint(b.rng.Intn(63)))
		return c, c.vkey(), err
	}
	skey, vkey, err := note.GenerateKey(b.rng, name)
	if err != nil {
		return nil, "", err
	}
	signer, err := note.NewSigner(skey)
	return signer, vkey, err
}

// notes that Go signs, with keys of others beside, and with damages.
func (b *bench) notes(count, damages int) error {
	texts := []string{"x\n", "a\n\nb\n", "example.com/log\n0\nroot\n", "\n", "é\u00a0ü\n", "— no signature\n\n\n"}
	for k := 0; k < count; k++ {
		var signers []note.Signer
		var vkeys []string
		for i := 0; i <= b.rng.Intn(3); i++ {
			signer, vkey, err := b.signer(fmt.Sprintf("key-%d.example/é", b.rng.Intn(1000)))
			if err != nil {
				return err
			}
			signers, vkeys = append(signers, signer), append(vkeys, vkey)
		}
		msg, err := note.Sign(&note.Note{Text: texts[k%len(texts)]}, signers...)
		if err != nil {
			return err
		}
		vkey := vkeys[b.rng.Intn(len(vkeys))]
		if err = b.judgeNote(vkey, msg, "as it is"); err != nil {
			return err
		}
		for i := 0; i < damages; i++ {
			bad := append([]byte(nil), msg...)
			at := b.rng.Intn(len(bad))
			switch b.rng.Intn(4) {
			case 0:
				bad[at] ^= 1 << uint(b.rng.Intn(8))
			case 1:
				bad = append(bad[:at], bad[at+1:]...)
			case 2:
				bad = append(bad[:at], append([]byte{"\n A+=—x\r\x00"[b.rng.Intn(11)]}, bad[at:]...)...)
			case 3:
				bad = bad[:at]
			}
			if err = b.judgeNote(vkey, bad, "damaged"); err != nil {
				return err
			}
		}
	}
	return nil
}

// paths, and what becomes of them when a few characters change.
func (b *bench) paths(count int) {
	const letters = "0123456789x/.pentritl-+ "
	for k := 0; k < count; k++ {
		tile := tlog.Tile{H: 8, L: b.rng.Intn(64), N: b.rng.Int63() >> uint(b.rng.Intn(62)), W: 1 + b.rng.Intn(256)}
		if b.rng.Intn(4) == 0 {
			tile.L = -1
		}
		path := []byte(c2spPath(tile))
		for i := b.rng.Intn(3); i > 0; i-- {
			at, c := b.rng.Intn(len(path)), letters[b.rng.Intn(len(letters))]
			switch b.rng.Intn(3) {
			case 0:
				path[at] = c
			case 1:
				path = append(path[:at], path[at+1:]...)
			case 2:
				path = append(path[:at], append([]byte{c}, path[at:]...)...)
			}
		}
		_, err := parseTile(string(path))
		b.put(byte('T'), uint16(len(path)), path)
		b.add(err == nil, false, "path %q", path)
	}
}

func compareVerdicts(seed, program string) error {
	n, err := strconv.ParseInt(seed, 10, 64)
	if err != nil {
		return err
	}
	b := &bench{rng: rand.New(rand.NewSource(n))}
	if err = b.proofs(3000, 20); err != nil {
		return err
	}
	if err = b.notes(300, 20); err != nil {
		return err
	}
	b.paths(20000)
	cmd := exec.Command(program, "judge")
	cmd.Stdin, cmd.Stderr = &b.cases, os.Stderr
	kedge, err := cmd.Output()
	if err != nil || len(kedge) != len(b.verdicts) {
		return fmt.Errorf("%s judge: %d verdicts, expected %d (%v)", program, len(kedge), len(b.verdicts), err)
	}
	accepted, stricter := 0, 0
	for i, v := range kedge {
		accepted += int(v)
		if v == b.verdicts[i] {
			continue
		}
		if v == 1 || !b.lenient[i] {
			return fmt.Errorf("Kedge says %d, Go %d: %s", v, b.verdicts[i], b.names[i])
		}
		stricter++
	}
	if accepted == 0 || accepted == len(kedge) {
		return fmt.Errorf("%d of %d accepted: nothing was compared", accepted, len(kedge))
	}
	fmt.Printf("%d cases judged alike, %d accepted; Kedge refused %d notes whose base64 is not canonical\n",
		len(kedge)-stricter, accepted, stricter)
	return nil
}
