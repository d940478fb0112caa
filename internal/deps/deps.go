
// Package deps holds the module versions until their users are written.
package deps

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/fergusstrange/embedded-postgres"
	_ "github.com/goccy/go-yaml"
	_ "github.com/google/uuid"
	_ "github.com/hamba/avro/v2"
	_ "github.com/jackc/pglogrepl"
	_ "github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/pressly/goose/v3"
	_ "github.com/prometheus/client_golang/prometheus"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/stretchr/testify/require"
	_ "github.com/theory/jsonpath"
	_ "github.com/twmb/avro"
	_ "github.com/twmb/franz-go/pkg/kadm"
	_ "github.com/twmb/franz-go/pkg/kfake"
	_ "github.com/twmb/franz-go/pkg/kgo"
	_ "github.com/twmb/franz-go/pkg/sr"
	_ "github.com/twmb/franz-go/pkg/sr/srfake"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/text/currency"
	_ "golang.org/x/time/rate"
	_ "pgregory.net/rapid"
)
