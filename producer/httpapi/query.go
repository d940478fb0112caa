package httpapi

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ebbline/ebb/producer/order"
)

func pathID(r *http.Request) (int64, error) {
	text := r.PathValue("id")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0, invalid(false, []order.Problem{{Field: "id", Detail: "must be an order number, a positive whole number"}}, 1)
	}
	return id, nil
}

// filterOf reads the query of a list.
func filterOf(raw string) (order.Filter, error) {
	var (
		f   order.Filter
		bad faults
	)
	// url.URL.Query would drop what it cannot read, and answer another question.
	query, err := url.ParseQuery(raw)
	if err != nil {
		bad.report("query", "is not a valid query string; encode the values")
		return f, bad.err(false)
	}
	number := func(name string, most int64) int64 {
		n, err := strconv.ParseInt(query.Get(name), 10, 64)
		if err != nil || n < 1 || n > most {
			bad.report(name, "must be a whole number from 1 to %d", most)
		}
		return n
	}
	for name, values := range query {
		if len(values) > 1 {
			bad.report(name, "is given more than once")
		}
		switch value := values[0]; name {
		case "limit":
			f.Limit = int(number(name, order.MaxLimit))
		case "before":
			f.Before = number(name, 1<<63-1)
		case "status":
			status, err := order.ParseStatus(value)
			if err != nil {
				bad.report(name, "must be one of %v", order.Statuses())
			}
			f.Status = status
		case "customerId":
			if !utf8.ValidString(value) || value == "" || strings.ContainsRune(value, 0) {
				bad.report(name, "must be valid UTF-8 and not empty")
			}
			f.CustomerID = value
		case "attention":
			if value != "true" {
				bad.report(name, "must be true, or left out")
			}
			f.Attention = true
		default:
			bad.report(name, "%s", unknownName{"parameter", name, []string{"limit", "before", "status", "customerId", "attention"}})
		}
	}
	slices.SortFunc(bad.list, func(x, y order.Problem) int { return strings.Compare(x.Field, y.Field) })
	return f, bad.err(false)
}

// nextPath is the next page of the same question.
func nextPath(query url.Values, before int64) string {
	query.Set("before", strconv.FormatInt(before, 10))
	return "/api/orders?" + query.Encode()
}
