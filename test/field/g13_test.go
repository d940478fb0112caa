package field

import (
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/schemas"
	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

// TestG13CredentialsAreInTheRequestAndNowhereElse: a destination echoes the credential in header and body of refusals, successes and
// errors, cuts connections, and is refused by the network; the credential is then in no log at debug level, no row, no file, no
// record, no metric, no page and no output of a command.
func TestG13CredentialsAreInTheRequestAndNowhereElse(t *testing.T) {
	t.Parallel()
	s := start(t, chain(), "")
	echo := http.Header{"X-Echo": {"Bearer " + canary}, "Www-Authenticate": {"Bearer " + canary}}
	body := sim.RawBody(fmt.Sprintf(`{"error":"bad token %s","transaction":{"id":"tx-%s"}}`, canary, canary))
	reply := func(order string, status, next int) sim.Fault {
		return sim.Fault{Destination: sim.Billing, Direction: sim.Do, Aggregate: order, Next: next, Action: sim.ReplyWith, Status: status, Header: echo, Body: body}
	}
	s.faults(reply("1", 401, 0), reply("2", 422, 1), reply("3", 500, 1),
		sim.Fault{Destination: sim.Shipping, Direction: sim.Do, Aggregate: "4", Next: 1, Action: sim.Lose},
		sim.Fault{Destination: sim.Inventory, Direction: sim.Do, Aggregate: "4", Next: 1, Action: sim.Reset})
	ids := []string{s.create(), s.create(), s.create(), s.create()}
	s.await(ids[1], "REJECTED")
	s.await(ids[2], "CONFIRMED")
	s.await(ids[3], "CONFIRMED")
	s.awaitAttention(ids[0], "misconfigured")
	s.heal()
	out, code := s.ebb.CLI("saga", "retry", s.sagaID(ids[0]), "billing", "do", "--reason", "the token is right again")
	require.Zero(t, code, out)
	s.await(ids[0], "CONFIRMED")
	s.oracle() // looks through logs, files and every column

	for _, args := range [][]string{{"saga", "list", "--json"}, {"saga", "show", ids[0]}, {"saga", "show", ids[1], "--json"}} {
		out, code = s.ebb.CLI(args...)
		require.Zero(t, code, out)
		require.NotContains(t, out, canary)
	}
	for _, path := range []string{"/metrics", "/readyz", "/api/orders", "/api/orders/" + ids[0], "/api/orders/" + ids[1]} {
		resp, err := http.Get(s.ebb.API() + path)
		require.NoError(t, err)
		page, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.NotContains(t, string(page), canary, path)
	}
	client, admin := s.ebb.Kafka()
	records := harness.Records(t, client, admin, schemas.TopicOrder, schemas.TopicCompensation, schemas.TopicSaga, schemas.TopicStep)
	require.NotEmpty(t, records)
	for _, r := range records {
		require.NotContains(t, string(r.Value), canary)
		for _, h := range r.Headers {
			require.NotContains(t, string(h.Value), canary)
		}
	}
}
