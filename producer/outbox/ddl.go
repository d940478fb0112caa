package outbox

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed ddl.sql
var ddlTemplate string

// PartitionDays is how many days ahead DDL makes partitions.
const PartitionDays = 14

// DDL returns the statements that make the outbox table with its schema, its
// functions and its first partitions. See Table.DDL. It panics if a name is not
// a plain lower-case identifier of at most 40 characters, since both are
// constants of a program.
func DDL(schema, table string) string {
	return Table{Schema: schema, Name: table}.DDL()
}

// DDL returns the statements that make the table. They are idempotent and meant
// to be run in one transaction, by a role that may create tables in the schema
// (or the schema itself). Like the function DDL it panics on bad names.
func (t Table) DDL() string {
	t, err := t.withDefaults()
	if err != nil {
		panic(err)
	}
	nullability := "NOT NULL"
	if t.Tombstones {
		nullability = "NULL"
	}
	return strings.NewReplacer(
		"{schema}", t.Schema,
		"{table}", t.Name,
		"{payload_null}", nullability,
		"{aggregate_type}", aggregateTypeRule,
		"{max_payload}", fmt.Sprint(MaxPayload),
		"{max_key}", fmt.Sprint(MaxAggregateID),
		"{max_type}", fmt.Sprint(MaxType),
		"{max_trace}", fmt.Sprint(MaxTraceParent),
		"{days}", fmt.Sprint(PartitionDays),
	).Replace(ddlTemplate)
}
