package relay

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTopicRouting(t *testing.T) {
	t.Parallel()
	const defaultRegex, defaultReplacement = `(?<routedByValue>.*)`, "outbox.event.${routedByValue}"
	tests := map[string]struct{ regex, replacement, value, want string }{
		"default":                          {defaultRegex, defaultReplacement, "Order", "outbox.event.Order"},
		"default, empty":                   {defaultRegex, defaultReplacement, "", "outbox.event."},
		"no match is the raw text":         {`Inv(.*)`, "x.$1", "Order", "Order"},
		"a line feed escapes the prefix":   {defaultRegex, defaultReplacement, "Order\nX", "Order\nX"},
		"and so does a carriage return":    {defaultRegex, defaultReplacement, "Order\rX", "Order\rX"},
		"numbered group":                   {`(.*)-(.*)`, "$2.$1", "a-b", "b.a"},
		"digits beyond the groups":         {`(.*)`, "t.$10", "a", "t.a0"},
		"whole match":                      {`.*`, "t.$0", "a", "t.a"},
		"quoted dollar":                    {`.*`, `t\$0`, "a", "t$0"},
		"quoted backslash":                 {`.*`, `t\\`, "a", `t\`},
		"prefix and suffix":                {defaultRegex, "a.${routedByValue}.b", "X", "a.X.b"},
		"two references":                   {defaultRegex, "${routedByValue}.${routedByValue}", "X", "X.X"},
		"constant":                         {`.*`, "all", "X", "all"},
		"the whole text has to match":      {`a`, "t", "ab", "ab"},
		"only the first match is replaced": {`a|ab`, "t", "ab", "tb"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := newTopicRouter(test.regex, test.replacement)
			require.NoError(t, err)
			require.Equal(t, test.want, r.topic(test.value))
		})
	}
	for _, bad := range []string{"$", "$a", "${b}", "${", `\`, "$1"} {
		_, err := newTopicRouter(`.*`, bad)
		require.Error(t, err, bad)
	}
}

func TestPlacement(t *testing.T) {
	t.Parallel()
	placed, err := parsePlacement(" type:header:eventType , trace : header,p:partition:ignored")
	require.NoError(t, err)
	require.Equal(t, []placement{
		{column: "type", header: "eventType"}, {column: "trace", header: "trace"},
		{column: "p", header: "ignored", partition: true},
	}, placed)
	for _, bad := range []string{"type", "type:", "a:body", "a:envelope", "a:header:b:c", "a:header,,b:header"} {
		_, err := parsePlacement(bad)
		require.Error(t, err, bad)
	}
}

func TestConfigNamesAllProblems(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Slot: "No", StateTopic: "a b", Grace: -1, Mapping: Mapping{Placement: "x", TopicRegex: "("}})
	for _, part := range []string{"DSN", "brokers", `"No"`, `"a b"`, "Grace", "no tables", `placement "x"`, "topic regex"} {
		require.ErrorContains(t, err, part)
	}
}

func FuzzTopicRouter(f *testing.F) {
	f.Add(`(?<routedByValue>.*)`, "outbox.event.${routedByValue}", "Order")
	f.Add(`(a)(b)?`, `$2\$$1`, "ab")
	f.Fuzz(func(_ *testing.T, regex, replacement, value string) {
		if r, err := newTopicRouter(regex, replacement); err == nil {
			r.topic(value)
		}
	})
}

func FuzzPlacement(f *testing.F) {
	f.Add("type:header:eventType,a:partition")
	f.Fuzz(func(t *testing.T, list string) {
		placed, err := parsePlacement(list)
		if err != nil {
			return
		}
		for _, p := range placed {
			require.NotEmpty(t, p.column)
			require.NotEmpty(t, p.header)
		}
	})
}
