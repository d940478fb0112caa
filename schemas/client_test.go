package schemas_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/ebbline/ebb/schemas"
)

func TestRegistryOutage(t *testing.T) {
	t.Parallel()
	reply := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		status  int
	}{
		"401":               {reply(401, `{"error_code":401,"message":"token secret-token"}`), 401},
		"403":               {reply(403, `{"error_code":40301,"message":"no"}`), 403},
		"429":               {reply(429, ``), 429},
		"500":               {reply(500, `{"error_code":50001,"message":"store"}`), 500},
		"503":               {reply(503, `<html>secret-token</html>`), 503},
		"redirect":          {reply(302, ``), 302},
		"404 of a proxy":    {reply(404, `<html>secret-token</html>`), 404},
		"404 of a path":     {reply(404, `{"error_code":404,"message":"HTTP 404 Not Found"}`), 404},
		"page instead":      {reply(200, `<html>login</html>`), 0},
		"cut connection":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, 0},
		"reply too large":   {reply(200, `{"schema":"`+strings.Repeat("a", 5<<20)+`"}`), 0},
		"id of a lie":       {reply(200, `[]`), 0},
		"not even a number": {reply(599, `x`), 599},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			codec, registry := newCodec(t)
			registry.seed(t, 400, listSchema)
			known, err := codec.Encode(t.Context(), orderCreated(t))
			require.NoError(t, err)
			registry.failWith(c.handler)

			_, err = codec.Decode(t.Context(), known)
			require.NoError(t, err, "a known id needs no registry")
			_, err = codec.Encode(t.Context(), orderCreated(t))
			require.NoError(t, err)

			for range 2 {
				_, err = codec.Decode(t.Context(), wire(400, []byte{0, 0}))
				var down *schemas.UnavailableError
				require.ErrorAs(t, err, &down)
				require.Equal(t, c.status, down.Status)
				require.NotContains(t, err.Error(), "secret-token")
			}
			registry.heal()
			_, err = codec.Decode(t.Context(), wire(400, []byte{0, 0}))
			require.NoError(t, err, "recovers without a restart")
		})
	}
}

func TestRegistryDownAtStart(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t)
	registry.failWith(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	c := newClient(t, registry.url)
	var down *schemas.UnavailableError
	require.ErrorAs(t, c.Warm(t.Context()), &down)
	_, err := c.Register(t.Context())
	require.ErrorAs(t, err, &down)
	_, err = schemas.NewCodec(c).Encode(t.Context(), orderCreated(t))
	require.ErrorAs(t, err, &down)

	registry.heal()
	var missing *schemas.NotRegisteredError
	err = c.Warm(t.Context())
	require.ErrorAs(t, err, &missing)
	require.Contains(t, err.Error(), "ebb schemas apply")
	_, err = c.Register(t.Context())
	require.NoError(t, err)
	require.NoError(t, c.Warm(t.Context()))
}

func TestAwait(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t)
	out := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	registry.failWith(out)
	c := newClient(t, registry.url)

	ctx, stop := context.WithCancel(t.Context())
	require.ErrorIs(t, c.Await(ctx, func(error) { stop() }), context.Canceled, "a stop ends the wait")

	var seen []error
	err := c.Await(t.Context(), func(err error) {
		seen = append(seen, err)
		registry.heal()
	})
	var missing *schemas.NotRegisteredError
	require.ErrorAs(t, err, &missing, "waiting would not help")
	require.Len(t, seen, 2)
	var down *schemas.UnavailableError
	require.ErrorAs(t, seen[0], &down)
	require.Equal(t, err, seen[1])

	_, err = c.Register(t.Context())
	require.NoError(t, err)
	registry.failWith(out)
	fresh := newClient(t, registry.url)
	require.NoError(t, fresh.Await(t.Context(), func(error) { registry.heal() }))
	require.NoError(t, fresh.Await(t.Context(), nil))
}

func TestRegistryUnreachable(t *testing.T) {
	t.Parallel()
	c := newClient(t, "http://127.0.0.1:1")
	var down *schemas.UnavailableError
	require.ErrorAs(t, c.Warm(t.Context()), &down)
	require.Zero(t, down.Status)
}

func TestRegistryTimeout(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	registry.failWith(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	c, err := schemas.NewClient(schemas.ClientConfig{URLs: []string{registry.url}, Timeout: 20 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	var down *schemas.UnavailableError
	require.ErrorAs(t, c.Warm(t.Context()), &down)
}

func TestUnknownSchemaIsAskedAgain(t *testing.T) {
	t.Parallel()
	codec, registry := newCodec(t)
	var unknown *schemas.UnknownSchemaError
	_, err := codec.Decode(t.Context(), wire(410, []byte{0, 0}))
	require.ErrorAs(t, err, &unknown)
	registry.seed(t, 410, listSchema)
	_, err = codec.Decode(t.Context(), wire(410, []byte{0, 0}))
	require.NoError(t, err, "a registry that lagged has learnt it")
}

func TestUnknownSchemaIsRemembered(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t)
	c, err := schemas.NewClient(schemas.ClientConfig{URLs: []string{registry.url}, UnknownFor: time.Hour})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	codec := schemas.NewCodec(c)
	for range 10 {
		var unknown *schemas.UnknownSchemaError
		_, err := codec.Decode(t.Context(), wire(411, []byte{0, 0}))
		require.ErrorAs(t, err, &unknown)
	}
	require.EqualValues(t, 1, registry.asked.Load())
}

func TestOneRequestForManyReaders(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t)
	registry.seed(t, 1, listSchema)
	arrived, release := make(chan struct{}, 64), make(chan struct{})
	registry.failWith(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		registry.Handler().ServeHTTP(w, r)
	})
	codec := schemas.NewCodec(newClient(t, registry.url))

	impatient, giveUp := context.WithCancel(t.Context())
	first := make(chan error, 1)
	go func() { _, err := codec.Decode(impatient, wire(1, []byte{0, 0})); first <- err }()
	<-arrived
	var others sync.WaitGroup
	results := make(chan error, 20)
	for range cap(results) {
		others.Go(func() { _, err := codec.Decode(t.Context(), wire(1, []byte{0, 0})); results <- err })
	}
	giveUp()
	require.ErrorIs(t, <-first, context.Canceled, "the one who asked first may leave")
	close(release)
	others.Wait()
	for range cap(results) {
		require.NoError(t, <-results)
	}
	require.EqualValues(t, 1, registry.asked.Load())
}

func TestCancelledContextIsNoVerdict(t *testing.T) {
	t.Parallel()
	codec, _ := newCodec(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := codec.Decode(ctx, wire(99, []byte{0}))
	require.ErrorIs(t, err, context.Canceled)
	var down *schemas.UnavailableError
	require.NotErrorAs(t, err, &down)
}

func TestSchemaReferences(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t)
	_, _, err := registry.RegisterSchema("money", sr.Schema{Schema: `{"type":"record","name":"Money","namespace":"t","fields":[{"name":"cents","type":"long"}]}`})
	require.NoError(t, err)
	_, _, err = registry.RegisterSchema("line", sr.Schema{
		Schema:     `{"type":"record","name":"Line","namespace":"t","fields":[{"name":"price","type":"t.Money"}]}`,
		References: []sr.SchemaReference{{Name: "t.Money", Subject: "money", Version: 1}},
	})
	require.NoError(t, err)
	id, _, err := registry.RegisterSchema("cart", sr.Schema{
		Schema: `{"type":"record","name":"Cart","namespace":"t","fields":[{"name":"line","type":"t.Line"},{"name":"total","type":"t.Money"}]}`,
		References: []sr.SchemaReference{
			{Name: "t.Line", Subject: "line", Version: 1}, {Name: "t.Money", Subject: "money", Version: 1},
		},
	})
	require.NoError(t, err)
	got, err := schemas.NewCodec(newClient(t, registry.url)).Decode(t.Context(), wire(id, []byte{2, 4}))
	require.NoError(t, err)
	require.Equal(t, `{"line":{"price":{"cents":1}},"total":{"cents":2}}`, string(got.JSON))
}

func TestForeignSchemaType(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t)
	id, _, err := registry.RegisterSchema("j", sr.Schema{Schema: `{}`, Type: sr.TypeJSON})
	require.NoError(t, err)
	_, err = schemas.NewCodec(newClient(t, registry.url)).Decode(t.Context(), wire(id, []byte{2}))
	var decode *schemas.DecodeError
	require.ErrorAs(t, err, &decode)
	require.Equal(t, schemas.ReasonSchema, decode.Reason)
}

func TestRegister(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t)
	c := newClient(t, registry.url)
	first, err := c.Register(t.Context())
	require.NoError(t, err)
	require.Len(t, first, len(schemas.Messages()))
	for _, r := range first {
		require.True(t, r.New)
		require.Equal(t, 1, r.Version)
	}
	again, err := newClient(t, registry.url).Register(t.Context())
	require.NoError(t, err)
	for i, r := range again {
		require.False(t, r.New)
		require.Equal(t, first[i].ID, r.ID)
	}
}

func TestRegisterChecksForItself(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t) // says that everything is compatible
	m := message(t, "OrderCreated")
	_, _, err := registry.RegisterSchema(m.Subject, sr.Schema{Schema: strings.Replace(m.Schema, `"scale": 4`, `"scale": 2`, 1)})
	require.NoError(t, err)
	_, err = newClient(t, registry.url).Register(t.Context())
	var conflict *schemas.IncompatibleError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, m.Subject, conflict.Subject)
	require.Equal(t, 1, conflict.Version)
	require.False(t, registry.SubjectExists(message(t, "SagaParked").Subject), "nothing was registered")
}

func TestClientConfig(t *testing.T) {
	t.Parallel()
	_, err := schemas.NewClient(schemas.ClientConfig{
		URLs: []string{"localhost:8081", "http://u:hunter2@h"}, Username: "u", BearerToken: "hunter2", Timeout: -1,
	})
	require.ErrorContains(t, err, "URLs[0]")
	require.ErrorContains(t, err, "URLs[1]")
	require.ErrorContains(t, err, "BearerToken")
	require.ErrorContains(t, err, "Timeout")
	require.NotContains(t, err.Error(), "hunter2")
	_, err = schemas.NewClient(schemas.ClientConfig{})
	require.ErrorContains(t, err, "URLs")
}

func TestCredentialsAreSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  schemas.ClientConfig
		want string
	}{
		"basic":  {schemas.ClientConfig{Username: "u", Password: "p"}, "Basic dTpw"},
		"bearer": {schemas.ClientConfig{BearerToken: "tok"}, "Bearer tok"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := newRegistry(t)
			seen := make(chan string, 1)
			registry.failWith(func(w http.ResponseWriter, r *http.Request) {
				seen <- r.Header.Get("Authorization")
				w.WriteHeader(http.StatusForbidden)
			})
			c.cfg.URLs = []string{registry.url}
			client, err := schemas.NewClient(c.cfg)
			require.NoError(t, err)
			t.Cleanup(client.Close)
			require.Error(t, client.Warm(t.Context()))
			require.Equal(t, c.want, <-seen)
		})
	}
}
