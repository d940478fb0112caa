package sim

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Longer numbers and larger exponents are refused: they are no amounts, and an
// exponent of a few digits can ask for gigabytes of memory.
const (
	maxDecimalText = 64
	maxExponent    = 64
)

// parseDecimal reads a JSON number, exactly.
func parseDecimal(text string) (*big.Rat, error) {
	if text == "" || len(text) > maxDecimalText || !isNumber(text) {
		return nil, fmt.Errorf("want a decimal number of at most %d characters", maxDecimalText)
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("want a decimal number")
	}
	return r, nil
}

// isNumber accepts digits with an optional sign, fraction and small exponent;
// [big.Rat] alone would also take fractions, underscores and other bases.
func isNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(text), "e")
	whole, frac, hasFrac := strings.Cut(mantissa, ".")
	if !isDigits(whole) || len(whole) > 1 && whole[0] == '0' || hasFrac && !isDigits(frac) {
		return false
	}
	if !hasExponent {
		return true
	}
	if exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
		exponent = exponent[1:]
	}
	if !isDigits(exponent) || len(exponent) > 3 {
		return false
	}
	n := 0
	for _, c := range exponent {
		n = n*10 + int(c-'0')
	}
	return n <= maxExponent
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// placesOf returns how many digits after the point the number needs.
func placesOf(text string) int {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	_, frac, _ := strings.Cut(mantissa, ".")
	n, err := strconv.Atoi(exponent)
	if err != nil {
		n = 0
	}
	return max(len(frac)-n, 0)
}
