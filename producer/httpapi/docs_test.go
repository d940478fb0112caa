package httpapi_test

import (
	"fmt"
	"net/http"
	"net/textproto"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit/orders"
	"github.com/ebbline/ebb/journal"
	"github.com/ebbline/ebb/producer/httpapi"
)

func reference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/order-api.md")
	require.NoError(t, err)
	return string(text)
}

// TestTheReferenceHasEveryProblem compares the table with the code, both ways.
func TestTheReferenceHasEveryProblem(t *testing.T) {
	t.Parallel()
	text := reference(t)
	types := httpapi.ProblemTypes()
	for _, p := range types {
		require.Contains(t, text, fmt.Sprintf("| `%s` | %d | %s |", p.URI, p.Status, p.Title))
	}
	require.Equal(t, len(types), strings.Count(text, "| `urn:ebb:problem:"))
}

// TestTheReferenceHasEveryFieldOfASaga keeps the prose in step with the views.
func TestTheReferenceHasEveryFieldOfASaga(t *testing.T) {
	t.Parallel()
	text := reference(t)
	for _, view := range []any{journal.SagaView{}, journal.StepView{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(view)) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			require.Contains(t, text, "`"+name+"`", "%T", view)
		}
	}
}

var (
	httpBlock = regexp.MustCompile("(?s)```http\n(.*?)```")
	// volatile are the values that another run has others of.
	volatile = regexp.MustCompile(`"(createdEvent|createdAt|updatedAt|instance)":"[^"]*"`)
)

// exchange is the text of a request or of an answer.
type exchange struct {
	first  string
	header textproto.MIMEHeader
	body   string
}

func parseExchange(text string) exchange {
	head, body, _ := strings.Cut(text, "\n\n")
	lines := strings.Split(strings.TrimSpace(head), "\n")
	e := exchange{first: lines[0], header: textproto.MIMEHeader{}, body: strings.TrimSpace(body)}
	for _, line := range lines[1:] {
		name, value, _ := strings.Cut(line, ": ")
		e.header.Set(name, value)
	}
	return e
}

// TestTheExamplesOfTheReference sends every request and compares the answer, digit for digit but for ids and times.
func TestTheExamplesOfTheReference(t *testing.T) {
	t.Parallel()
	b := setup(t)
	api, err := httpapi.New(httpapi.Config{Store: b.store, CurrencyScale: orders.Scale, Sagas: sagas{value: []journal.SagaView{}}})
	require.NoError(t, err)
	blocks := httpBlock.FindAllStringSubmatch(reference(t), -1)
	require.Greater(t, len(blocks), 10)
	require.Zero(t, len(blocks)%2, "a request without an answer")
	for i := 0; i < len(blocks); i += 2 {
		request, want := parseExchange(blocks[i][1]), parseExchange(blocks[i+1][1])
		method, path, _ := strings.Cut(request.first, " ")
		var headers []string
		for name := range request.header {
			headers = append(headers, name, request.header.Get(name))
		}
		got := call(t, api, method, path, request.body, headers...)
		require.Equal(t, want.first, fmt.Sprintf("%d %s", got.status, http.StatusText(got.status)), "%s: %s", request.first, got.text)
		for name := range want.header {
			require.Equal(t, want.header.Get(name), got.header.Get(name), request.first)
		}
		require.Equal(t, plain(want.body), plain(got.text), request.first)
	}
}

// plain leaves out what differs from run to run, and line breaks between fields.
func plain(body string) string {
	return volatile.ReplaceAllString(strings.ReplaceAll(strings.TrimSpace(body), "\n", ""), `"$1":"…"`)
}
