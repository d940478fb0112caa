package spec

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits on a destination file. A real one is a few kilobytes; the limits
// keep a hostile or mistaken file from costing memory or stack.
const (
	maxFileBytes = 64 << 10
	maxNodes     = 10_000
	maxDepth     = 32
)

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindMap
)

func (k kind) String() string {
	return [...]string{"nothing", "true/false", "a number", "text", "a list", "a mapping"}[k]
}

// node is one value of the file with aliases and merge keys already resolved.
// Numbers stay text, digit for digit.
type node struct {
	kind kind
	text string
	// broken is set for an alias without its anchor, which is reported once.
	broken bool
	pos    Pos
	items  []*node
	pairs  []pair
}

type pair struct {
	key string
	pos Pos
	val *node
}

func (n *node) get(key string) *node {
	for _, p := range n.pairs {
		if p.key == key {
			return p.val
		}
	}
	return nil
}

// treeBuilder turns the YAML library's syntax tree into nodes.
type treeBuilder struct {
	*reader
	anchors map[string]*node
	count   int
	full    bool
}

// buildTree parses data. It returns nil when the text is not one YAML
// document with a mapping at the top; the reason is in the reader's problems.
func buildTree(r *reader, data []byte) *node {
	if len(data) > maxFileBytes {
		r.add(Pos{1, 1}, fmt.Sprintf("file has %d bytes, more than the limit of %d", len(data), maxFileBytes), "write one destination per file")
		return nil
	}
	file, err := parseYAML(data)
	if err != nil {
		r.addSyntax(err)
		return nil
	}
	var body ast.Node
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case body != nil:
			r.add(position(doc.Body.GetToken()), "a second YAML document in one file", "write one destination per file")
			return nil
		default:
			body = doc.Body
		}
	}
	if body == nil {
		r.add(Pos{1, 1}, "file is empty", "start with: destination: NAME")
		return nil
	}
	b := &treeBuilder{reader: r, anchors: map[string]*node{}}
	root := b.build(body, 0)
	if root == nil {
		return nil
	}
	if root.kind != kindMap {
		r.add(root.pos, "a destination file is a mapping, not "+root.kind.String(), "start with: destination: NAME")
		return nil
	}
	return root
}

// parseYAML turns a panic of the YAML library into an error: the file is
// somebody's input, and one bad file must not end the process.
func parseYAML(data []byte) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			file, err = nil, errors.New("text is not YAML")
		}
	}()
	return parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
}

func (r *reader) addSyntax(err error) {
	pos, message := Pos{1, 1}, "text is not YAML"
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		message = syntax.GetMessage()
		pos = position(syntax.GetToken())
	}
	r.add(pos, "YAML: "+message, "check the brackets, quotes and indentation before this place")
}

func position(tk *token.Token) Pos {
	if tk == nil || tk.Position == nil {
		return Pos{1, 1}
	}
	return Pos{Line: max(1, tk.Position.Line), Column: max(1, tk.Position.Column)}
}

func (b *treeBuilder) build(n ast.Node, depth int) *node {
	if n == nil || n.GetToken() == nil {
		return &node{pos: Pos{1, 1}}
	}
	pos := position(n.GetToken())
	b.count++
	if depth > maxDepth || b.count > maxNodes {
		if !b.full {
			b.full = true
			b.add(pos, "file is nested too deeply or is too large once aliases are expanded", "write the values out, with less nesting")
		}
		return &node{pos: pos}
	}
	switch v := n.(type) {
	case *ast.MappingNode:
		return b.mapping(v.Values, pos, depth)
	case *ast.MappingValueNode:
		return b.mapping([]*ast.MappingValueNode{v}, pos, depth)
	case *ast.SequenceNode:
		list := &node{kind: kindList, pos: pos}
		for _, item := range v.Values {
			list.items = append(list.items, b.build(item, depth+1))
		}
		return list
	case *ast.AnchorNode:
		return b.anchor(v, depth)
	case *ast.AliasNode:
		return b.alias(v, pos)
	case *ast.LiteralNode:
		return &node{kind: kindString, text: v.Value.Value, pos: pos}
	case *ast.TagNode:
		b.add(pos, "YAML tags are not supported", "quote the value to make it text")
		return &node{pos: pos}
	}
	return b.scalar(n, pos)
}

func (b *treeBuilder) anchor(v *ast.AnchorNode, depth int) *node {
	name := v.Name.String()
	if _, taken := b.anchors[name]; taken {
		b.add(position(v.GetToken()), fmt.Sprintf("anchor %q is defined twice", name), "give each anchor a name of its own")
	}
	val := b.build(v.Value, depth+1)
	// Stored only now: an alias inside its own anchor is unknown, so a value
	// can never contain itself.
	b.anchors[name] = val
	return val
}

func (b *treeBuilder) alias(v *ast.AliasNode, pos Pos) *node {
	name := v.Value.String()
	val, ok := b.anchors[name]
	if !ok {
		known := make([]string, 0, len(b.anchors))
		for k := range b.anchors {
			known = append(known, k)
		}
		b.add(pos, fmt.Sprintf("alias *%s has no anchor before it", clip(name)), cmp.Or(didYouMean(name, known), "write & and the name before the value that is meant"))
		return &node{pos: pos, broken: true}
	}
	b.count += size(val)
	return val
}

func size(n *node) int {
	total := 1
	for _, item := range n.items {
		total += size(item)
	}
	for _, p := range n.pairs {
		total += size(p.val)
	}
	return total
}

func (b *treeBuilder) mapping(values []*ast.MappingValueNode, pos Pos, depth int) *node {
	m := &node{kind: kindMap, pos: pos}
	seen := map[string]Pos{}
	var merged []*node
	for i, entry := range values {
		keyPos := position(entry.Key.GetToken())
		if i == 0 {
			m.pos = keyPos
		}
		val := b.build(entry.Value, depth+1)
		if entry.Key.IsMergeKey() {
			merged = append(merged, b.mergeSources(val, keyPos)...)
			continue
		}
		key, ok := keyText(entry.Key)
		if !ok {
			b.add(keyPos, "a key must be plain text", "quote it")
			continue
		}
		if first, twice := seen[key]; twice {
			b.add(keyPos, fmt.Sprintf("key %q is written twice", clip(key)), fmt.Sprintf("first at line %d; keep one", first.Line))
			continue
		}
		seen[key] = keyPos
		m.pairs = append(m.pairs, pair{key, keyPos, val})
	}
	for _, source := range merged {
		for _, p := range source.pairs {
			if _, own := seen[p.key]; !own {
				seen[p.key] = p.pos
				m.pairs = append(m.pairs, p)
			}
		}
	}
	return m
}

func (b *treeBuilder) mergeSources(val *node, pos Pos) []*node {
	sources := []*node{val}
	if val.kind == kindList {
		sources = val.items
	}
	for _, s := range sources {
		if s.kind != kindMap {
			b.add(pos, "<< merges mappings, not "+s.kind.String(), "merge an anchor of a mapping")
			return nil
		}
	}
	return sources
}

func keyText(key ast.MapKeyNode) (string, bool) {
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return k.GetToken().Value, true
	}
	return "", false
}

// scalar decides the kind of a value from its text and quotes, by YAML's core
// schema. The library's own number values are not used: they are rounded.
func (b *treeBuilder) scalar(n ast.Node, pos Pos) *node {
	tk := n.GetToken()
	text := tk.Value
	switch tk.Type {
	case token.SingleQuoteType, token.DoubleQuoteType:
		return &node{kind: kindString, text: text, pos: pos}
	case token.NullType, token.ImplicitNullType:
		return &node{kind: kindNull, pos: pos}
	}
	switch text {
	case "true", "True", "TRUE", "false", "False", "FALSE":
		return &node{kind: kindBool, text: strings.ToLower(text), pos: pos}
	case "~", "null", "Null", "NULL", "":
		return &node{kind: kindNull, pos: pos}
	}
	if IsNumber(text) {
		return &node{kind: kindNumber, text: text, pos: pos}
	}
	if _, isText := n.(*ast.StringNode); !isText {
		b.add(pos, fmt.Sprintf("%q is not written as a JSON number", clip(text)), "write decimal digits, or quote it to make it text")
	}
	return &node{kind: kindString, text: text, pos: pos}
}
