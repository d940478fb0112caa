package kafkarun_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ebbline/ebb/internal/kafkarun"
)

// child is this test binary, run again to be killed.
type child struct {
	cmd  *exec.Cmd
	addr string // what it printed first
}

func startChild(t *testing.T, role, path string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+role, "KAFKARUN_TEST_PATH="+path)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe() // the child ends with us, whatever happens
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &child{cmd: cmd}
	t.Cleanup(func() { c.kill(); _ = stdin.Close() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	c.addr = strings.TrimSpace(line)
	return c
}

// kill ends the child as kill -9 does, and waits until it is gone.
func (c *child) kill() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
}

func brokerChild() int {
	b, err := kafkarun.StartBroker(kafkarun.BrokerConfig{DataDir: os.Getenv("KAFKARUN_TEST_PATH")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(b.Addr())
	return untilStdinEnds()
}

func registryChild() int {
	r, err := kafkarun.StartRegistry(kafkarun.RegistryConfig{Path: os.Getenv("KAFKARUN_TEST_PATH")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(r.URL())
	return untilStdinEnds()
}

func untilStdinEnds() int {
	_, _ = os.Stdin.Read(make([]byte, 1))
	return 0
}
