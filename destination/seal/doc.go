// Package seal keeps bytes unreadable at rest: AES-256-GCM under one key of a
// ring.
//
// # Model
//
//	Ring ── first key ──▶ Seal   "<key id>:<base64 of nonce and ciphertext>"
//	     └─ every key ──▶ Open   by the key id
//
// A key is 32 bytes in base64; its id is the start of its SHA-256, so that a
// ring needs no names. To rotate, put the new key in front and keep the old
// one until nothing sealed under it has to be opened any more.
//
// # Invariants
//
//   - What is sealed for one place opens at no other: the place is
//     authenticated with the text.
//   - Neither keys nor opened bytes appear in an error.
//   - A Ring prints as "[redacted]".
//
// # Failure behaviour
//
// Seal fails only without a key (ErrNoKey). Open fails with a *KeyError when
// the ring has not got the key, which another configuration repairs, and with
// ErrBroken when the text is not what was sealed for that place.
package seal
