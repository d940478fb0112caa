package call

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// EnvAllowPrivate names the setting by which destinations may lie in loopback
// and private networks although base_url names them by a host name: "1" for
// all of them, or a list of networks such as "10.0.0.0/8,127.0.0.0/8".
const EnvAllowPrivate = "EBB_ALLOW_PRIVATE"

// internalRanges are networks of one's own. They are reached only when
// base_url is written as such an address, or when the setting allows it.
var internalRanges = prefixes(
	"127.0.0.0/8", "::1/128", // loopback
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", // private
	"100.64.0.0/10", // shared by carriers and overlay networks
)

// forbidden are addresses behind which no destination can be. Nothing allows
// them.
var forbidden = []struct {
	what   string
	ranges []netip.Prefix
}{
	{"a cloud's metadata service", prefixes("169.254.169.254/32", "fd00:ec2::/32", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32")},
	{"a link-local address", prefixes("169.254.0.0/16", "fe80::/10")},
	{"an unspecified address", prefixes("0.0.0.0/8", "::/128")},
	{"a multicast address", prefixes("224.0.0.0/4", "ff00::/8")},
	{"a reserved address", prefixes("240.0.0.0/4")},
}

// embedding are networks whose addresses carry an IPv4 address, with the byte
// at which it begins: a translator would connect to that.
var embedding = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, text := range list {
		out[i] = netip.MustParsePrefix(text)
	}
	return out
}

// ParseAllowPrivate reads the value of EnvAllowPrivate. The error repeats
// nothing but the entry that is not a network.
func ParseAllowPrivate(value string) ([]netip.Prefix, error) {
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "", "0", "false":
		return nil, nil
	case "1", "true":
		return internalRanges, nil
	}
	var out []netip.Prefix
	for _, entry := range strings.Split(value, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(entry))
		if err != nil {
			return nil, fmt.Errorf("%s: %q is not a network; write 1 for all private networks, or for example 10.0.0.0/8,127.0.0.0/8", EnvAllowPrivate, strings.TrimSpace(entry))
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}

// refusedAddress is an address that the guard did not let through. Its text
// holds the address itself, which is no secret.
type refusedAddress struct {
	addr netip.Addr
	what string
	hint string
}

func (e *refusedAddress) Error() string {
	text := "the host's address " + e.addr.String() + " is " + e.what
	if e.hint != "" {
		text += "; " + e.hint
	}
	return text
}

// guard decides which addresses may be connected to. It looks at the address
// that the socket is about to connect to, after name resolution: a name that
// resolves to something else the second time gains nothing.
type guard struct{ allow []netip.Prefix }

// check refuses an address by a *refusedAddress. host is what base_url has.
func (g guard) check(host, address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return errors.New("address cannot be read")
	}
	addr := ap.Addr().WithZone("").Unmap()
	for _, a := range withEmbedded(addr) {
		for _, f := range forbidden {
			if in(f.ranges, a) {
				return &refusedAddress{addr, f.what, "check base_url"}
			}
		}
		if in(internalRanges, a) && !in(g.allow, a) && !written(host, a) {
			return &refusedAddress{addr, "in a loopback or private network", "set " + EnvAllowPrivate + " if the destination lies there, or write the address itself in base_url"}
		}
	}
	return nil
}

// written reports whether base_url names an internal address as such, so that
// whoever wrote the file meant it.
func written(host string, addr netip.Addr) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return addr.IsLoopback()
	}
	literal, err := netip.ParseAddr(host)
	return err == nil && literal.WithZone("").Unmap() == addr
}

func withEmbedded(addr netip.Addr) []netip.Addr {
	out := []netip.Addr{addr}
	for _, e := range embedding {
		if !addr.Is6() || addr.IsLoopback() || addr.IsUnspecified() || !e.prefix.Contains(addr) {
			continue
		}
		bytes := addr.As16()
		out = append(out, netip.AddrFrom4([4]byte(bytes[e.at:e.at+4])))
	}
	return out
}

func in(ranges []netip.Prefix, addr netip.Addr) bool {
	for _, p := range ranges {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// dial connects to the address behind host:port, if the guard lets it.
func (g guard) dial(timeout time.Duration, resolver *net.Resolver) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		d := net.Dialer{
			Timeout: timeout, KeepAlive: 30 * time.Second, Resolver: resolver,
			Control: func(_, connected string, _ syscall.RawConn) error { return g.check(host, connected) },
		}
		return d.DialContext(ctx, network, address)
	}
}
