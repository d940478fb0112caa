package schemas

import (
	"errors"
	"fmt"
	"strings"

	twmb "github.com/twmb/avro"
)

// node is a schema made ready for writing values as JSON: names are resolved,
// so that a recursive type is a cycle of pointers.
type node struct {
	kind    string // Avro type; "record" for errors too
	logical string
	name    string // full name of a named type
	connect string // type name of Kafka Connect or Debezium, from "connect.name"
	scale   int    // of a decimal
	prec    int    // of a decimal
	money   bool   // decimals here follow the currency of their record

	fields   []fieldOf
	currency int // index of the field that names the currency, -1 if none
	items    *node
	branches map[string]*node // of a union, by the name the decoder tags them with
	order    []string         // of a union: the names of its branches as written

	symbols  []string // of an enum
	fallback string   // default symbol of an enum, "" if none
}

type fieldOf struct {
	name    string
	key     []byte // `"name":`
	node    *node
	aliases []string
	def     any // default value
	hasDef  bool
}

// compile turns the schema tree into nodes.
func compile(root *twmb.SchemaNode) (*node, error) {
	return (&compiler{named: map[string]*node{}}).compile(root, "")
}

type compiler struct {
	named map[string]*node
}

// compile turns one schema node into a node; namespace is that of the enclosing
// named type, where plain names are looked up first.
func (c *compiler) compile(s *twmb.SchemaNode, namespace string) (*node, error) {
	n := &node{kind: s.Type, logical: s.LogicalType, scale: s.Scale, prec: s.Precision, money: true, currency: -1}
	n.connect, _ = s.Props["connect.name"].(string)
	if on, ok := s.Props["ebb.money"].(bool); ok {
		n.money = on
	}
	switch s.Type {
	case "null", "boolean", "int", "long", "float", "double", "string", "bytes":
		return n, nil
	case "enum", "fixed":
		c.define(n, s)
		n.symbols, n.fallback = s.Symbols, s.EnumDefault
		return n, nil
	case "record", "error":
		n.kind = "record"
		c.define(n, s)
		return n, c.fields(n, s)
	case "array":
		return n, c.into(&n.items, s.Items, namespace)
	case "map":
		return n, c.into(&n.items, s.Values, namespace)
	case "union":
		return n, c.union(n, s, namespace)
	}
	for _, name := range []string{qualified(namespace, s.Type), s.Type} {
		if ref := c.named[name]; ref != nil {
			return ref, nil
		}
	}
	return nil, fmt.Errorf("type %q is not defined", s.Type)
}

func (c *compiler) define(n *node, s *twmb.SchemaNode) {
	n.name = qualified(s.Namespace, s.Name)
	c.named[n.name] = n
}

func (c *compiler) into(place **node, s *twmb.SchemaNode, namespace string) (err error) {
	if s == nil {
		return errors.New("element type is missing")
	}
	*place, err = c.compile(s, namespace)
	return err
}

func (c *compiler) fields(n *node, s *twmb.SchemaNode) error {
	namespace := n.name[:max(strings.LastIndexByte(n.name, '.'), 0)]
	for i := range s.Fields {
		f := &s.Fields[i]
		child, err := c.compile(&f.Type, namespace)
		if err != nil {
			return err
		}
		if on, ok := f.Props["ebb.money"].(bool); ok {
			copied := *child // the type may be shared with other fields
			copied.money = on
			child = &copied
		}
		if f.Name == "currency" && carriesText(child) {
			n.currency = i
		}
		n.fields = append(n.fields, fieldOf{f.Name, append(appendString(nil, f.Name), ':'), child, f.Aliases, f.Default, f.HasDefault})
	}
	return nil
}

func (c *compiler) union(n *node, s *twmb.SchemaNode, namespace string) error {
	n.branches = make(map[string]*node, len(s.Branches))
	for i := range s.Branches {
		child, err := c.compile(&s.Branches[i], namespace)
		if err != nil {
			return err
		}
		name := child.name
		if name == "" {
			name = child.kind
		}
		n.branches[name] = child
		n.order = append(n.order, name)
	}
	return nil
}

// carriesText reports whether values of n are text, or text or null.
func carriesText(n *node) bool {
	if n.kind == "union" {
		return n.branches["string"] != nil || len(n.branches) == 1
	}
	return n.kind == "string" || n.kind == "enum"
}

func qualified(namespace, name string) string {
	if namespace == "" || strings.Contains(name, ".") {
		return name
	}
	return namespace + "." + name
}
