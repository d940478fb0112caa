//go:build browser

package browser

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/testkit"
	"github.com/ebbline/ebb/sim"
	"github.com/ebbline/ebb/test/harness"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// stack is a running pipeline with its outside world.
type stack struct {
	*harness.Ebb
	sim *harness.Sim
}

func start(t *testing.T) stack {
	t.Helper()
	files, err := filepath.Abs("../../consumers/destinations")
	require.NoError(t, err)
	s := harness.StartSim(t)
	return stack{harness.Start(t, harness.Options{Sim: s, Destinations: files}), s}
}

var orderPath = regexp.MustCompile(`/orders/([0-9]+)$`)

// create makes an order by the form, as a visitor would, and gives its number.
func (b *tab) create(customer, amount string) string {
	b.t.Helper()
	b.open("/")
	b.click(`main a[href="/orders/new"]`)
	b.fill("#customerId", customer)
	b.fill("#totalAmount", amount)
	b.click(`button[type="submit"]`)
	b.sees("h1", "Order ")
	id := orderPath.FindStringSubmatch(b.url())
	require.NotNil(b.t, id, "not on an order's page: %s", b.url())
	return id[1]
}

func TestAnOrderFromItsCreationToItsUndo(t *testing.T) {
	s := start(t)
	b := openTab(t, s.API())
	b.open("/")
	b.sees(".empty", "No orders here yet")
	b.shoot("empty")

	hang := s.sim.Add(sim.Fault{Destination: sim.Shipping, Direction: sim.Do, Action: sim.Hang}) // the page is there before the order is done
	id := b.create("customer-1", "99.90")
	b.sees("h1 .badge", "PENDING")
	b.mark()
	s.sim.Remove(hang...)
	b.sees("h1 .badge", "CONFIRMED")
	b.sees(".facts", "99.90 EUR")
	b.sees("section.saga h2 .badge", "COMPLETED")
	require.True(t, b.marked(), "the page shows the news without being loaded again")
	b.sees("#news", "CONFIRMED")
	b.shoot("confirmed")

	b.click("#cancel")
	b.sees("h1", "Cancel order "+id)
	b.shoot("cancel")
	b.fill("#reason", "changed my mind")
	b.click(`button[type="submit"]`)
	b.sees("h1 .badge", "CANCELLED")
	b.sees("section.saga h2 .badge", "COMPENSATED")
	b.shoot("cancelled")

	done := b.texts("section.saga ol.steps:nth-of-type(1) .destination")
	undone := b.texts("section.saga ol.steps:nth-of-type(2) .destination")
	require.ElementsMatch(t, []string{"inventory", "fraudCheck", "shipping", "billing"}, done)
	require.Equal(t, []string{"billing", "shipping"}, undone[:2], "undone in the reverse of the completion")
	require.ElementsMatch(t, done, undone)
	var calls []string
	for _, c := range s.sim.Calls(sim.Filter{Aggregate: id}) {
		if c.Direction == sim.Undo {
			calls = append(calls, c.Destination)
		}
	}
	require.Equal(t, slices.DeleteFunc(undone, func(d string) bool { return d == "fraudCheck" }), calls, "the page shows the order of the calls")

	b.click(`a.name`)
	b.sees("#live tbody tr", "CANCELLED")
	b.shoot("list")
}

func TestARefusedOrderSaysWhoRefused(t *testing.T) {
	s := start(t)
	b := openTab(t, s.API())
	b.create("customer-2-refuse-billing", "10")
	b.sees("h1 .badge", "REJECTED")
	b.sees("section.saga", "billing")
	b.sees("section.saga .badge.refused", "REFUSED")
	b.sees("section.saga", "Unwound because")
	b.shoot("rejected")
}

func TestWaitsAndAttentionAreShown(t *testing.T) {
	s := start(t)
	b := openTab(t, s.API())
	hang := s.sim.Add(sim.Fault{Destination: sim.Shipping, Direction: sim.Do, Action: sim.Hang})
	id := b.create("customer-3", "10")
	b.sees(".wait", "for shipping (CALLING)")
	b.shoot("waiting")
	s.sim.Remove(hang...)
	b.sees("h1 .badge", "CONFIRMED")

	refuse := s.sim.Add(sim.Fault{Destination: sim.Billing, Direction: sim.Undo, Action: sim.ReplyWith, Status: 422, Body: sim.RawBody(`{"error":"closed"}`)})
	b.click("#cancel")
	b.click(`button[type="submit"]`)
	b.sees(".alert", "Needs attention")
	b.sees(".next", "ebb saga retry")
	b.shoot("attention")
	b.open("/?attention=true")
	b.sees("#live tbody tr", "needs attention")
	b.shoot("attention-list")

	s.sim.Remove(refuse...)
	b.click("#order-" + id)
	saga := b.texts("section.saga > p code")[0]
	out, code := s.CLI("saga", "retry", saga, "billing", "undo", "--reason", "the account is open again")
	require.Zero(t, code, out)
	b.sees("h1 .badge", "CANCELLED")
	b.misses(".alert")
}

func TestTheFormNamesWhatIsWrong(t *testing.T) {
	s := start(t)
	b := openTab(t, s.API())
	b.open("/orders/new")
	b.fill("#customerId", `<img src=x onerror=alert(1)>`)
	b.fill("#totalAmount", "1.999")
	b.expect(400)
	b.click(`button[type="submit"]`)
	b.sees("#totalAmount-problem", "3 digits behind the point, 2 are allowed")
	require.Equal(t, `<img src=x onerror=alert(1)>`, b.value("#customerId"))
	b.shoot("invalid")
	b.fill("#totalAmount", "1.99")
	b.click(`button[type="submit"]`)
	b.sees(".facts", `<img src=x onerror=alert(1)>`)
	b.sees("h1 .badge", "CONFIRMED")
}

func TestWithoutScripts(t *testing.T) {
	s := start(t)
	b := openTab(t, s.API())
	b.noScripts()
	b.create("customer-4", "10")
	b.sees("h1 .badge", "CONFIRMED")
	b.click("#cancel")
	b.click(`button[type="submit"]`)
	b.sees("h1 .badge", "CANCELLED")
}

func TestByKeyboardAlone(t *testing.T) {
	s := start(t)
	b := openTab(t, s.API())
	b.open("/")
	b.tabTo("To the content")
	b.tabTo("Ebb")
	b.tabTo("Orders")
	b.tabTo("New order")
	b.press("Enter")
	b.sees("h1", "New order")
	b.tabTo("customerId")
	b.typeText("customer-5")
	b.tabTo("totalAmount")
	b.typeText("10")
	b.press("Enter")
	b.sees("h1 .badge", "CONFIRMED")
	b.tabTo("Cancel order…")
	b.press("Enter")
	b.sees("h1", "Cancel order")
	b.tabTo("reason")
	b.press("Enter")
	b.sees("h1 .badge", "CANCELLED")
}

func TestTheListIsLiveAndKeepsTheFocus(t *testing.T) {
	s := start(t)
	orders := s.Orders()
	first := orders.Create("one", harness.Order{})
	orders.AwaitOrder(first, "CONFIRMED")
	b := openTab(t, s.API())
	b.open("/")
	b.tabTo(first)
	second := orders.Create("two", harness.Order{Customer: "customer-2"})
	b.sees("#live tbody tr", "customer-2")
	b.sees("#live tbody tr:first-child", "CONFIRMED")
	require.Equal(t, "order-"+first, b.focused())
	b.press("Enter")
	b.sees("h1", "Order "+first)
	require.NotEqual(t, first, second)
}

func TestAServiceThatDoesNotAnswerIsNoticed(t *testing.T) {
	s := start(t)
	b := openTab(t, s.API())
	b.open("/")
	b.until(`document.getElementById("stale").hidden`, "nothing is said while all is well")
	s.Pause()
	b.until(`!document.getElementById("stale").hidden`, "it is said that the page may be out of date")
	b.shoot("stale")
	s.Continue()
	b.until(`document.getElementById("stale").hidden`, "it is taken back")
}
