package intake_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/internal/intake"
	"github.com/ebbline/ebb/journal/saga"
)

const eventID = "01987a3c-0d5e-7a11-9c3f-2b1a5d6e7f80"

// headers makes a record at offset 41 of "name=value" headers.
func withHeaders(list ...string) *kgo.Record {
	r := &kgo.Record{Key: []byte("42"), Offset: 41}
	for _, h := range list {
		name, value, _ := strings.Cut(h, "=")
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	return r
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	id, err := saga.ParseID(eventID)
	require.NoError(t, err)
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	foreign := intake.Envelope{ID: "eventId", Type: "kind", Version: "rev", Time: "at", TraceParent: "tp"}
	const schema = `{"type":"string","optional":false,"name":"io.debezium.data.Uuid","version":1}`
	for _, c := range []struct {
		name     string
		envelope intake.Envelope
		record   *kgo.Record
		want     intake.Meta
	}{
		{
			"contract", intake.Envelope{}, withHeaders("id="+eventID, "eventType=T", "aggregateVersion=7", "traceparent=00-x"),
			intake.Meta{ID: id, Type: "T", Key: "42", Version: 7, TraceParent: "00-x"},
		},
		{"no version", intake.Envelope{}, withHeaders("id="+eventID, "eventType=T"), intake.Meta{ID: id, Type: "T", Key: "42", Version: 42}},
		{"last header counts", intake.Envelope{}, withHeaders("id=x", "id="+eventID, "eventType=A", "eventType=B"), intake.Meta{ID: id, Type: "B", Key: "42", Version: 42}},
		{
			"other names", foreign, withHeaders("eventId="+eventID, "kind=T", "rev=0", "at=2026-01-02T03:04:05.678Z", "tp=p", "id=other", "aggregateVersion=9"),
			intake.Meta{ID: id, Type: "T", Key: "42", Version: 0, Time: at, TraceParent: "p"},
		},
		{"no time", foreign, withHeaders("eventId="+eventID, "kind=T", "rev=1"), intake.Meta{ID: id, Type: "T", Key: "42", Version: 1}},
		{
			"time with a zone", foreign, withHeaders("eventId="+eventID, "kind=T", "rev=1", "at=2026-01-02T05:04:05.678+02:00"),
			intake.Meta{ID: id, Type: "T", Key: "42", Version: 1, Time: at},
		},
		{"milliseconds", foreign, withHeaders("eventId="+eventID, "kind=T", "rev=1", "at=1767323045678"), intake.Meta{ID: id, Type: "T", Key: "42", Version: 1, Time: at}},
		{"microseconds", foreign, withHeaders("eventId="+eventID, "kind=T", "rev=1", "at=1767323045678000"), intake.Meta{ID: id, Type: "T", Key: "42", Version: 1, Time: at}},
		{"nanoseconds", foreign, withHeaders("eventId="+eventID, "kind=T", "rev=1", "at=1767323045678000000"), intake.Meta{ID: id, Type: "T", Key: "42", Version: 1, Time: at}},
		{"seconds", foreign, withHeaders("eventId="+eventID, "kind=T", "rev=1", "at=1767323045"), intake.Meta{ID: id, Type: "T", Key: "42", Version: 1, Time: at.Truncate(time.Second)}},
		{
			"quoted by a JSON converter", intake.Envelope{}, withHeaders(`id="`+eventID+`"`, `eventType="T"`, "aggregateVersion=3", "traceparent=null"),
			intake.Meta{ID: id, Type: "T", Key: "42", Version: 3},
		},
		{
			"wrapped by a JSON converter", intake.Envelope{},
			withHeaders(`id={"schema":`+schema+`,"payload":"`+eventID+`"}`, `eventType={"schema":{},"payload":"T"}`, `aggregateVersion={"schema":{},"payload":9007199254740993}`),
			intake.Meta{ID: id, Type: "T", Key: "42", Version: 9007199254740993},
		},
		{
			"null version of a JSON converter", intake.Envelope{}, withHeaders("id="+eventID, "eventType=T", `aggregateVersion={"schema":{},"payload":null}`),
			intake.Meta{ID: id, Type: "T", Key: "42", Version: 42},
		},
		{"topic of one type", intake.Envelope{EventType: "Only"}, withHeaders("id="+eventID, "aggregateVersion=1"), intake.Meta{ID: id, Type: "Only", Key: "42", Version: 1}},
		{"a type that is there wins", intake.Envelope{EventType: "Only"}, withHeaders("id="+eventID, "eventType=T", "aggregateVersion=1"), intake.Meta{ID: id, Type: "T", Key: "42", Version: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, c.envelope.Validate())
			got, fault := c.envelope.Read(c.record)
			require.Empty(t, fault)
			require.Equal(t, c.want, got)
		})
	}
}

func TestEnvelopeFaults(t *testing.T) {
	t.Parallel()
	key := func(r *kgo.Record, key []byte) *kgo.Record { r.Key = key; return r }
	nameless := withHeaders("id=x", "eventType=T")
	nameless.Headers[0].Value = nil
	foreign := intake.Envelope{ID: "eventId", Type: "kind", Version: "rev", Time: "at"}
	good := []string{"eventId=" + eventID, "kind=T"}
	for _, c := range []struct {
		name     string
		envelope intake.Envelope
		record   *kgo.Record
		want     string
	}{
		{"no id", intake.Envelope{}, withHeaders("eventType=T"), "header id is missing"},
		{"null id", intake.Envelope{}, nameless, "header id is missing"},
		{"null id of a JSON converter", intake.Envelope{}, withHeaders("id=null", "eventType=T"), "header id is missing"},
		{"bad id", intake.Envelope{}, withHeaders("id=secret-7", "eventType=T"), "header id: "},
		{"no id under another name", foreign, withHeaders("id="+eventID, "kind=T", "rev=1"), "header eventId is missing"},
		{"no type", intake.Envelope{}, withHeaders("id=" + eventID), "header eventType is missing"},
		{"empty type", intake.Envelope{}, withHeaders("id="+eventID, "eventType="), "header eventType is missing"},
		{"type that is no text", intake.Envelope{}, withHeaders("id="+eventID, "eventType=\xff"), "header eventType is not UTF-8"},
		{"endless type", intake.Envelope{}, withHeaders("id="+eventID, "eventType="+strings.Repeat("x", 1025)), "header eventType has 1025 bytes"},
		{"no key", intake.Envelope{}, key(withHeaders("id="+eventID, "eventType=T"), nil), "no key"},
		{"empty key", intake.Envelope{}, key(withHeaders("id="+eventID, "eventType=T"), []byte{}), "no key"},
		{"key that is no text", intake.Envelope{}, key(withHeaders("id="+eventID, "eventType=T"), []byte{0xff}), "key is not UTF-8"},
		{"key with a NUL", intake.Envelope{}, key(withHeaders("id="+eventID, "eventType=T"), []byte("4\x002")), "the key has control characters"},
		{"type with a line feed", intake.Envelope{}, withHeaders("id="+eventID, "eventType=T\n"), "header eventType has control characters"},
		{"endless key", intake.Envelope{}, key(withHeaders("id="+eventID, "eventType=T"), make([]byte, 1025)), "the key has 1025 bytes"},
		{"version that is no number", intake.Envelope{}, withHeaders("id="+eventID, "eventType=T", "aggregateVersion=secret"), "header aggregateVersion is not a number: 6 characters"},
		{"version with an exponent", intake.Envelope{}, withHeaders("id="+eventID, "eventType=T", "aggregateVersion=1e3"), "not a number"},
		{"version beyond a long", intake.Envelope{}, withHeaders("id="+eventID, "eventType=T", "aggregateVersion=9223372036854775808"), "not a number"},
		{"version below zero", intake.Envelope{}, withHeaders("id="+eventID, "eventType=T", "aggregateVersion=-1"), "not a number"},
		{"version that was named", foreign, withHeaders(good...), "header rev is missing"},
		{"time that is none", foreign, withHeaders(append(good, "rev=1", "at=yesterday")...), "header at is neither"},
		{"time of no year", foreign, withHeaders(append(good, "rev=1", "at=0000-01-01T00:00:00Z")...), "header at is neither"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, fault := c.envelope.Read(c.record)
			require.Contains(t, fault, c.want)
			require.NotContains(t, fault, "secret")
			require.Zero(t, got)
		})
	}
}

func TestEnvelopeNamesEachHeaderOnce(t *testing.T) {
	t.Parallel()
	err := intake.Envelope{ID: "x", Type: "x", Time: "traceparent"}.Validate()
	require.ErrorContains(t, err, `header "x" is named for the id and for the type`)
	require.ErrorContains(t, err, `header "traceparent" is named for the time and for the trace context`)
}

// FuzzEnvelope: whatever headers hold, there is an event or a fault, and never a panic.
func FuzzEnvelope(f *testing.F) {
	f.Add(eventID, "T", "1", "2026-01-02T03:04:05Z", []byte("42"))
	f.Add(`"`+eventID+`"`, `"T"`, "null", "1767323045678", []byte("42"))
	f.Add(`{"schema":{},"payload":"x"}`, "{", `{"schema":{},"payload":[]}`, "-1", []byte{0xff})
	f.Fuzz(func(t *testing.T, id, eventType, version, at string, key []byte) {
		r := &kgo.Record{Key: key, Headers: []kgo.RecordHeader{
			{Key: "id", Value: []byte(id)}, {Key: "eventType", Value: []byte(eventType)}, {Key: "aggregateVersion", Value: []byte(version)}, {Key: "at", Value: []byte(at)},
		}}
		m, fault := intake.Envelope{Time: "at"}.Read(r)
		if fault == "" && (m.ID == saga.ID{} && !strings.Contains(id, "00000000") || m.Type == "" || m.Key == "" || m.Version < 0) {
			t.Fatalf("neither an event nor a fault: %+v", m)
		}
	})
}
