package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/ebbline/ebb/cmd/ebb/internal/inspect"
)

type dlqCmd struct {
	List dlqListCmd `cmd:"" help:"List dead letters, newest first."`
	Show dlqShowCmd `cmd:"" help:"Show one dead letter with its original bytes, headers and position."`
}

type dlqListCmd struct {
	where
	Reader string `help:"Only those of this consumer group, such as ebb.billing." placeholder:"GROUP"`
	Topic  string `help:"Only records of this topic." placeholder:"TOPIC"`
	Reason string `help:"Only those with this reason, such as undecodable." placeholder:"REASON"`
	Groups bool   `help:"Count them by reader, topic and reason instead."`
	Before int64  `help:"Only ids below: the last one of the page before." placeholder:"ID"`
	Limit  int    `help:"Page size, 1 to 1000." default:"50"`
}

// Help has examples.
func (dlqListCmd) Help() string {
	return `Examples:

  ebb dlq list --groups
  ebb dlq list --reader ebb.billing
  ebb dlq list --json | jq -r .detail`
}

func (c *dlqListCmd) Run(e *env) error {
	r, err := e.read(c.where)
	if err != nil {
		return err
	}
	defer r.close()
	filter := inspect.LetterFilter{Reader: c.Reader, Topic: c.Topic, Reason: c.Reason, Before: c.Before, Limit: c.Limit}
	if c.Groups {
		groups, err := inspect.LetterGroups(e.ctx, r.pool, filter)
		if err != nil {
			return err
		}
		return list(e, groups, printLetterGroups)
	}
	letters, err := inspect.Letters(e.ctx, r.pool, filter)
	if err != nil {
		return err
	}
	return list(e, letters, func(w io.Writer, letters []inspect.Letter) {
		rows := make([][]string, len(letters))
		for i, l := range letters {
			rows[i] = []string{strconv.FormatInt(l.ID, 10), l.Reader, position(l), l.Reason, shown(l.Key), size(l.Size), stamp(l.At), l.Detail}
		}
		table(w, "dead letters", []string{"ID", "READER", "POSITION", "REASON", "KEY", "BYTES", "AT", "DETAIL"}, rows)
		if len(letters) == c.Limit {
			fmt.Fprintf(w, "more: --before %d\n", letters[len(letters)-1].ID)
		}
	})
}

func printLetterGroups(w io.Writer, groups []inspect.LetterGroup) {
	rows := make([][]string, len(groups))
	for i, g := range groups {
		rows[i] = []string{g.Reader, g.Topic, g.Reason, strconv.FormatInt(g.Count, 10), stamp(g.First), stamp(g.Last)}
	}
	table(w, "dead letters", []string{"READER", "TOPIC", "REASON", "COUNT", "FIRST", "LAST"}, rows)
}

type dlqShowCmd struct {
	where
	ID  int64 `arg:"" help:"Id of the dead letter."`
	Raw bool  `help:"Write the value's bytes to standard output, and nothing else."`
}

// Help has examples.
func (dlqShowCmd) Help() string {
	return `Examples:

  ebb dlq show 7
  ebb dlq show 7 --raw > value.bin
  ebb dlq show 7 --json | jq -r .value.base64`
}

func (c *dlqShowCmd) Run(e *env) error {
	r, err := e.read(c.where)
	if err != nil {
		return err
	}
	defer r.close()
	l, err := inspect.LetterOf(e.ctx, r.pool, c.ID)
	if err != nil {
		return err
	}
	if c.Raw {
		_, err := e.stdout.Write(l.Value)
		return err
	}
	return one(e, l, func(w io.Writer, l inspect.FullLetter) {
		fmt.Fprintf(w, "dead letter %d of %s, kept %s\n", l.ID, l.Reader, stamp(l.At))
		fmt.Fprintf(w, "position: %s\n", position(l.Letter))
		fmt.Fprintf(w, "reason:   %s: %s\n", plain(l.Reason), plain(l.Detail))
		fmt.Fprintf(w, "key:      %s\n", shown(l.Key))
		for _, h := range l.Headers {
			fmt.Fprintf(w, "header:   %s = %s\n", shown(h.Name), shown(h.Value))
		}
		fmt.Fprintf(w, "value:    %s bytes\n%s\n", size(l.Size), shown(l.Value))
	})
}

func position(l inspect.Letter) string {
	return fmt.Sprintf("%s partition %d offset %d", plain(l.Topic), l.Partition, l.Offset)
}

func size(n int) string {
	if n < 0 {
		return "null"
	}
	return strconv.Itoa(n)
}

// shown is text as it is, and other bytes as base64.
func shown(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) == 0:
		return `""`
	case utf8.Valid(b) && plain(string(b)) == string(b):
		return string(b)
	}
	return "base64:" + base64.StdEncoding.EncodeToString(b)
}
