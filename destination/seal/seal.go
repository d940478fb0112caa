package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// Env names the setting that holds the ring.
const Env = "EBB_SEAL_KEY"

const keyBytes = 32

// The errors of Seal and Open; see also KeyError.
var (
	ErrNoKey  = errors.New("no key to seal with; set " + Env + " to 32 random bytes in base64")
	ErrBroken = errors.New("sealed text is damaged, or was sealed for another place")
)

// KeyError says that a text was sealed under a key that the ring has not got.
type KeyError struct{ ID string }

func (e *KeyError) Error() string {
	return fmt.Sprintf("sealed under key %s, which is not in %s; append that key", e.ID, Env)
}

// Ring seals with its first key and opens with all. The zero value has none.
type Ring struct{ keys []key }

type key struct {
	id   string
	aead cipher.AEAD
}

func (Ring) String() string { return "[redacted]" }

// GoString hides the keys.
func (Ring) GoString() string { return "[redacted]" }

// LogValue keeps the keys out of logs.
func (Ring) LogValue() slog.Value { return slog.StringValue("[redacted]") }

// IsZero reports whether the ring has no key.
func (r Ring) IsZero() bool { return len(r.keys) == 0 }

// Parse reads keys in base64, separated by commas. Empty text gives the zero
// Ring. The error tells which key is wrong, by its place.
func Parse(text string) (Ring, error) {
	var r Ring
	if strings.TrimSpace(text) == "" {
		return r, nil
	}
	for i, entry := range strings.Split(text, ",") {
		raw, err := decode(strings.TrimSpace(entry))
		if err != nil || len(raw) != keyBytes {
			return Ring{}, fmt.Errorf("%s: key %d is not %d bytes in base64; make one with: openssl rand -base64 %d", Env, i+1, keyBytes, keyBytes)
		}
		block, err := aes.NewCipher(raw)
		if err != nil {
			return Ring{}, fmt.Errorf("%s: key %d cannot be used", Env, i+1)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return Ring{}, fmt.Errorf("%s: key %d cannot be used", Env, i+1)
		}
		sum := sha256.Sum256(raw)
		r.keys = append(r.keys, key{hex.EncodeToString(sum[:4]), aead})
	}
	return r, nil
}

func decode(text string) ([]byte, error) {
	text = strings.TrimRight(text, "=")
	if strings.ContainsAny(text, "-_") {
		return base64.RawURLEncoding.DecodeString(text)
	}
	return base64.RawStdEncoding.DecodeString(text)
}

// Seal gives plain as text that only the ring can read, and only for place.
func (r Ring) Seal(plain []byte, place string) (string, error) {
	if r.IsZero() {
		return "", ErrNoKey
	}
	k := r.keys[0]
	nonce := make([]byte, k.aead.NonceSize(), k.aead.NonceSize()+len(plain)+k.aead.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return k.id + ":" + base64.StdEncoding.EncodeToString(k.aead.Seal(nonce, nonce, plain, []byte(place))), nil
}

// Open gives back what was sealed for place.
func (r Ring) Open(text, place string) ([]byte, error) {
	id, sealed, _ := strings.Cut(text, ":")
	raw, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil || id == "" {
		return nil, ErrBroken
	}
	for _, k := range r.keys {
		if k.id != id {
			continue
		}
		n := k.aead.NonceSize()
		if len(raw) < n {
			return nil, ErrBroken
		}
		plain, err := k.aead.Open(nil, raw[:n], raw[n:], []byte(place))
		if err != nil {
			return nil, ErrBroken
		}
		return plain, nil
	}
	return nil, &KeyError{id}
}
