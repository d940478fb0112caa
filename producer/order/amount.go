package order

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits of an Amount: those of numeric(19,4).
const (
	MaxIntegerDigits = 15
	MaxScale         = 4
)

// Amount is an exact decimal number that is not negative, with a fixed number
// of digits behind the point. The zero value is 0 with scale 0. Amounts of one
// value and scale are equal under ==.
type Amount struct {
	text  string // canonical, "" for zero of scale 0
	scale int
}

// AmountError says why a text is no amount. It is about the shape, so that it
// can be shown to the client.
type AmountError struct{ Detail string }

func (e *AmountError) Error() string { return "amount " + e.Detail }

// ParseAmount reads a decimal number in JSON's notation (an exponent is
// allowed) and gives it the scale, 0 to MaxScale. It never rounds: a number with
// more significant digits behind the point than scale is an *AmountError. Zeros
// behind them are no digits that could be lost and are accepted.
func ParseAmount(text string, scale int) (Amount, error) {
	if scale < 0 || scale > MaxScale {
		return Amount{}, fmt.Errorf("order: scale %d is not between 0 and %d", scale, MaxScale)
	}
	whole, fraction, err := decimalDigits(text)
	if err != nil {
		return Amount{}, err
	}
	fraction = strings.TrimRight(fraction, "0")
	if len(fraction) > scale {
		return Amount{}, &AmountError{Detail: fmt.Sprintf("has %d digits behind the point, %d are allowed", len(fraction), scale)}
	}
	whole = strings.TrimLeft(whole, "0")
	if len(whole) > MaxIntegerDigits {
		return Amount{}, &AmountError{Detail: fmt.Sprintf("has %d digits before the point, %d are allowed", len(whole), MaxIntegerDigits)}
	}
	if whole == "" {
		whole = "0"
	}
	if scale == 0 {
		if whole == "0" {
			whole = ""
		}
		return Amount{text: whole}, nil
	}
	return Amount{text: whole + "." + fraction + strings.Repeat("0", scale-len(fraction)), scale: scale}, nil
}

// decimalDigits returns the digits before and behind the point once the
// exponent is worked in.
func decimalDigits(text string) (whole, fraction string, err error) {
	mantissa, exponentText, hasExponent := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, hasPoint := strings.Cut(mantissa, ".")
	if strings.HasPrefix(whole, "-") {
		return "", "", &AmountError{Detail: "must not be negative"}
	}
	if !allDigits(whole) || hasPoint && !allDigits(fraction) {
		return "", "", &AmountError{Detail: "is not a decimal number"}
	}
	if !hasExponent {
		return whole, fraction, nil
	}
	// Atoi would take "+-1" apart differently from JSON; beyond ±99 no number of
	// a sensible length can become an amount.
	exponent, err := strconv.Atoi(exponentText)
	if err != nil || exponent < -99 || exponent > 99 {
		return "", "", &AmountError{Detail: "has an exponent that is not a number from -99 to 99"}
	}
	return shift(whole, fraction, exponent)
}

func shift(whole, fraction string, by int) (string, string, error) {
	if by >= 0 {
		fraction += strings.Repeat("0", max(0, by-len(fraction)))
		return whole + fraction[:by], fraction[by:], nil
	}
	whole = strings.Repeat("0", max(0, -by-len(whole)+1)) + whole
	cut := len(whole) + by
	return whole[:cut], whole[cut:] + fraction, nil
}

func allDigits(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// String returns the amount with exactly Scale digits behind the point.
func (a Amount) String() string {
	if a.text == "" {
		return "0"
	}
	return a.text
}

// Scale returns the number of digits behind the point.
func (a Amount) Scale() int { return a.scale }

// Positive reports whether the amount is above 0.
func (a Amount) Positive() bool { return strings.Trim(a.text, "0.") != "" }

// MarshalJSON writes the amount as a JSON number with all its digits.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }
