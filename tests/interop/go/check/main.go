// Command kedge-interop checks what Kedge writes with Go's x/mod: signed notes with sumdb/note, trees, proofs
// and tiles with sumdb/tlog.
//
//	kedge-interop log                         a random log of interop_log on stdin
//	kedge-interop judge SEED INTEROP_LOG      both judge the same proofs, notes and paths
//	kedge-interop record KEDGE DIR TILES      a record of kedge poc, and its logs as files
//	kedge-interop https URL DIR SCRATCH       the same logs from a coordinator, as two kinds of readers
//
// Exit codes: 0 all agree, 1 something does not.
package main

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A checkpoint is what c2sp.org/tlog-checkpoint has: tlog.ParseTree reads one origin only.
type checkpoint struct {
	origin string
	tree   tlog.Tree
}

func parseCheckpoint(text string) (checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) < 4 || lines[len(lines)-1] != "" || lines[0] == "" {
		return checkpoint{}, fmt.Errorf("not a checkpoint: %q", text)
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return checkpoint{}, fmt.Errorf("size %q", lines[1])
	}
	root, err := base64.StdEncoding.DecodeString(lines[2])
	if err != nil || len(root) != tlog.HashSize {
		return checkpoint{}, fmt.Errorf("root %q", lines[2])
	}
	c := checkpoint{origin: lines[0], tree: tlog.Tree{N: size}}
	copy(c.tree.Hash[:], root)
	return c, nil
}

// openCheckpoint verifies the note by one key, whose name is the origin.
func openCheckpoint(msg []byte, v note.Verifier) (checkpoint, error) {
	n, err := note.Open(msg, note.VerifierList(v))
	if err != nil {
		return checkpoint{}, err
	}
	c, err := parseCheckpoint(n.Text)
	if err == nil && c.origin != v.Name() {
		err = fmt.Errorf("origin %q, expected %q", c.origin, v.Name())
	}
	return c, err
}

// storage is a log as Go keeps it.
type storage []tlog.Hash

func (s storage) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	hashes := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		if x < 0 || x >= int64(len(s)) {
			return nil, fmt.Errorf("no hash %d", x)
		}
		hashes[i] = s[x]
	}
	return hashes, nil
}

// rootOf is tlog.TreeHash, which has no hash of the empty tree.
func rootOf(size int64, r tlog.HashReader) (tlog.Hash, error) {
	if size == 0 {
		return sha256.Sum256(nil), nil
	}
	return tlog.TreeHash(size, r)
}

// tiles reads C2SP files (by path below the log's prefix) for tlog.TileHashReader.
type tiles func(path string) ([]byte, error)

func (t tiles) Height() int { return 8 }

func (t tiles) SaveTiles([]tlog.Tile, [][]byte) {}

// c2spPath drops the height: "tile/8/1/000" is "tile/1/000".
func c2spPath(t tlog.Tile) string {
	rest := strings.TrimPrefix(t.Path(), "tile/8/")
	if strings.HasPrefix(rest, "data/") {
		rest = "entries/" + strings.TrimPrefix(rest, "data/")
	}
	return "tile/" + rest
}

func (t tiles) ReadTiles(list []tlog.Tile) ([][]byte, error) {
	var all [][]byte
	for _, tile := range list {
		data, err := t(c2spPath(tile))
		if err != nil { // a partial tile may have gone once there is the full one
			full := tile
			full.W = 1 << 8
			if data, err = t(c2spPath(full)); err != nil {
				return nil, err
			}
			data = data[:tile.W*tlog.HashSize]
		}
		all = append(all, data)
	}
	return all, nil
}

// records takes a bundle apart: uint16 length, bytes.
func records(bundle []byte) ([][]byte, error) {
	var list [][]byte
	for len(bundle) > 0 {
		if len(bundle) < 2 {
			return nil, fmt.Errorf("bundle ends in a length")
		}
		n := int(bundle[0])<<8 | int(bundle[1])
		if len(bundle) < 2+n {
			return nil, fmt.Errorf("bundle ends in an entry")
		}
		list = append(list, bundle[2:2+n])
		bundle = bundle[2+n:]
	}
	return list, nil
}

func main() {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[1] == "log":
		err = checkLog(os.Stdin)
	case len(os.Args) == 4 && os.Args[1] == "judge":
		err = compareVerdicts(os.Args[2], os.Args[3])
	case len(os.Args) == 5 && os.Args[1] == "record":
		err = checkRecord(os.Args[2], os.Args[3], os.Args[4])
	case len(os.Args) == 5 && os.Args[1] == "https":
		err = checkServer(os.Args[2], os.Args[3], os.Args[4])
	default:
		err = fmt.Errorf("usage: kedge-interop log | judge SEED INTEROP_LOG | record KEDGE DIR TILES |" +
			" https URL DIR SCRATCH")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kedge-interop:", err)
		os.Exit(1)
	}
}
