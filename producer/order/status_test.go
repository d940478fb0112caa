package order_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/producer/order"
)

var created = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	saga      = "0192f0c1-2345-7abc-8def-0123456789ab"
	otherSaga = "0192f0c1-2345-7abc-8def-0123456789ac"
)

func orderIn(s order.Status) order.Order {
	return order.Order{
		ID: 7, CustomerID: "c", Currency: "EUR", ShippingType: order.Domestic, Status: s,
		Version: 3, CreatedEvent: saga, SagaRevision: 5, CreatedAt: created, UpdatedAt: created,
	}
}

// docTable reads the table of doc.go, which is the specification: a line per
// status, a column per trigger.
func docTable(t *testing.T) map[order.Status]map[order.Trigger]string {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	var header []string
	table := map[order.Status]map[order.Trigger]string{}
	for line := range strings.SplitSeq(string(text), "\n") {
		cells := strings.Fields(strings.TrimPrefix(line, "//"))
		if len(cells) != 6 {
			continue
		}
		if cells[0] == "status" && cells[1] == "Ship" {
			header = cells[1:]
			continue
		}
		if status, err := order.ParseStatus(cells[0]); err == nil && header != nil {
			table[status] = map[order.Trigger]string{}
			for i, trigger := range header {
				table[status][order.Trigger(trigger)] = cells[i+1]
			}
		}
	}
	require.Len(t, table, len(order.Statuses()))
	return table
}

func TestEveryCellIsAsDocumented(t *testing.T) {
	t.Parallel()
	for status, row := range docTable(t) {
		require.Len(t, row, 5)
		for trigger, want := range row {
			t.Run(string(status)+"/"+string(trigger), func(t *testing.T) {
				t.Parallel()
				if strings.HasPrefix(string(trigger), "Saga") {
					checkOutcome(t, status, trigger, want)
				} else {
					checkCommand(t, status, trigger, want)
				}
			})
		}
	}
}

func checkCommand(t *testing.T, status order.Status, trigger order.Trigger, want string) {
	before := orderIn(status)
	after, changed, err := before.Command(trigger)
	switch want {
	case "-":
		var refused *order.TransitionError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, order.TransitionError{OrderID: 7, Status: status, Trigger: trigger}, *refused)
		require.False(t, changed)
		require.Equal(t, before, after)
	case "=":
		require.NoError(t, err)
		require.False(t, changed)
		require.Equal(t, before, after)
	default:
		require.NoError(t, err)
		require.True(t, changed)
		want := orderIn(order.Status(want))
		want.Version = 4
		require.Equal(t, want, after)
	}
}

func checkOutcome(t *testing.T, status order.Status, trigger order.Trigger, want string) {
	before := orderIn(status)
	after, effect, err := before.Apply(order.Outcome{OrderID: 7, SagaID: saga, Kind: trigger, Revision: 6})
	require.NoError(t, err)
	require.Equal(t, order.Applied, effect)
	expected := before
	expected.SagaRevision = 6
	switch want {
	case "=":
	case "!":
		require.Contains(t, after.Attention, string(status))
		expected.Attention = after.Attention
	default:
		expected.Status = order.Status(want)
	}
	require.Equal(t, expected, after)
}

func TestParkedAndResumedTouchOnlyTheAttention(t *testing.T) {
	t.Parallel()
	for _, status := range order.Statuses() {
		before := orderIn(status)
		parked, effect, err := before.Apply(order.Outcome{SagaID: saga, Kind: order.SagaParked, Revision: 6, Reason: "billing: no route"})
		require.NoError(t, err)
		require.Equal(t, order.Applied, effect)
		require.Equal(t, status, parked.Status)
		require.Equal(t, "billing: no route", parked.Attention)

		resumed, effect, err := parked.Apply(order.Outcome{SagaID: saga, Kind: order.SagaResumed, Revision: 7})
		require.NoError(t, err)
		require.Equal(t, order.Applied, effect)
		require.Equal(t, status, resumed.Status)
		require.Empty(t, resumed.Attention)
	}
}

func TestParkedWithoutReasonAndWithAVeryLongOne(t *testing.T) {
	t.Parallel()
	parked, _, err := orderIn(order.StatusPending).Apply(order.Outcome{SagaID: saga, Kind: order.SagaParked, Revision: 6})
	require.NoError(t, err)
	require.Equal(t, "parked", parked.Attention)

	parked, _, err = orderIn(order.StatusPending).Apply(order.Outcome{SagaID: saga, Kind: order.SagaParked, Revision: 6, Reason: "a\x00b\nc\xff"})
	require.NoError(t, err)
	require.Equal(t, "a b c\uFFFD", parked.Attention)

	parked, _, err = orderIn(order.StatusPending).Apply(order.Outcome{SagaID: saga, Kind: order.SagaParked, Revision: 6, Reason: strings.Repeat("ä", 5000)})
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("ä", 1000)+"…", parked.Attention)
}

func TestOutcomesThatChangeNothing(t *testing.T) {
	t.Parallel()
	kinds := []order.Trigger{order.SagaCompleted, order.SagaCompensated, order.SagaParked, order.SagaResumed}
	for _, status := range order.Statuses() {
		for _, kind := range kinds {
			before := orderIn(status)
			for _, revision := range []int64{-1, 0, 4, 5} {
				after, effect, err := before.Apply(order.Outcome{SagaID: saga, Kind: kind, Revision: revision})
				require.NoError(t, err)
				require.Equal(t, order.Stale, effect)
				require.Equal(t, before, after)
			}
			after, effect, err := before.Apply(order.Outcome{SagaID: otherSaga, Kind: kind, Revision: 99})
			require.NoError(t, err)
			require.Equal(t, order.OtherSaga, effect)
			require.Equal(t, before, after)
		}
	}
}

func TestKindsDoNotMix(t *testing.T) {
	t.Parallel()
	_, _, err := orderIn(order.StatusPending).Apply(order.Outcome{SagaID: saga, Kind: order.Ship, Revision: 9})
	require.Error(t, err)
	_, _, err = orderIn(order.StatusPending).Command(order.SagaCompleted)
	require.Error(t, err)
}

func TestRefusalsSayWhatIsPossible(t *testing.T) {
	t.Parallel()
	_, _, err := orderIn(order.StatusPending).Command(order.Ship)
	require.ErrorContains(t, err, "wait until it is CONFIRMED")
	_, _, err = orderIn(order.StatusDelivered).Command(order.Cancel)
	require.ErrorContains(t, err, "PENDING CONFIRMED")
}

func TestDeletable(t *testing.T) {
	t.Parallel()
	for _, status := range order.Statuses() {
		o := orderIn(status)
		var open *order.OpenError
		if status.Final() {
			require.NoError(t, o.Deletable())
		} else {
			require.ErrorAs(t, o.Deletable(), &open)
		}
		o.Attention = "parked"
		require.ErrorAs(t, o.Deletable(), &open)
		require.ErrorContains(t, o.Deletable(), "attention")
	}
}

func TestParseStatus(t *testing.T) {
	t.Parallel()
	for _, s := range order.Statuses() {
		got, err := order.ParseStatus(string(s))
		require.NoError(t, err)
		require.Equal(t, s, got)
	}
	for _, s := range []string{"", "pending", "PROCESSING", "PENDING "} {
		_, err := order.ParseStatus(s)
		require.Error(t, err, s)
	}
}
