package kafkarun_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/ebbline/ebb/internal/kafkarun"
	"github.com/ebbline/ebb/schemas"
)

func startRegistry(t *testing.T, path string) *kafkarun.Registry {
	t.Helper()
	r, err := kafkarun.StartRegistry(kafkarun.RegistryConfig{Path: path, Logger: testLog(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func newSR(t *testing.T, url string) *sr.Client {
	t.Helper()
	hc := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(hc.CloseIdleConnections)
	c, err := sr.NewClient(sr.URLs(url), sr.HTTPClient(hc))
	require.NoError(t, err)
	return c
}

func newClient(t *testing.T, url string) *schemas.Client {
	t.Helper()
	c, err := schemas.NewClient(schemas.ClientConfig{URLs: []string{url}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func record(fields ...string) sr.Schema {
	return sr.Schema{Schema: `{"type":"record","name":"R","fields":[` + strings.Join(fields, ",") + `]}`}
}

const (
	fieldA        = `{"name":"a","type":"string"}`
	fieldB        = `{"name":"b","type":"string"}`
	fieldBDefault = `{"name":"b","type":"string","default":""}`
	fieldCDefault = `{"name":"c","type":"string","default":""}`
)

func status(t *testing.T, err error) int {
	t.Helper()
	var reply *sr.ResponseError
	require.ErrorAs(t, err, &reply)
	return reply.StatusCode
}

func TestRegistryKeepsIDs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "registry.jsonl")
	first, err := kafkarun.StartRegistry(kafkarun.RegistryConfig{Path: path})
	require.NoError(t, err)
	c := newClient(t, first.URL())
	registered, err := c.Register(t.Context())
	require.NoError(t, err)
	raw := newSR(t, first.URL())
	shared, err := raw.CreateSchema(t.Context(), "one", record(fieldA))
	require.NoError(t, err)
	twin, err := raw.CreateSchema(t.Context(), "two", record(fieldA))
	require.NoError(t, err)
	require.Equal(t, shared.ID, twin.ID, "the same text has one id")
	_, err = raw.CreateSchema(t.Context(), "one", record(fieldA, fieldBDefault))
	require.NoError(t, err)
	_, err = raw.DeleteSubject(t.Context(), "two", sr.SoftDelete)
	require.NoError(t, err)
	_, err = raw.DeleteSubject(t.Context(), "two", sr.HardDelete)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.NoError(t, first.Close(), "closing twice is fine")

	second := startRegistry(t, path)
	require.Equal(t, first.URL(), second.URL(), "the port is kept")
	size := fileSize(t, path)
	again, err := newClient(t, second.URL()).Register(t.Context())
	require.NoError(t, err)
	for i := range registered {
		require.Equal(t, registered[i].ID, again[i].ID)
		require.False(t, again[i].New)
	}
	require.Equal(t, size, fileSize(t, path), "registering what is there writes nothing")

	raw = newSR(t, second.URL())
	two, err := raw.SchemaByVersion(t.Context(), "one", 2)
	require.NoError(t, err)
	require.Equal(t, record(fieldA, fieldBDefault).Schema, two.Schema.Schema)
	text, err := raw.SchemaByID(t.Context(), shared.ID)
	require.NoError(t, err, "an id outlives its subject")
	require.Equal(t, record(fieldA).Schema, text.Schema)
	_, err = raw.SchemaByVersion(t.Context(), "two", 1)
	require.Equal(t, 404, status(t, err))
	fresh, err := raw.CreateSchema(t.Context(), "three", record(fieldA, fieldCDefault))
	require.NoError(t, err)
	require.Greater(t, fresh.ID, two.ID)
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.Size()
}

func TestRegistrySurvivesKill(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registry.jsonl")
	running := startChild(t, "registry", path)
	registered, err := newClient(t, running.addr).Register(t.Context())
	require.NoError(t, err)
	running.kill()

	again, err := newClient(t, startRegistry(t, path).URL()).Register(t.Context())
	require.NoError(t, err)
	for i := range registered {
		require.Equal(t, registered[i].ID, again[i].ID)
		require.False(t, again[i].New)
	}
}

func TestRegistryCompatibility(t *testing.T) {
	t.Parallel()
	enum := func(symbols string) sr.Schema {
		return record(`{"name":"e","type":{"type":"enum","name":"E","symbols":[` + symbols + `]}}`)
	}
	money := func(scale string) sr.Schema {
		return record(`{"name":"a","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":` + scale + `}}`)
	}
	const none = sr.CompatibilityLevel(0) // leave the default
	for name, c := range map[string]struct {
		level    sr.CompatibilityLevel
		versions []sr.Schema // all but the last are accepted
		status   int         // of the last, 200 if accepted
	}{
		"default is full":              {none, []sr.Schema{record(fieldA), record(fieldA, fieldB)}, 409},
		"field with default":           {none, []sr.Schema{record(fieldA), record(fieldA, fieldBDefault)}, 200},
		"enum symbol":                  {none, []sr.Schema{enum(`"NEW"`), enum(`"NEW","PAID"`)}, 409},
		"decimal scale":                {none, []sr.Schema{money("2"), money("3")}, 409},
		"rename":                       {none, []sr.Schema{record(fieldA), record(fieldB)}, 409},
		"backward may drop":            {sr.CompatBackward, []sr.Schema{record(fieldA, fieldB), record(fieldA)}, 200},
		"backward may not add":         {sr.CompatBackward, []sr.Schema{record(fieldA), record(fieldA, fieldB)}, 409},
		"forward may add":              {sr.CompatForward, []sr.Schema{record(fieldA), record(fieldA, fieldB)}, 200},
		"forward may not drop":         {sr.CompatForward, []sr.Schema{record(fieldA, fieldB), record(fieldA)}, 409},
		"backward looks one back":      {sr.CompatBackward, []sr.Schema{record(fieldA), record(fieldA, fieldBDefault), record(fieldA, fieldB)}, 200},
		"transitive looks all back":    {sr.CompatBackwardTransitive, []sr.Schema{record(fieldA), record(fieldA, fieldBDefault), record(fieldA, fieldB)}, 409},
		"forward transitive":           {sr.CompatForwardTransitive, []sr.Schema{record(fieldA, fieldB), record(fieldA, fieldBDefault), record(fieldA)}, 409},
		"none takes anything":          {sr.CompatNone, []sr.Schema{record(fieldA), record(fieldB)}, 200},
		"none takes no nonsense":       {sr.CompatNone, []sr.Schema{{Schema: `{"type":"record","name":"R"}`}}, 422},
		"text null as default":         {none, []sr.Schema{record(`{"name":"a","type":["string","null"],"default":"null"}`)}, 422},
		"not JSON":                     {none, []sr.Schema{{Schema: `{`}}, 422},
		"not Avro":                     {none, []sr.Schema{{Schema: `{}`, Type: sr.TypeJSON}}, 422},
		"missing reference":            {none, []sr.Schema{{Schema: record(`{"name":"a","type":"X"}`).Schema, References: []sr.SchemaReference{{Name: "X", Subject: "x", Version: 1}}}}, 422},
		"same text again is no change": {none, []sr.Schema{record(fieldA), record(fieldA, fieldBDefault), record(fieldA)}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "registry.jsonl")
			client := newSR(t, startRegistry(t, path).URL())
			if c.level != none {
				for _, r := range client.SetCompatibility(t.Context(), sr.SetCompatibility{Level: c.level}, "s") {
					require.NoError(t, r.Err)
				}
			}
			last := len(c.versions) - 1
			for _, s := range c.versions[:last] {
				_, err := client.CreateSchema(t.Context(), "s", s)
				require.NoError(t, err)
			}
			size := fileSize(t, path)
			if last > 0 {
				asked, err := client.CheckCompatibility(t.Context(), "s", -1, c.versions[last])
				require.NoError(t, err)
				if c.status == 409 {
					require.False(t, asked.Is)
					require.NotEmpty(t, asked.Messages)
				}
			}
			_, err := client.CreateSchema(t.Context(), "s", c.versions[last])
			if c.status == 200 {
				require.NoError(t, err)
				return
			}
			require.Equal(t, c.status, status(t, err), err)
			require.Equal(t, size, fileSize(t, path), "a refusal leaves no trace")
		})
	}
}

func TestRegistryReferences(t *testing.T) {
	t.Parallel()
	client := newSR(t, startRegistry(t, filepath.Join(t.TempDir(), "r")).URL())
	_, err := client.CreateSchema(t.Context(), "money", sr.Schema{Schema: `{"type":"record","name":"Money","fields":[{"name":"cents","type":"long"}]}`})
	require.NoError(t, err)
	refs := []sr.SchemaReference{{Name: "Money", Subject: "money", Version: 1}}
	cart := func(fields string) sr.Schema {
		return sr.Schema{Schema: `{"type":"record","name":"Cart","fields":[{"name":"total","type":"Money"}` + fields + `]}`, References: refs}
	}
	_, err = client.CreateSchema(t.Context(), "cart", cart(""))
	require.NoError(t, err)
	_, err = client.CreateSchema(t.Context(), "cart", cart(","+fieldB))
	require.Equal(t, 409, status(t, err))
	_, err = client.CreateSchema(t.Context(), "cart", cart(","+fieldBDefault))
	require.NoError(t, err)
}

func TestRegistryAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registry.jsonl")
	r, err := kafkarun.StartRegistry(kafkarun.RegistryConfig{Path: path})
	require.NoError(t, err)
	var all sync.WaitGroup
	results := make(chan []schemas.Registration, 8)
	for range cap(results) {
		all.Go(func() {
			got, err := newClient(t, r.URL()).Register(t.Context())
			if err == nil {
				results <- got
			}
		})
	}
	all.Wait()
	require.Len(t, results, cap(results))
	want := <-results
	for len(results) > 0 {
		for i, got := range <-results {
			require.Equal(t, want[i].ID, got.ID)
		}
	}
	require.NoError(t, r.Close())
	again, err := newClient(t, startRegistry(t, path).URL()).Register(t.Context())
	require.NoError(t, err)
	for i := range want {
		require.Equal(t, want[i].ID, again[i].ID)
	}
}

func TestRegistryFileDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registry.jsonl")
	r, err := kafkarun.StartRegistry(kafkarun.RegistryConfig{Path: path})
	require.NoError(t, err)
	client := newSR(t, r.URL())
	_, err = client.CreateSchema(t.Context(), "one", record(fieldA))
	require.NoError(t, err)
	two, err := client.CreateSchema(t.Context(), "two", record(fieldA, fieldBDefault))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	whole, err := os.ReadFile(path)
	require.NoError(t, err)

	for name, c := range map[string]struct {
		data []byte
		line int // 0: it starts
	}{
		"cut last line":    {whole[:len(whole)-5], 0},
		"cut long ago":     {append([]byte("{\"v\":1,\n"), whole...), 1},
		"no object":        {append([]byte("nonsense\n"), whole...), 1},
		"newer version":    {bytes.Replace(whole, []byte(`{"v":1`), []byte(`{"v":9`), 1), 1},
		"line lost":        {whole[bytes.IndexByte(whole, '\n')+1:], 1},
		"change not valid": {append([]byte(`{"v":1,"method":"PUT","uri":"/config/x","body":"{}x"}`+"\n"), whole...), 1},
		"request not one":  {append([]byte(`{"v":1,"method":"P T","uri":"/config/x"}`+"\n"), whole...), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			damaged := filepath.Join(t.TempDir(), "registry.jsonl")
			require.NoError(t, os.WriteFile(damaged, c.data, 0o600))
			r, err := kafkarun.StartRegistry(kafkarun.RegistryConfig{Path: damaged})
			if c.line > 0 {
				var corrupt *kafkarun.CorruptError
				require.ErrorAs(t, err, &corrupt)
				require.Equal(t, c.line, corrupt.Line)
				return
			}
			require.NoError(t, err)
			defer func() { _ = r.Close() }()
			again, err := newSR(t, r.URL()).CreateSchema(t.Context(), "two", record(fieldA, fieldBDefault))
			require.NoError(t, err)
			require.Equal(t, two.ID, again.ID, "nobody was told of the id, so it is free")
		})
	}
}

func TestRegistryFileInUse(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registry.jsonl")
	r := startRegistry(t, path)
	_, err := kafkarun.StartRegistry(kafkarun.RegistryConfig{Path: path})
	var inUse *kafkarun.InUseError
	require.ErrorAs(t, err, &inUse)
	_, err = kafkarun.StartRegistry(kafkarun.RegistryConfig{Path: filepath.Join(t.TempDir(), "r"), Addr: strings.TrimPrefix(r.URL(), "http://")})
	var taken *kafkarun.PortTakenError
	require.ErrorAs(t, err, &taken)
}

func TestRegistryHTTP(t *testing.T) {
	t.Parallel()
	r := startRegistry(t, filepath.Join(t.TempDir(), "r"))
	hc := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(hc.CloseIdleConnections)
	do := func(method, path, body string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), method, r.URL()+path, strings.NewReader(body))
		require.NoError(t, err)
		resp, err := hc.Do(req)
		require.NoError(t, err)
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	code, text := do("GET", "/healthz", "")
	require.Equal(t, 200, code)
	require.Equal(t, "ok\n", text)
	code, text = do("GET", "/config", "")
	require.Equal(t, 200, code)
	require.Contains(t, text, "FULL_TRANSITIVE")
	code, _ = do("GET", "/contexts/.x/subjects", "")
	require.Equal(t, 404, code)
	code, _ = do("POST", "/subjects/s/versions", strings.Repeat(" ", 2<<20))
	require.Equal(t, 413, code)
	code, _ = do("PUT", "/config", `{"compatibility":"NONE"}`)
	require.Equal(t, 200, code)
	code, text = do("GET", "/config/any", "")
	require.Equal(t, 200, code)
	require.Contains(t, text, "NONE")
	code, _ = do("POST", "/subjects/a%2Fb/versions", `{"schema":"\"string\""}`)
	require.Equal(t, 200, code)
	code, text = do("GET", "/subjects", "")
	require.Equal(t, 200, code)
	require.Contains(t, text, "a/b")
	code, _ = do("POST", "/subjects/s/versions", `{`)
	require.Equal(t, 422, code)
}
