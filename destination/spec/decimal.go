package spec

import (
	"math/big"
	"strings"
)

// Decimal is the exact value of a JSON number. It is kept as digits and an
// exponent, so that 1e1000000000 costs no more than 1.
type Decimal struct {
	negative bool
	digits   string   // without zeros at either end; empty for zero
	exponent *big.Int // the value is 0.digits × 10^exponent
}

// maxExponentDigits bounds the work of reading an exponent; a longer one is
// no number that anybody meant.
const maxExponentDigits = 1000

// ParseDecimal reads a number in JSON's grammar and reports whether text is
// exactly one.
func ParseDecimal(text string) (Decimal, bool) {
	if !IsNumber(text) {
		return Decimal{}, false
	}
	d := Decimal{}
	text, d.negative = strings.CutPrefix(text, "-")
	exponent := new(big.Int)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if len(text)-i > maxExponentDigits {
			return Decimal{}, false
		}
		exponent.SetString(strings.TrimPrefix(text[i+1:], "+"), 10)
		text = text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	digits := whole + fraction
	trimmed := strings.TrimLeft(digits, "0")
	shift := len(whole) - (len(digits) - len(trimmed))
	d.digits = strings.TrimRight(trimmed, "0")
	d.exponent = exponent.Add(exponent, big.NewInt(int64(shift)))
	if d.digits == "" {
		return Decimal{exponent: new(big.Int)}, true
	}
	return d, true
}

// Cmp returns -1, 0 or 1 as d is below, equal to or above other.
func (d Decimal) Cmp(other Decimal) int {
	if a, b := d.sign(), other.sign(); a != b || a == 0 {
		return compareInts(a, b)
	}
	size := d.exponent.Cmp(other.exponent)
	if size == 0 {
		// Without trailing zeros, the order of the digits after "0." is the
		// order of the texts.
		size = strings.Compare(d.digits, other.digits)
	}
	if d.negative {
		return -size
	}
	return size
}

func (d Decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.negative:
		return -1
	}
	return 1
}

func compareInts(a, b int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// IsNumber reports whether text is a number in JSON's grammar: no plus sign,
// no leading zeros, no bare point, no blanks.
func IsNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	whole := leadingDigits(text)
	if whole == 0 || (whole > 1 && text[0] == '0') {
		return false
	}
	text = text[whole:]
	if rest, ok := strings.CutPrefix(text, "."); ok {
		n := leadingDigits(rest)
		if n == 0 {
			return false
		}
		text = rest[n:]
	}
	if text == "" {
		return true
	}
	if text[0] != 'e' && text[0] != 'E' {
		return false
	}
	text = text[1:]
	if text != "" && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	n := leadingDigits(text)
	return n > 0 && n == len(text)
}

func leadingDigits(text string) int {
	n := 0
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}
