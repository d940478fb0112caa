package sim

import (
	"encoding/json"
	"net/http"
	"time"
	"unicode/utf8"
)

// Direction says what a call asks for.
type Direction string

// The directions. A lookup reads and changes nothing.
const (
	Do     Direction = "do"
	Undo   Direction = "undo"
	Lookup Direction = "lookup"
)

// Kind names what an effect did to the outside world.
type Kind string

// The kinds of effect. A fraud check only reads, so it has none.
const (
	StockHold       Kind = "stock_hold"
	StockRelease    Kind = "stock_release"
	Charge          Kind = "charge"
	Refund          Kind = "refund"
	HighValue       Kind = "high_value"
	HighValueCancel Kind = "high_value_cancel"
	Shipment        Kind = "shipment"
	ShipmentCancel  Kind = "shipment_cancel"
	Notification    Kind = "notification"
)

// Effect is one thing that happened in the outside world. The effects ledger
// is what tests judge the pipeline by.
type Effect struct {
	Seq         int64     `json:"seq"`  // 1, 2, 3 … in the order of happening
	Call        int64     `json:"call"` // sequence number of the call that caused it
	At          time.Time `json:"at"`
	Destination string    `json:"destination"`
	Direction   Direction `json:"direction"`
	Kind        Kind      `json:"kind"`
	// Aggregate is the order that the effect belongs to; for an undo, the one
	// that the undone thing was made for.
	Aggregate string `json:"aggregate"`
	// Caller is the aggregate that the call named, if that is another one.
	Caller string `json:"caller,omitempty"`
	// Thing is the id of the hold, charge, shipment … that was made or ended.
	Thing string `json:"thing"`
	// Amount is the money moved, digit for digit as it was sent; empty for none.
	Amount   string `json:"amount,omitempty"`
	Currency string `json:"currency,omitempty"`
	Key      string `json:"key,omitempty"` // Idempotency-Key
	EventID  string `json:"eventId,omitempty"`
}

// Call is one HTTP request to a destination, in order of arrival.
type Call struct {
	Seq    int64     `json:"seq"` // 1, 2, 3 … in the order of arrival
	At     time.Time `json:"at"`
	Method string    `json:"method"`
	// Target is the request target as it stood on the request line, undecoded.
	Target string `json:"target"`
	Host   string `json:"host"`
	// Header holds the values as received, repeated ones in order. The names
	// are in canonical form; their order on the wire is not kept.
	Header http.Header `json:"header"`
	// Body is the body as received, after removal of transfer coding.
	Body RawBody `json:"body"`
	// The rest is what the simulator made of it; empty for an unknown path.
	Destination string    `json:"destination,omitempty"`
	Direction   Direction `json:"direction,omitempty"`
	Endpoint    string    `json:"endpoint,omitempty"`
	Aggregate   string    `json:"aggregate,omitempty"`
	Key         string    `json:"key,omitempty"`
	// Attempt counts the calls to this destination under this key, from 1;
	// lookups are not counted. 0 without a key.
	Attempt int `json:"attempt,omitempty"`
	// Reply is nil while the call is in flight, or when the simulator died in it.
	Reply *Reply `json:"reply,omitempty"`
}

// Reply is how a call ended.
type Reply struct {
	Status   int    `json:"status"`             // 0: the connection was cut without a reply
	Fault    string `json:"fault,omitempty"`    // id and action of the fault that shaped it
	Replayed bool   `json:"replayed,omitempty"` // an earlier answer under the same key
	Effect   int64  `json:"effect,omitempty"`   // sequence number of the effect it caused
}

// RawBody is a body as bytes. Its JSON is a string when the bytes are UTF-8,
// else {"base64": "…"}; both give back the same bytes.
type RawBody []byte

type rawBase64 struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements [json.Marshaler].
func (b RawBody) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return json.Marshal(string(b))
	}
	return json.Marshal(rawBase64{b})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (b *RawBody) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*b = RawBody(text)
		return nil
	}
	var raw rawBase64
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*b = raw.Base64
	return nil
}

// record is one line of the ledger file: a call that arrived, or how it ended.
// The effect and the remembered answer share a line with the end, so that none
// of them can be kept without the others.
type record struct {
	Call *Call `json:"call,omitempty"`
	Done *done `json:"done,omitempty"`
}

type done struct {
	Call   int64   `json:"call"`
	Reply  Reply   `json:"reply"`
	Effect *Effect `json:"effect,omitempty"`
	Answer *answer `json:"answer,omitempty"`
}

// answer is a processed reply, kept for repeats and lookups under its key.
type answer struct {
	answerHead
	Body RawBody `json:"body"`
}

type answerHead struct {
	Destination string    `json:"destination"`
	Key         string    `json:"key"`
	Fingerprint []byte    `json:"fingerprint"` // of method, target and body
	At          time.Time `json:"at"`
	Status      int       `json:"status"`
}

func (a answerHead) refused() bool { return a.Status >= 400 }

// callHead and doneHead are what is read of the records when only the state or
// a filter asks.
type callHead struct {
	Destination string    `json:"destination"`
	Direction   Direction `json:"direction"`
	Aggregate   string    `json:"aggregate"`
	Key         string    `json:"key"`
}

type doneHead struct {
	Call   int64       `json:"call"`
	Effect *Effect     `json:"effect"`
	Answer *answerHead `json:"answer"`
}
