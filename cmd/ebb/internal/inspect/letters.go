package inspect

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNoDeadLetter is returned where the dead letter does not exist.
var ErrNoDeadLetter = errors.New("no such dead letter")

// Letter is a record that could not be read, and where it lies.
type Letter struct {
	ID        int64     `json:"id"`
	Reader    string    `json:"reader"` // the consumer group
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Reason    string    `json:"reason"`
	Detail    string    `json:"detail"`
	Key       Bytes     `json:"key"`
	Size      int       `json:"valueBytes"` // length of the value, -1 for a null one
	At        time.Time `json:"at"`
}

// FullLetter is a letter with everything that the record held.
type FullLetter struct {
	Letter
	Headers []Header `json:"headers"`
	Value   Bytes    `json:"value"`
}

// Header of a record; the name as it is, if it is UTF-8.
type Header struct {
	Name  Bytes `json:"name"`
	Value Bytes `json:"value"`
}

// Bytes are shown as {"base64": …}, with "utf8" beside it where they are text, and null where they are.
type Bytes []byte

// MarshalJSON never changes a byte.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if b == nil {
		return []byte("null"), nil
	}
	out := struct {
		Base64 string  `json:"base64"`
		UTF8   *string `json:"utf8,omitempty"`
	}{Base64: base64.StdEncoding.EncodeToString(b)}
	if text := string(b); utf8.ValidString(text) {
		out.UTF8 = &text
	}
	return json.Marshal(out)
}

// LetterFilter selects dead letters; the zero value selects the newest.
type LetterFilter struct {
	Reader string
	Topic  string
	Reason string
	Before int64 // only ids below; 0: from the newest
	Limit  int   // page size, 1 to 1000
}

const letterColumns = "id, reader, topic, partition, record_offset, reason, detail, key, coalesce(octet_length(value), -1), created_at"

// Letters lists dead letters, newest first.
func Letters(ctx context.Context, pool *pgxpool.Pool, f LetterFilter) ([]Letter, error) {
	rows, err := pool.Query(ctx, `SELECT `+letterColumns+` FROM ebb.dead_letters
WHERE ($1 = '' OR reader = $1) AND ($2 = '' OR topic = $2) AND ($3 = '' OR reason = $3) AND ($4 = 0 OR id < $4)
ORDER BY id DESC LIMIT $5`, f.Reader, f.Topic, f.Reason, f.Before, min(max(f.Limit, 1), 1000))
	if err != nil {
		return nil, fmt.Errorf("read dead letters: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l Letter, err error) {
		err = row.Scan(l.columns()...)
		l.At = l.At.UTC()
		return l, err
	})
	if err != nil {
		return nil, fmt.Errorf("read dead letters: %w", err)
	}
	return out, nil
}

// LetterGroup counts the dead letters of a reader, topic and reason.
type LetterGroup struct {
	Reader string    `json:"reader"`
	Topic  string    `json:"topic"`
	Reason string    `json:"reason"`
	Count  int64     `json:"count"`
	First  time.Time `json:"firstAt"`
	Last   time.Time `json:"lastAt"`
}

// LetterGroups counts all dead letters that the filter selects, the largest group first; Before and Limit do not count.
func LetterGroups(ctx context.Context, pool *pgxpool.Pool, f LetterFilter) ([]LetterGroup, error) {
	rows, err := pool.Query(ctx, `SELECT reader, topic, reason, count(*), min(created_at), max(created_at) FROM ebb.dead_letters
WHERE ($1 = '' OR reader = $1) AND ($2 = '' OR topic = $2) AND ($3 = '' OR reason = $3)
GROUP BY reader, topic, reason ORDER BY count(*) DESC, reader, topic, reason`, f.Reader, f.Topic, f.Reason)
	if err != nil {
		return nil, fmt.Errorf("count dead letters: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g LetterGroup, err error) {
		err = row.Scan(&g.Reader, &g.Topic, &g.Reason, &g.Count, &g.First, &g.Last)
		g.First, g.Last = g.First.UTC(), g.Last.UTC()
		return g, err
	})
	if err != nil {
		return nil, fmt.Errorf("count dead letters: %w", err)
	}
	return out, nil
}

func (l *Letter) columns() []any {
	return []any{&l.ID, &l.Reader, &l.Topic, &l.Partition, &l.Offset, &l.Reason, &l.Detail, (*[]byte)(&l.Key), &l.Size, &l.At}
}

// LetterOf gives one dead letter with all it held, ErrNoDeadLetter if there is none.
func LetterOf(ctx context.Context, pool *pgxpool.Pool, id int64) (FullLetter, error) {
	var l FullLetter
	var headers []byte
	err := pool.QueryRow(ctx, "SELECT "+letterColumns+", headers, value FROM ebb.dead_letters WHERE id = $1", id).
		Scan(append(l.columns(), &headers, (*[]byte)(&l.Value))...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return l, fmt.Errorf("%w: %d; see `ebb dlq list`", ErrNoDeadLetter, id)
	case err != nil:
		return l, fmt.Errorf("read a dead letter: %w", err)
	}
	l.At = l.At.UTC()
	if l.Headers, err = decodeHeaders(headers); err != nil {
		return l, fmt.Errorf("headers of dead letter %d: %w", id, err)
	}
	return l, nil
}

// decodeHeaders reads the journal's form: a JSON list of [base64 name, base64 value or null].
func decodeHeaders(text []byte) ([]Header, error) {
	var list [][2]*string
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	out := make([]Header, len(list))
	for i, pair := range list {
		for j, into := range []*Bytes{&out[i].Name, &out[i].Value} {
			if pair[j] == nil {
				continue
			}
			b, err := base64.StdEncoding.DecodeString(*pair[j])
			if err != nil {
				return nil, err
			}
			*into = b
		}
	}
	return out, nil
}
