package handler_test

import (
	"testing"

	"github.com/ebbline/ebb/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
