package page

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/ebbline/ebb/producer/order"
)

// maxForm is the largest form, in bytes.
const maxForm = 64 << 10

// readForm reads the fields of a POST; false: it has answered.
func (p *Page) readForm(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	err := r.ParseForm()
	var over *http.MaxBytesError
	switch {
	case errors.As(err, &over):
		p.message(w, r, http.StatusRequestEntityTooLarge, "The form is too large.")
	case err != nil:
		p.message(w, r, http.StatusBadRequest, "The form could not be read.")
	}
	return err == nil
}

// blank shows an empty form.
func (p *Page) blank(w http.ResponseWriter, _ *http.Request) error {
	return p.render(w, http.StatusOK, "new", formView(newKey()))
}

// newKey makes the Idempotency-Key of one form.
func newKey() string { return "page-" + rand.Text() }

func formView(key string) newView {
	return newView{
		Title: "New order", Key: key, Currency: field{Value: "EUR"}, Shipping: field{Value: string(order.Domestic)},
		Shippings: []order.ShippingType{order.Domestic, order.International}, Currencies: []string{"EUR", "USD", "GBP", "JPY", "KWD"},
	}
}

func (p *Page) create(w http.ResponseWriter, r *http.Request) error {
	if !p.readForm(w, r) {
		return nil
	}
	key := r.PostForm.Get("key")
	if !strings.HasPrefix(key, "page-") || len(key) > 60 || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		key = newKey()
	}
	v := formView(key)
	for name, f := range v.fields() {
		f.Value = strings.TrimSpace(r.PostForm.Get(name))
	}
	n, ok := p.newOrder(&v)
	if !ok {
		return p.render(w, http.StatusBadRequest, "new", v)
	}
	result, err := p.store.Create(r.Context(), n, order.Request{Key: key, Hash: hashOf(n)})
	var down *order.UnavailableError
	switch {
	case errors.Is(err, order.ErrKeyReused):
		v.Key, v.Problem = newKey(), "This form has created an order already. Send it again to create another one."
		return p.render(w, http.StatusConflict, "new", v)
	case errors.As(err, &down):
		// The form keeps its key, by which sending it again cannot create a second order.
		v.Problem = p.unavailable(w, r, down)
		return p.render(w, http.StatusServiceUnavailable, "new", v)
	case err != nil:
		return err
	}
	http.Redirect(w, r, "/orders/"+result.Order.Number(), http.StatusSeeOther)
	return nil
}

// fields are the inputs by their names in the form, which are those of the API.
func (v *newView) fields() map[string]*field {
	return map[string]*field{"customerId": &v.Customer, "totalAmount": &v.Amount, "currency": &v.Currency, "shippingType": &v.Shipping}
}

// newOrder reads the form; every problem is put beside its field.
func (p *Page) newOrder(v *newView) (order.New, bool) {
	v.Currency.Value = strings.ToUpper(v.Currency.Value)
	n := order.New{CustomerID: v.Customer.Value, Currency: v.Currency.Value, ShippingType: order.ShippingType(v.Shipping.Value)}
	scale, known := p.scale(n.Currency)
	if !known {
		v.Currency.Problem = "must be an ISO 4217 code of a currency with a minor unit, such as EUR"
		scale = order.MaxScale
	}
	amount, err := order.ParseAmount(v.Amount.Value, scale)
	var bad *order.AmountError
	if errors.As(err, &bad) {
		v.Amount.Problem = bad.Detail
	}
	n.Amount = amount
	var invalid *order.InvalidError
	if errors.As(n.Validate(), &invalid) {
		for _, problem := range invalid.Problems {
			if f := v.fields()[problem.Field]; f != nil && f.Problem == "" {
				f.Problem = problem.Detail
			}
		}
	}
	for _, f := range v.fields() {
		if f.Problem != "" {
			return n, false
		}
	}
	return n, err == nil
}

// hashOf tells a repetition of a form from another order under its key.
func hashOf(n order.New) [32]byte {
	var text strings.Builder
	text.WriteString("order page\n")
	for _, value := range []string{n.CustomerID, n.Amount.String(), n.Currency, string(n.ShippingType)} {
		text.WriteString(strconv.Quote(value))
	}
	return sha256.Sum256([]byte(text.String()))
}
