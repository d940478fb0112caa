package saga

var (
	idempotencyNames = [...]string{"none", "success_only", "all"}
	orderingNames    = [...]string{"hold", "pass", "none"}
	onRefusedNames   = [...]string{"compensate", "park", "ignore"}
	onExhaustedNames = [...]string{"park", "compensate"}
)

func (i Idempotency) String() string { return name(idempotencyNames[:], int(i)) }

// MarshalText gives `none`, `success_only` or `all`.
func (i Idempotency) MarshalText() ([]byte, error) { return []byte(i.String()), nil }

// UnmarshalText reads what MarshalText gives.
func (i *Idempotency) UnmarshalText(b []byte) error {
	n, err := parse(idempotencyNames[:], string(b), "idempotency")
	*i = Idempotency(n)
	return err
}

func (o OnRefused) String() string { return name(onRefusedNames[:], int(o)) }

// MarshalText gives `compensate`, `park` or `ignore`.
func (o OnRefused) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText gives.
func (o *OnRefused) UnmarshalText(b []byte) error {
	n, err := parse(onRefusedNames[:], string(b), "on_refused")
	*o = OnRefused(n)
	return err
}

func (o OnExhausted) String() string { return name(onExhaustedNames[:], int(o)) }

// MarshalText gives `park` or `compensate`.
func (o OnExhausted) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText gives.
func (o *OnExhausted) UnmarshalText(b []byte) error {
	n, err := parse(onExhaustedNames[:], string(b), "on_exhausted")
	*o = OnExhausted(n)
	return err
}

func (o Ordering) String() string { return name(orderingNames[:], int(o)) }

// MarshalText gives `hold`, `pass` or `none`.
func (o Ordering) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads what MarshalText gives.
func (o *Ordering) UnmarshalText(b []byte) error {
	n, err := parse(orderingNames[:], string(b), "ordering")
	*o = Ordering(n)
	return err
}
