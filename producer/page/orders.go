package page

import (
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"github.com/ebbline/ebb/producer/order"
)

// pageSize is the number of orders on one page of the list.
const pageSize = 25

func (p *Page) list(w http.ResponseWriter, r *http.Request) error {
	f, err := filterOf(r.URL.RawQuery)
	if err != nil {
		p.message(w, r, http.StatusBadRequest, "This address asks for a list that does not exist.")
		return nil
	}
	orders, next, err := p.store.List(r.Context(), f)
	if err != nil {
		return err
	}
	v := listView{Title: "Orders", Filters: filters(f), Orders: orders}
	if next > 0 {
		v.Older = listPath(f, next)
	}
	if f.Before > 0 {
		v.Newest = listPath(f, 0)
	}
	return p.render(w, http.StatusOK, "list", v)
}

func filterOf(raw string) (order.Filter, error) {
	f := order.Filter{Limit: pageSize}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return f, err
	}
	if s := query.Get("status"); s != "" {
		if f.Status, err = order.ParseStatus(s); err != nil {
			return f, err
		}
	}
	f.Attention = query.Get("attention") == "true"
	if before := query.Get("before"); before != "" {
		if f.Before, err = orderID(before); err != nil {
			return f, err
		}
	}
	return f, nil
}

func orderID(text string) (int64, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0, errNoPage
	}
	return id, nil
}

// orderOf reads the order that the path names.
func (p *Page) orderOf(r *http.Request) (order.Order, error) {
	id, err := orderID(r.PathValue("id"))
	if err != nil {
		return order.Order{}, err
	}
	return p.store.Get(r.Context(), id)
}

func (p *Page) show(w http.ResponseWriter, r *http.Request) error {
	o, err := p.orderOf(r)
	if err != nil {
		return err
	}
	_, _, err = o.Command(order.Cancel)
	v := orderView{
		Title: "Order " + o.Number(), Order: o, Meaning: meaning(o.Status),
		Cancellable: err == nil && o.Status != order.StatusCancelling && o.Status != order.StatusCancelled,
	}
	v.Sagas, v.NoSagas = p.sagas(r, o)
	return p.render(w, http.StatusOK, "order", v)
}

// sagas leaves the order readable while the journal is not.
func (p *Page) sagas(r *http.Request, o order.Order) (sagas []Saga, none string) {
	if p.journal == nil {
		return nil, "This service does not know the pipeline."
	}
	sagas, err := p.journal.OrderSagas(r.Context(), o.Number())
	if err != nil {
		p.log.WarnContext(r.Context(), "order page: sagas of an order cannot be read", slog.String("order_id", o.Number()), slog.Any("error", err))
		return nil, "The journal cannot be read now; the order itself is up to date."
	}
	if len(sagas) == 0 {
		return nil, "No consumer has read this order's event yet."
	}
	for i := range sagas {
		if sagas[i].Attention == o.Attention {
			sagas[i].Attention = "" // said once, for the order
		}
	}
	return sagas, ""
}
