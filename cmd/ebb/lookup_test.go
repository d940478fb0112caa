package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A simulator that does not know a call answers 404, which would refuse an order, or count as undone.
func TestOnlyShippedDestinationsFallBackToTheSimulator(t *testing.T) {
	t.Parallel()
	env := lookup("http://sim").Env
	for _, name := range []string{"INVENTORY_URL", "FRAUDCHECK_URL", "SHIPPING_URL", "BILLING_URL", "NOTIFICATIONS_URL"} {
		v, ok := env(name)
		require.True(t, ok, name)
		require.NotEmpty(t, v)
	}
	for _, name := range []string{"EBB_TEST_CRM_URL", "EBB_TEST_TOKEN"} {
		_, ok := env(name)
		require.False(t, ok, name)
	}
	_, ok := lookup("").Env("EBB_TEST_SHIPPING_URL")
	require.False(t, ok)
}
