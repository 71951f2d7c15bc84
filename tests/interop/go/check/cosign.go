package main

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// Cosignatures (c2sp.org/tlog-cosignature, "cosignature/v1") are not in x/mod, but its interfaces take them:
// key type 4; the signature is 8 bytes of POSIX seconds and Ed25519 over the message below.
const algCosignature = 4

func cosignedMessage(time uint64, text []byte) []byte {
	return append([]byte(fmt.Sprintf("cosignature/v1\ntime %d\n", time)), text...)
}

func cosignerHash(name string, key ed25519.PublicKey) uint32 {
	sum := sha256.Sum256([]byte(name + "\n" + string(rune(algCosignature)) + string(key)))
	return binary.BigEndian.Uint32(sum[:])
}

// A cosigner is a witness's key: a note.Verifier, and a note.Signer where it has the private half.
type cosigner struct {
	name    string
	key     ed25519.PublicKey
	private ed25519.PrivateKey
	time    uint64 // what it signs, or what it last verified
}

func (c *cosigner) Name() string    { return c.name }
func (c *cosigner) KeyHash() uint32 { return cosignerHash(c.name, c.key) }

func (c *cosigner) Verify(text, sig []byte) bool {
	if len(sig) != 8+ed25519.SignatureSize || sig[0] > 0x7f {
		return false
	}
	c.time = binary.BigEndian.Uint64(sig)
	return ed25519.Verify(c.key, cosignedMessage(c.time, text), sig[8:])
}

func (c *cosigner) Sign(text []byte) ([]byte, error) {
	sig := make([]byte, 8)
	binary.BigEndian.PutUint64(sig, c.time)
	return append(sig, ed25519.Sign(c.private, cosignedMessage(c.time, text))...), nil
}

func (c *cosigner) vkey() string {
	key := append([]byte{algCosignature}, c.key...)
	return fmt.Sprintf("%s+%08x+%s", c.name, c.KeyHash(), base64.StdEncoding.EncodeToString(key))
}

func newCosigner(random io.Reader, name string, time uint64) (*cosigner, error) {
	public, private, err := ed25519.GenerateKey(random)
	return &cosigner{name, public, private, time}, err
}

// newVerifier reads the verifier keys of logs, as x/mod does, and those of witnesses.
func newVerifier(vkey string) (note.Verifier, error) {
	f := strings.SplitN(vkey, "+", 3)
	if len(f) != 3 {
		return nil, fmt.Errorf("no verifier key: %q", vkey)
	}
	key, err := base64.StdEncoding.DecodeString(f[2])
	if err != nil || len(key) != 1+ed25519.PublicKeySize || key[0] != algCosignature {
		return note.NewVerifier(vkey)
	}
	c := &cosigner{name: f[0], key: key[1:]}
	if hash, err := strconv.ParseUint(f[1], 16, 32); err != nil || uint32(hash) != c.KeyHash() {
		return nil, fmt.Errorf("verifier key with another hash: %q", vkey)
	}
	return c, nil
}
