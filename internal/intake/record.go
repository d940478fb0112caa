package intake

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ebbline/ebb/journal"
)

// Headers gives the last header of each name, as the contract says; a null header counts as missing.
func Headers(r *kgo.Record) map[string]string {
	out := make(map[string]string, len(r.Headers))
	for _, h := range r.Headers {
		if h.Value == nil {
			delete(out, h.Key)
			continue
		}
		out[h.Key] = string(h.Value)
	}
	return out
}

// DeadLetter keeps a record byte for byte.
func DeadLetter(r *kgo.Record, detail string) *journal.DeadLetter {
	headers := make([]journal.Header, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = journal.Header{Name: h.Key, Value: h.Value}
	}
	return &journal.DeadLetter{Reason: "undecodable", Detail: detail, Key: r.Key, Headers: headers, Value: r.Value}
}

// Places reads a reader's offsets from the journal.
func Places(ctx context.Context, s *journal.Store, reader string) (map[TopicPartition]Place, error) {
	stored, err := s.Offsets(ctx, reader)
	if err != nil {
		return nil, err
	}
	out := make(map[TopicPartition]Place, len(stored))
	for p, at := range stored {
		out[TopicPartition(p)] = Place{TopicID: at.TopicID, Next: at.Next}
	}
	return out, nil
}
