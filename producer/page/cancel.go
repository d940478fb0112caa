package page

import (
	"errors"
	"net/http"
	"strings"

	"github.com/ebbline/ebb/producer/order"
)

// defaultReason is the reason of a cancel that gives none.
const defaultReason = "cancelled on the order page"

// askCancel asks before anything is undone.
func (p *Page) askCancel(w http.ResponseWriter, r *http.Request) error {
	o, err := p.orderOf(r)
	if err != nil {
		return err
	}
	if _, _, err := o.Command(order.Cancel); err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "cancel", cancelView{Title: "Cancel order " + o.Number(), Order: o})
}

// cancel needs no key: cancelling what is cancelled changes nothing.
func (p *Page) cancel(w http.ResponseWriter, r *http.Request) error {
	o, err := p.orderOf(r)
	if err != nil {
		return err
	}
	if !p.readForm(w, r) {
		return nil
	}
	reason := strings.TrimSpace(r.PostForm.Get("reason"))
	if reason == "" {
		reason = defaultReason
	}
	var bad *order.InvalidError
	if errors.As(order.CheckReason(reason), &bad) {
		return p.render(w, http.StatusBadRequest, "cancel", cancelView{
			Title: "Cancel order " + o.Number(), Order: o, Reason: field{Value: reason, Problem: bad.Problems[0].Detail},
		})
	}
	if _, err := p.store.Cancel(r.Context(), o.ID, reason, order.Request{}); err != nil {
		return err
	}
	http.Redirect(w, r, "/orders/"+o.Number(), http.StatusSeeOther)
	return nil
}
