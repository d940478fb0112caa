package relay

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/twmb/franz-go/pkg/kgo"
)

// keepPartition marks a record whose partition the partitioner chooses.
const keepPartition = -1

// typeFunc gives the type that a user-defined type is sent as: the base of a domain, text for an enum.
type typeFunc func(oid uint32) (uint32, error)

// router turns rows into records. It keeps one plan per relation of the current replication session and is used by one
// goroutine.
type router struct {
	rules   *rules
	resolve typeFunc
	plans   map[uint32]*plan // nil plan: a table that is not ours
	row     []cell           // room for the next row
}

func newRouter(r *rules, resolve typeFunc) *router {
	return &router{rules: r, resolve: resolve, plans: map[uint32]*plan{}}
}

// plan says where the parts of a record are in the rows of one table.
type plan struct {
	table     string
	columns   int
	id, key   column
	route     column
	payload   int
	partition int // index of the placed partition column, -1 if none
	headers   []column
	topics    *topicRouter
}

// column is a column that goes into a record as text.
type column struct {
	index   int
	name    string // of the header
	convert convertFunc
}

// relation learns the shape of a table. The server sends it before the first row and again after the table has changed.
func (r *router) relation(m *pglogrepl.RelationMessage) error {
	table := m.Namespace + "." + m.RelationName
	if !slices.Contains(r.rules.Tables, table) {
		r.plans[m.RelationID] = nil
		return nil
	}
	p, err := r.plan(table, m.Columns)
	if err != nil {
		return err
	}
	r.plans[m.RelationID] = p
	return nil
}

func (r *router) plan(table string, columns []*pglogrepl.RelationMessageColumn) (*plan, error) {
	b := planner{table: table, columns: columns, resolve: r.resolve}
	p := &plan{table: table, columns: len(columns), partition: -1, topics: r.rules.topics}
	p.id = b.text(r.rules.EventID, "id", headerConverter)
	p.key = b.text(r.rules.EventKey, "", func(oid uint32, _ int32) (convertFunc, bool) { return keyConverter(oid) })
	p.route = b.text(r.rules.RouteBy, "", func(oid uint32, _ int32) (convertFunc, bool) {
		return raw, oid == pgtype.TextOID || oid == pgtype.VarcharOID || oid == pgtype.BPCharOID || oid == pgtype.NameOID
	})
	p.payload = b.typed(r.rules.Payload, pgtype.ByteaOID, "bytea")
	for _, placed := range r.rules.placed {
		if r.rules.IgnoreMissing && b.index(placed.column) < 0 {
			continue
		}
		if placed.partition {
			p.partition = b.typed(placed.column, pgtype.Int4OID, "integer")
			continue
		}
		p.headers = append(p.headers, b.text(placed.column, placed.header, headerConverter))
	}
	if b.err != nil {
		return nil, b.err
	}
	return p, nil
}

var (
	errNullID    = errors.New("the event id is null")
	errNullRoute = errors.New("the route column is null")
	errTopicName = errors.New("a topic name has 1 to 249 of the characters a-z A-Z 0-9 . _ -")
)

// planner looks columns up and keeps the first error.
type planner struct {
	table   string
	columns []*pglogrepl.RelationMessageColumn
	resolve typeFunc
	err     error
}

func (b *planner) index(name string) int {
	return slices.IndexFunc(b.columns, func(c *pglogrepl.RelationMessageColumn) bool { return c.Name == name })
}

func (b *planner) fail(column, problem string) {
	if b.err == nil {
		b.err = &SchemaError{Table: b.table, Column: column, Problem: problem}
	}
}

// find gives a column's place and the type its values are sent as.
func (b *planner) find(name string) (index int, oid uint32) {
	index = b.index(name)
	if index < 0 {
		b.fail(name, "does not exist")
		return 0, 0
	}
	oid = b.columns[index].DataType
	if oid < firstUserOID {
		return index, oid
	}
	oid, err := b.resolve(oid)
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("type of %s.%s: %w", b.table, name, err)
	}
	return index, oid
}

// firstUserOID is where the server starts numbering objects that its users make.
const firstUserOID = 16384

func (b *planner) text(name, header string, converter func(uint32, int32) (convertFunc, bool)) column {
	index, oid := b.find(name)
	if b.err != nil {
		return column{}
	}
	convert, ok := converter(oid, b.columns[index].TypeModifier)
	if !ok {
		b.fail(name, fmt.Sprintf("type with OID %d cannot be used there", oid))
	}
	return column{index: index, name: header, convert: convert}
}

func (b *planner) typed(name string, want uint32, wantName string) int {
	index, oid := b.find(name)
	if b.err == nil && oid != want {
		b.fail(name, fmt.Sprintf("must be %s, has the type with OID %d", wantName, oid))
	}
	return index
}

// record makes the record of an inserted row, or nil for a table that is not ours. Record.Partition is set only where
// the row chooses it.
//
// insert is the message without its type byte. The record keeps parts of a copy of it.
func (r *router) record(insert []byte) (*kgo.Record, error) {
	if len(insert) < 4 {
		return nil, errShortInsert
	}
	relation := binary.BigEndian.Uint32(insert)
	p, known := r.plans[relation]
	if !known {
		return nil, fmt.Errorf("a row of relation %d came before its description", relation)
	}
	if p == nil {
		return nil, nil
	}
	var err error
	if _, r.row, err = decodeInsert(bytes.Clone(insert), r.row[:0]); err != nil {
		return nil, err
	}
	return p.record(r.row)
}

func (p *plan) record(row []cell) (*kgo.Record, error) {
	if len(row) != p.columns {
		return nil, fmt.Errorf("a row of %s has %d columns instead of %d", p.table, len(row), p.columns)
	}
	id, err := p.id.value(row)
	if err != nil {
		return nil, p.poison(nil, "", err)
	}
	if id == nil {
		return nil, p.poison(nil, "", errNullID)
	}
	route, err := p.route.value(row)
	if err != nil || route == nil {
		return nil, p.poison(id, "", cmp.Or(err, errNullRoute))
	}
	record := &kgo.Record{Topic: p.topics.topic(string(route)), Partition: keepPartition}
	if !validTopic(record.Topic) {
		return nil, p.poison(id, record.Topic, errTopicName)
	}
	if record.Key, err = p.key.value(row); err != nil {
		return nil, p.poison(id, record.Topic, err)
	}
	if record.Value, err = binaryValue(row[p.payload]); err != nil {
		return nil, p.poison(id, record.Topic, err)
	}
	record.Headers = make([]kgo.RecordHeader, 0, 1+len(p.headers))
	record.Headers = append(record.Headers, kgo.RecordHeader{Key: p.id.name, Value: id})
	for _, h := range p.headers {
		value, err := h.value(row)
		if err != nil {
			return nil, p.poison(id, record.Topic, fmt.Errorf("header %s: %w", h.name, err))
		}
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.name, Value: value})
	}
	if p.partition >= 0 {
		if err := p.setPartition(record, row[p.partition]); err != nil {
			return nil, p.poison(id, record.Topic, err)
		}
	}
	return record, nil
}

func (p *plan) setPartition(record *kgo.Record, c cell) error {
	value, err := binaryValue(c)
	if err != nil || value == nil {
		return err // null: the partitioner chooses
	}
	n, err := int4(value)
	if err != nil {
		return err
	}
	if n < 0 {
		return fmt.Errorf("partition %d is negative", n)
	}
	record.Partition = n
	return nil
}

func (p *plan) poison(id []byte, topic string, err error) error {
	return &PoisonError{Table: p.table, ID: string(id), Topic: topic, Err: err}
}

// value gives the column's text, nil for NULL. Text of length 0 is not nil.
func (c column) value(row []cell) ([]byte, error) {
	v, err := binaryValue(row[c.index])
	if err != nil || v == nil {
		return nil, err
	}
	return c.convert(v)
}

// binaryValue gives the bytes of a column, nil for NULL.
func binaryValue(c cell) ([]byte, error) {
	switch c.kind {
	case cellNull:
		return nil, nil
	case cellBinary:
		return c.data, nil // not nil, even of length 0
	default:
		return nil, fmt.Errorf("a column came in form %q instead of binary", c.kind)
	}
}

func validTopic(name string) bool {
	if len(name) == 0 || len(name) > 249 || name == "." || name == ".." {
		return false
	}
	for i := range len(name) {
		c := name[i]
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !ok {
			return false
		}
	}
	return true
}
