package page

import (
	"net/url"
	"strconv"

	"github.com/ebbline/ebb/producer/order"
)

// What the templates show.
type (
	messageView struct {
		still
		Title string
		Text  string
	}

	listView struct {
		live
		Title   string
		Filters []filterLink
		Orders  []order.Order
		Older   string // path of the next page, empty on the last
		Newest  string // path of the first page, empty on it
	}

	filterLink struct {
		Text    string
		Path    string
		Current bool
	}

	orderView struct {
		live
		Title       string
		Order       order.Order
		Meaning     string
		Cancellable bool
		Sagas       []Saga
		NoSagas     string // why there are none
	}

	newView struct {
		still
		Title      string
		Key        string
		Customer   field
		Amount     field
		Currency   field
		Shipping   field
		Shippings  []order.ShippingType
		Problem    string
		Currencies []string
	}

	cancelView struct {
		still
		Title  string
		Order  order.Order
		Reason field
	}

	// field is an input with what was typed and what is wrong with it.
	field struct {
		Value   string
		Problem string
	}
)

// live is part of the views of pages that refresh themselves, still of those
// that do not: what is being typed must stay.
type (
	live  struct{}
	still struct{}
)

// Live tells the layout.
func (live) Live() bool { return true }

// Live tells the layout.
func (still) Live() bool { return false }

// meaning says in a sentence what a status means for the order.
func meaning(s order.Status) string {
	switch s {
	case order.StatusPending:
		return "Created; the destinations are being called."
	case order.StatusConfirmed:
		return "Every destination has done its part."
	case order.StatusShipped:
		return "The goods have left."
	case order.StatusDelivered:
		return "The goods have arrived."
	case order.StatusCancelling:
		return "Cancelled; what was done is being undone, last first."
	case order.StatusCancelled:
		return "Cancelled, and everything that was done is undone."
	case order.StatusRejected:
		return "A destination refused, and everything that was done is undone."
	default:
		return ""
	}
}

// filters are the links above the list; the one that is shown is marked.
func filters(f order.Filter) []filterLink {
	links := []filterLink{
		{Text: "All", Path: "/", Current: f.Status == "" && !f.Attention},
		{Text: "Needs attention", Path: "/?attention=true", Current: f.Attention},
	}
	for _, s := range order.Statuses() {
		links = append(links, filterLink{Text: string(s), Path: "/?status=" + string(s), Current: f.Status == s})
	}
	return links
}

// listPath is the path of a list.
func listPath(f order.Filter, before int64) string {
	q := url.Values{}
	if f.Status != "" {
		q.Set("status", string(f.Status))
	}
	if f.Attention {
		q.Set("attention", "true")
	}
	if before > 0 {
		q.Set("before", strconv.FormatInt(before, 10))
	}
	if len(q) == 0 {
		return "/"
	}
	return "/?" + q.Encode()
}
