package call

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGuard(t *testing.T) {
	t.Parallel()
	all, err := ParseAllowPrivate("1")
	require.NoError(t, err)
	some, err := ParseAllowPrivate(" 10.1.0.0/16 , fd12::/16")
	require.NoError(t, err)
	for _, c := range []struct {
		host, addr string
		allow      []netip.Prefix
		want       string // "" lets it through
	}{
		// public
		{"api.example.com", "93.184.215.14", nil, ""},
		{"93.184.215.14", "93.184.215.14", nil, ""},
		{"api.example.com", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", nil, ""},
		// internal, by name
		{"api.example.com", "127.0.0.1", nil, "loopback or private"},
		{"api.example.com", "127.9.9.9", nil, "loopback or private"},
		{"api.example.com", "::1", nil, "loopback or private"},
		{"api.example.com", "10.1.2.3", nil, "loopback or private"},
		{"api.example.com", "172.31.0.1", nil, "loopback or private"},
		{"api.example.com", "192.168.1.1", nil, "loopback or private"},
		{"api.example.com", "100.64.0.1", nil, "loopback or private"},
		{"api.example.com", "fd12::1", nil, "loopback or private"},
		{"api.example.com", "::ffff:127.0.0.1", nil, "loopback or private"},
		{"api.example.com", "64:ff9b::7f00:1", nil, "loopback or private"},
		{"api.example.com", "2002:7f00:1::", nil, "loopback or private"},
		{"api.example.com", "::7f00:1", nil, "loopback or private"},
		{"2130706433", "127.0.0.1", nil, "loopback or private"},
		{"0x7f.1", "127.0.0.1", nil, "loopback or private"},
		// internal, written as such
		{"127.0.0.1", "127.0.0.1", nil, ""},
		{"127.0.0.1", "127.0.0.2", nil, "loopback or private"},
		{"localhost", "127.0.0.1", nil, ""},
		{"LOCALHOST.", "::1", nil, ""},
		{"localhost", "10.0.0.1", nil, "loopback or private"},
		{"::1", "::1", nil, ""},
		{"::ffff:127.0.0.1", "127.0.0.1", nil, ""},
		{"10.1.2.3", "10.1.2.3", nil, ""},
		// internal, allowed by the setting
		{"billing", "10.1.2.3", all, ""},
		{"billing", "127.0.0.1", all, ""},
		{"billing", "100.64.0.1", all, ""},
		{"billing", "10.1.2.3", some, ""},
		{"billing", "fd12::1", some, ""},
		{"billing", "10.2.2.3", some, "loopback or private"},
		// never
		{"169.254.169.254", "169.254.169.254", all, "metadata"},
		{"::ffff:169.254.169.254", "::ffff:169.254.169.254", all, "metadata"},
		{"x", "fd00:ec2::254", all, "metadata"},
		{"x", "100.100.100.200", all, "metadata"},
		{"x", "168.63.129.16", all, "metadata"},
		{"x", "64:ff9b::a9fe:a9fe", all, "metadata"},
		{"x", "2002:a9fe:a9fe::", all, "metadata"},
		{"169.254.1.1", "169.254.1.1", all, "link-local"},
		{"x", "fe80::1", all, "link-local"},
		{"0.0.0.0", "0.0.0.0", all, "unspecified"},
		{"::", "::", all, "unspecified"},
		{"x", "224.0.0.1", all, "multicast"},
		{"x", "ff02::1", all, "multicast"},
		{"x", "255.255.255.255", all, "reserved"},
	} {
		err := guard{c.allow}.check(c.host, netip.AddrPortFrom(netip.MustParseAddr(c.addr), 443).String())
		if c.want == "" {
			require.NoError(t, err, "%s at %s", c.host, c.addr)
			continue
		}
		require.ErrorContains(t, err, c.want, "%s at %s", c.host, c.addr)
	}
	require.Error(t, guard{}.check("x", "no address"))
}

func TestParseAllowPrivate(t *testing.T) {
	t.Parallel()
	for _, none := range []string{"", "0", "false", " "} {
		got, err := ParseAllowPrivate(none)
		require.NoError(t, err)
		require.Empty(t, got)
	}
	_, err := ParseAllowPrivate("10.0.0.0/8,yes")
	require.EqualError(t, err, `EBB_ALLOW_PRIVATE: "yes" is not a network; write 1 for all private networks, or for example 10.0.0.0/8,127.0.0.0/8`)
}
