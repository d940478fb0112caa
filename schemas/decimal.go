package schemas

import (
	"fmt"
	"math/big"
	"strings"
	"sync"

	"golang.org/x/text/currency"
)

// Precision and scale of amounts of money in our schemas: up to 15 digits
// before the point and 4 after it.
const (
	AmountPrecision = 19
	AmountScale     = 4
)

// maxDecimalText bounds the text of a decimal before it is looked at.
const maxDecimalText = 256

// minorUnits lists the currencies of ISO 4217 whose number of fraction digits
// is not two. The tables of golang.org/x/text follow CLDR, which drops the
// digits that are not in daily use (RSD, IQD and others), so that exact
// amounts would be refused; from there we take only which codes exist.
var minorUnits = map[string]int{
	"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0,
	"RWF": 0, "UGX": 0, "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
	"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
	"CLF": 4, "UYW": 4,
}

// noMinorUnit lists codes that are in ISO 4217 but are no money with a minor unit.
var noMinorUnit = map[string]bool{
	"XAG": true, "XAU": true, "XBA": true, "XBB": true, "XBC": true, "XBD": true, "XDR": true,
	"XPD": true, "XPT": true, "XSU": true, "XTS": true, "XUA": true, "XXX": true,
}

// CurrencyScale gives the number of fraction digits of an ISO 4217 currency
// (upper-case code): 2 for USD, 0 for JPY, 3 for KWD. It reports false for
// codes that do not exist or have no minor unit.
func CurrencyScale(code string) (int, bool) {
	if len(code) != 3 || strings.ToUpper(code) != code || noMinorUnit[code] {
		return 0, false
	}
	if scale, ok := minorUnits[code]; ok {
		return scale, true
	}
	if _, err := currency.ParseISO(code); err != nil {
		return 0, false
	}
	return 2, true
}

// ParseAmount reads an amount of money for an amount field of our schemas. It
// refuses more fraction digits than the currency has, trailing zeros aside.
func ParseAmount(text, currencyCode string) (*big.Rat, error) {
	scale, ok := CurrencyScale(currencyCode)
	if !ok {
		return nil, fmt.Errorf("currency is not an ISO 4217 code with a minor unit, got %d characters", len(currencyCode))
	}
	r, err := ParseDecimal(text, AmountPrecision, AmountScale)
	if err != nil {
		return nil, err
	}
	if !fitsScale(r, scale) {
		return nil, fmt.Errorf("amount has more than the %d fraction digits of %s", scale, currencyCode)
	}
	return r, nil
}

// ParseDecimal reads decimal text such as "-12.30" exactly. It refuses
// exponents, signs other than one leading minus, and values that do not fit
// precision and scale: nothing is ever rounded.
func ParseDecimal(text string, precision, scale int) (*big.Rat, error) {
	if len(text) > maxDecimalText {
		return nil, fmt.Errorf("decimal text is %d characters long, at most %d are read", len(text), maxDecimalText)
	}
	whole, frac, point := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	if !digits(whole) || (point && !digits(frac)) {
		return nil, fmt.Errorf("decimal text of %d characters is not digits with at most one point and a leading minus", len(text))
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("decimal text of %d characters is not a number", len(text))
	}
	if err := checkDecimal(r, precision, scale); err != nil {
		return nil, err
	}
	return r, nil
}

// FormatDecimal writes r with exactly scale fraction digits, or refuses if
// that would lose digits.
func FormatDecimal(r *big.Rat, scale int) (string, error) {
	if r == nil {
		return "", fmt.Errorf("decimal is nil")
	}
	if !fitsScale(r, scale) {
		return "", fmt.Errorf("decimal needs more than %d fraction digits", scale)
	}
	return r.FloatString(scale), nil
}

func checkDecimal(r *big.Rat, precision, scale int) error {
	if r == nil {
		return fmt.Errorf("decimal is nil")
	}
	if !fitsScale(r, scale) {
		return fmt.Errorf("decimal needs more than %d fraction digits", scale)
	}
	unscaled := new(big.Int).Mul(r.Num(), pow10(scale))
	unscaled.Quo(unscaled, r.Denom())
	if unscaled.CmpAbs(pow10(precision)) >= 0 {
		return fmt.Errorf("decimal needs more than %d digits", precision)
	}
	return nil
}

// fitsScale reports whether r has at most scale fraction digits.
func fitsScale(r *big.Rat, scale int) bool {
	if r.IsInt() {
		return true
	}
	return new(big.Int).Rem(pow10(scale), r.Denom()).Sign() == 0
}

// powers holds the powers of ten that amounts need; nobody writes to them.
var powers = sync.OnceValue(func() []*big.Int {
	p := make([]*big.Int, 64)
	for i := range p {
		p[i] = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(i)), nil)
	}
	return p
})

func pow10(n int) *big.Int {
	if n >= 0 && n < len(powers()) {
		return powers()[n]
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

func digits(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
