package order

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Order is one order as it is now.
type Order struct {
	ID           int64
	CustomerID   string
	Amount       Amount
	Currency     string // ISO 4217 code, such as EUR
	ShippingType ShippingType
	Status       Status
	Attention    string // empty: no operator is asked for
	Version      int64  // version of the order's last event, from 1
	CreatedEvent string // id of the create event, which is also its saga's id
	SagaRevision int64  // last saga revision applied, 0 for none
	CreatedAt    time.Time
	UpdatedAt    time.Time
	DeletedAt    *time.Time // nil: not deleted
}

// Number is the order's id as text: the key of all its records.
func (o Order) Number() string { return fmt.Sprint(o.ID) }

// ShippingType says where an order goes.
type ShippingType string

// The shipping types.
const (
	Domestic      ShippingType = "domestic"
	International ShippingType = "international"
)

// MaxCustomerID is the longest customer id, in characters.
const MaxCustomerID = 255

// New is an order that a client asks for.
type New struct {
	CustomerID   string // 1 to MaxCustomerID printable characters
	Amount       Amount // above 0, in the currency's scale
	Currency     string // three upper-case letters
	ShippingType ShippingType
}

// Problem is what is wrong with one field of a request.
type Problem struct {
	Field  string `json:"field"`  // as the client names it
	Detail string `json:"detail"` // one sentence, without the value of a secret
}

// InvalidError lists every bad field at once, so that a client needs one round.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.Field + ": " + p.Detail
	}
	return "order: invalid: " + strings.Join(texts, "; ")
}

// Validate returns an *InvalidError with every problem, or nil.
func (n New) Validate() error {
	var problems []Problem
	report := func(field, format string, args ...any) {
		problems = append(problems, Problem{Field: field, Detail: fmt.Sprintf(format, args...)})
	}
	if detail := checkPrintable(n.CustomerID, MaxCustomerID); detail != "" {
		report("customerId", "%s", detail)
	}
	if !n.Amount.Positive() {
		report("totalAmount", "must be above 0")
	}
	if len(n.Currency) != 3 || strings.ContainsFunc(n.Currency, func(r rune) bool { return r < 'A' || r > 'Z' }) {
		report("currency", "must be an ISO 4217 code of three capital letters, such as EUR")
	}
	if n.ShippingType != Domestic && n.ShippingType != International {
		report("shippingType", "must be %q or %q", Domestic, International)
	}
	if len(problems) > 0 {
		return &InvalidError{Problems: problems}
	}
	return nil
}

// MaxReason is the longest reason of a cancel, in characters.
const MaxReason = 500

// CheckReason returns an *InvalidError if reason is not 1 to MaxReason printable
// characters.
func CheckReason(reason string) error {
	if detail := checkPrintable(reason, MaxReason); detail != "" {
		return &InvalidError{Problems: []Problem{{Field: "reason", Detail: detail}}}
	}
	return nil
}

func checkPrintable(s string, limit int) string {
	switch n := utf8.RuneCountInString(s); {
	case strings.TrimSpace(s) == "":
		return "must not be empty"
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	case n > limit:
		return fmt.Sprintf("has %d characters, the limit is %d", n, limit)
	case strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "must contain printable characters only"
	}
	return ""
}

// Created is the event of a new order.
type Created struct {
	OrderID      int64
	CustomerID   string
	Amount       Amount
	Currency     string
	ShippingType ShippingType
	CreatedAt    time.Time
}

// StatusUpdated is the event of a status that a client has moved.
type StatusUpdated struct {
	OrderID   int64
	OldStatus Status
	NewStatus Status
	At        time.Time
}

// Cancelled is the event of a cancel. Version is the order's version at the
// cancel: every earlier event of the order is to be unwound.
type Cancelled struct {
	OrderID int64
	Version int64
	Reason  string
	At      time.Time
}

// Created returns the event of the order's creation.
func (o Order) Created() Created {
	return Created{
		OrderID: o.ID, CustomerID: o.CustomerID, Amount: o.Amount, Currency: o.Currency,
		ShippingType: o.ShippingType, CreatedAt: o.CreatedAt,
	}
}

// Command applies a client's command and reports whether the order has changed;
// unchanged means that it was already so. A change has the next version and
// calls for one event; whoever stores it sets UpdatedAt. A forbidden command
// gives a *TransitionError and the order as it was.
func (o Order) Command(t Trigger) (_ Order, changed bool, err error) {
	if t != Ship && t != Deliver && t != Cancel {
		return o, false, fmt.Errorf("order %d: %s is not a command", o.ID, t)
	}
	switch c := machine[o.Status][t]; c.verdict {
	case move:
		o.Status, o.Version = c.to, o.Version+1
		return o, true, nil
	case keep:
		return o, false, nil
	default:
		return o, false, &TransitionError{OrderID: o.ID, Status: o.Status, Trigger: t}
	}
}

// CommandFor returns the command that moves an order to the status, or an
// *InvalidError if no client may ask for that status.
func CommandFor(to Status) (Trigger, error) {
	switch to {
	case StatusShipped:
		return Ship, nil
	case StatusDelivered:
		return Deliver, nil
	}
	return "", &InvalidError{Problems: []Problem{{
		Field:  "status",
		Detail: fmt.Sprintf("must be %s or %s; the other statuses follow from the saga, or from cancelling the order", StatusShipped, StatusDelivered),
	}}}
}

// OpenError says that an order may not be deleted yet.
type OpenError struct {
	OrderID   int64
	Status    Status
	Attention string
}

func (e *OpenError) Error() string {
	if e.Attention != "" {
		return fmt.Sprintf("order %d needs attention (%s): settle that before it is deleted", e.OrderID, e.Attention)
	}
	return fmt.Sprintf("order %d is %s and something is still to come: only DELIVERED, CANCELLED and REJECTED orders can be deleted", e.OrderID, e.Status)
}

// Deletable returns an *OpenError while the order could still cause calls or
// needs an operator: hidden then, it could not be cancelled any more.
func (o Order) Deletable() error {
	if !o.Status.Final() || o.Attention != "" {
		return &OpenError{OrderID: o.ID, Status: o.Status, Attention: o.Attention}
	}
	return nil
}
