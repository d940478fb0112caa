package order_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/producer/order"
)

func TestParseAmount(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		scale int
		want  string
	}{
		{"0", 0, "0"},
		{"0", 2, "0.00"},
		{"0.00", 0, "0"},
		{"1", 2, "1.00"},
		{"99.9", 2, "99.90"},
		{"99.99", 2, "99.99"},
		{"99.9900", 2, "99.99"},
		{"0099.99", 2, "99.99"},
		{"12", 0, "12"},
		{"12.0", 0, "12"},
		{"0.001", 3, "0.001"},
		{"1.5E2", 2, "150.00"},
		{"1.5e+2", 0, "150"},
		{"15e-1", 1, "1.5"},
		{"15e-3", 3, "0.015"},
		{"1000e-3", 0, "1"},
		{"0.0001e4", 0, "1"},
		{"999999999999999.9999", 4, "999999999999999.9999"},
		{"9007199254740993.00e-1", 1, "900719925474099.3"},
	}
	for _, tt := range tests {
		got, err := order.ParseAmount(tt.text, tt.scale)
		require.NoError(t, err, tt.text)
		require.Equal(t, tt.want, got.String(), tt.text)
		require.Equal(t, tt.scale, got.Scale())
	}
}

func TestParseAmountRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text   string
		scale  int
		detail string
	}{
		{"99.999", 2, "3 digits behind the point, 2 are allowed"},
		{"0.5", 0, "1 digits behind the point, 0 are allowed"},
		{"1e-3", 2, "3 digits behind the point"},
		{"1000000000000000", 2, "16 digits before the point"},
		{"1e15", 2, "16 digits before the point"},
		{"-1", 2, "negative"},
		{"-0", 2, "negative"},
		{"", 2, "not a decimal number"},
		{".", 2, "not a decimal number"},
		{".5", 2, "not a decimal number"},
		{"5.", 2, "not a decimal number"},
		{"+5", 2, "not a decimal number"},
		{"1,5", 2, "not a decimal number"},
		{"0x10", 2, "not a decimal number"},
		{" 1", 2, "not a decimal number"},
		{"NaN", 2, "not a decimal number"},
		{"Infinity", 2, "not a decimal number"},
		{"١", 2, "not a decimal number"},
		{"1e", 2, "exponent"},
		{"1e999999999999", 2, "exponent"},
		{"1e-100", 2, "exponent"},
		{"1e1e1", 2, "exponent"},
	}
	for _, tt := range tests {
		_, err := order.ParseAmount(tt.text, tt.scale)
		var bad *order.AmountError
		require.ErrorAs(t, err, &bad, tt.text)
		require.Contains(t, bad.Detail, tt.detail, tt.text)
	}
	for _, scale := range []int{-1, 5} {
		_, err := order.ParseAmount("1", scale)
		require.Error(t, err)
	}
}

func TestAmountZeroAndJSON(t *testing.T) {
	t.Parallel()
	zero, err := order.ParseAmount("0.000", 0)
	require.NoError(t, err)
	require.Equal(t, order.Amount{}, zero)
	require.False(t, zero.Positive())
	small, err := order.ParseAmount("0.0001", 4)
	require.NoError(t, err)
	require.True(t, small.Positive())
	b, err := json.Marshal(map[string]order.Amount{"a": small, "b": zero})
	require.NoError(t, err)
	require.Equal(t, `{"a":0.0001,"b":0}`, string(b))
}

func FuzzParseAmount(f *testing.F) {
	for _, seed := range []string{"1", "99.99", "1e3", "1.5e-2", "-1", "000", "1e-99", "9e99"} {
		f.Add(seed, 2)
	}
	f.Fuzz(func(t *testing.T, text string, scale int) {
		a, err := order.ParseAmount(text, scale)
		if err != nil {
			return
		}
		want, ok := new(big.Rat).SetString(text)
		require.True(t, ok, text)
		got, ok := new(big.Rat).SetString(a.String())
		require.True(t, ok)
		require.Zero(t, want.Cmp(got), "%s became %s", text, a)
		again, err := order.ParseAmount(a.String(), scale)
		require.NoError(t, err)
		require.Equal(t, a, again)
	})
}

func TestValidateNew(t *testing.T) {
	t.Parallel()
	amount, err := order.ParseAmount("10", 2)
	require.NoError(t, err)
	good := order.New{CustomerID: "customer-1", Amount: amount, Currency: "EUR", ShippingType: order.International}
	require.NoError(t, good.Validate())

	fine := good
	fine.CustomerID = strings.Repeat("ü", 255)
	require.NoError(t, fine.Validate())

	for _, id := range []string{"", "  ", strings.Repeat("x", 256), "a\x00b", "a\nb", "a\xff", "a\u200bb"} {
		bad := good
		bad.CustomerID = id
		requireFields(t, bad.Validate(), "customerId")
	}
	for _, code := range []string{"", "EU", "EURO", "eur", "E1R"} {
		bad := good
		bad.Currency = code
		requireFields(t, bad.Validate(), "currency")
	}
	requireFields(t, order.New{}.Validate(), "customerId", "totalAmount", "currency", "shippingType")
}

func TestCheckReason(t *testing.T) {
	t.Parallel()
	require.NoError(t, order.CheckReason("changed my mind"))
	requireFields(t, order.CheckReason(strings.Repeat("x", 501)), "reason")
	requireFields(t, order.CheckReason("a\x00"), "reason")
}

func requireFields(t *testing.T, err error, fields ...string) {
	t.Helper()
	var invalid *order.InvalidError
	require.ErrorAs(t, err, &invalid)
	var got []string
	for _, p := range invalid.Problems {
		got = append(got, p.Field)
	}
	require.Equal(t, fields, got)
}
