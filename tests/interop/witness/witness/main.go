// A witness of c2sp.org/tlog-witness in a page, with Go's crypto/ed25519 and golang.org/x/mod (sumdb/note,
// sumdb/tlog): it verifies the log's note and that the log grew out of what it cosigned before, and answers with a
// cosignature/v1 line. A file says in what mood it is.
//
//	witness NAME LOGVKEY MOODFILE      prints "VKEY" and "PORT", a line each
package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

const algorithm = 4 // cosignature/v1

type witness struct {
	sync.Mutex
	name     string
	key      ed25519.PrivateKey
	verifier note.Verifier
	mood     string // file
	size     int64  // cosigned
	root     tlog.Hash
	maze     int64
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func keyID(name string, public ed25519.PublicKey) []byte {
	h := sha256.New()
	h.Write([]byte(name + "\n"))
	h.Write([]byte{algorithm})
	h.Write(public)
	return h.Sum(nil)[:4]
}

// cosign gives the line of cosignature/v1 over a checkpoint's text.
func cosign(name string, key ed25519.PrivateKey, text string) string {
	now := time.Now().Unix()
	signature := ed25519.Sign(key, []byte(fmt.Sprintf("cosignature/v1\ntime %d\n%s", now, text)))
	blob := append([]byte(nil), keyID(name, key.Public().(ed25519.PublicKey))...)
	blob = binary.BigEndian.AppendUint64(blob, uint64(now))
	return "— " + name + " " + base64.StdEncoding.EncodeToString(append(blob, signature...)) + "\n"
}

// request is "old N", a proof, an empty line and a note.
func parse(body string) (old int64, proof tlog.TreeProof, msg []byte, err error) {
	head, rest, found := strings.Cut(body, "\n\n")
	lines := strings.Split(head, "\n")
	if !found || !strings.HasPrefix(lines[0], "old ") {
		return 0, nil, nil, fmt.Errorf("no request")
	}
	if old, err = strconv.ParseInt(lines[0][4:], 10, 64); err != nil || old < 0 {
		return 0, nil, nil, fmt.Errorf("no size")
	}
	for _, line := range lines[1:] {
		hash, err := tlog.ParseHash(line)
		if err != nil {
			return 0, nil, nil, err
		}
		proof = append(proof, hash)
	}
	return old, proof, []byte(rest), nil
}

func (w *witness) add(r *http.Request) (int, string) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return http.StatusBadRequest, ""
	}
	old, proof, msg, err := parse(string(body))
	if err != nil {
		return http.StatusBadRequest, ""
	}
	n, err := note.Open(msg, note.VerifierList(w.verifier))
	if err != nil {
		return http.StatusForbidden, ""
	}
	lines := strings.Split(n.Text, "\n")
	if lines[0] != w.verifier.Name() {
		return http.StatusNotFound, ""
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || old > size {
		return http.StatusBadRequest, ""
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		return http.StatusBadRequest, ""
	}
	w.Lock()
	defer w.Unlock()
	if old != w.size {
		return http.StatusConflict, fmt.Sprintf("%d\n", w.size)
	}
	if old == size && root != w.root && old > 0 {
		return http.StatusUnprocessableEntity, ""
	}
	if old > 0 && old < size {
		if err := tlog.CheckTree(proof, size, root, old, w.root); err != nil {
			return http.StatusUnprocessableEntity, ""
		}
		fmt.Fprintf(os.Stderr, "%s: grew from %d to %d by %d hashes\n", w.name, old, size, len(proof))
	} else if len(proof) > 0 {
		return http.StatusUnprocessableEntity, ""
	}
	w.size, w.root = size, root
	return http.StatusOK, cosign(w.name, w.key, n.Text)
}

func (w *witness) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	mood, err := os.ReadFile(w.mood)
	check(err)
	_, stranger, err := ed25519.GenerateKey(rand.Reader)
	check(err)
	status, body := http.StatusNotFound, ""
	if r.Method == http.MethodPost && r.URL.Path == "/prefix/add-checkpoint" {
		status, body = w.add(r)
	}
	switch mood := strings.TrimSpace(string(mood)); mood {
	case "good":
	case "stranger": // another key under its name
		status, body = http.StatusOK, cosign(w.name, stranger, "x\n1\nx\n")
	case "forged": // its key's id, another's signature
		line := []byte(body)
		if at := len(line) - 8; status == http.StatusOK && line[at] == 'A' {
			line[at] = 'B'
		} else if status == http.StatusOK {
			line[at] = 'A'
		}
		body = string(line)
	case "garbage":
		status, body = http.StatusOK, "<html>"
	case "huge":
		status, body = http.StatusOK, strings.Repeat("x", 1<<20)
	case "ahead":
		status, body = http.StatusConflict, "1000000000\n"
	case "maze": // never content
		w.Lock()
		w.maze = (w.maze*7 + 3) % 11
		status, body = http.StatusConflict, fmt.Sprintf("%d\n", w.maze)
		w.Unlock()
	case "late":
		time.Sleep(20 * time.Second)
	default:
		status, err = strconv.Atoi(mood)
		check(err)
		body = ""
	}
	out.WriteHeader(status)
	io.WriteString(out, body)
}

func main() {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	check(err)
	verifier, err := note.NewVerifier(os.Args[2])
	check(err)
	w := &witness{name: os.Args[1], key: private, verifier: verifier, mood: os.Args[3]}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	encoded := base64.StdEncoding.EncodeToString(append([]byte{algorithm}, public...))
	fmt.Printf("%s+%x+%s\n%d\n", w.name, keyID(w.name, public), encoded, listener.Addr().(*net.TCPAddr).Port)
	check(http.Serve(listener, w))
}
