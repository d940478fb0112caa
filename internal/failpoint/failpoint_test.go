package failpoint

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary be its own child: with childEnv set it hits one
// failpoint four times and says so on standard output.
func TestMain(m *testing.M) {
	if os.Getenv(childEnv) == "" {
		os.Exit(m.Run())
	}
	for i := 1; i <= 4; i++ {
		err := Hit("test.place")
		var injected *Error
		fmt.Println(i, errors.As(err, &injected) && injected.Name == "test.place")
	}
	fmt.Println("end")
	if !strings.Contains(os.Getenv(EnvVar), "scoped.") {
		return
	}
	var scoped []bool
	for _, scope := range []string{"billing", "shipping", "billing", ""} {
		scoped = append(scoped, HitIn("scoped.place", scope) != nil)
	}
	fmt.Println("scoped:", scoped)
}

const childEnv = "EBB_FAILPOINT_TEST_CHILD"

func child(t *testing.T, list string) (*exec.Cmd, *strings.Builder) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"=1", EnvVar+"="+list)
	var out strings.Builder
	cmd.Stdout = &out
	return cmd, &out
}

func TestHitWithoutSettingDoesNothing(t *testing.T) {
	t.Parallel()
	require.NoError(t, Hit("test.place"))
}

func TestKill(t *testing.T) {
	t.Parallel()
	tests := []struct{ list, out string }{
		{"test.place=kill", ""},
		{"test.place=kill@3", "1 false\n2 false\n"},
		{"other=kill,test.place=kill@4", "1 false\n2 false\n3 false\n"},
	}
	for _, tt := range tests {
		t.Run(tt.list, func(t *testing.T) {
			t.Parallel()
			cmd, out := child(t, tt.list)
			var exit *exec.ExitError
			require.ErrorAs(t, cmd.Run(), &exit)
			require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
			require.Equal(t, tt.out, out.String())
		})
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	cmd, out := child(t, "test.place=error@2")
	require.NoError(t, cmd.Run())
	require.Equal(t, "1 false\n2 true\n3 false\n4 false\nend\n", out.String())

	cmd, out = child(t, "test.place=error")
	require.NoError(t, cmd.Run())
	require.Equal(t, "1 true\n2 true\n3 true\n4 true\nend\n", out.String())
}

func TestHitInScope(t *testing.T) {
	t.Parallel()
	cmd, out := child(t, "scoped.place=error@2,scoped.place.billing=error@2")
	require.NoError(t, cmd.Run())
	require.Equal(t, "1 false\n2 false\n3 false\n4 false\nend\nscoped: [false true true false]\n", out.String())
}

func TestPauseBlocksUntilSignalled(t *testing.T) {
	t.Parallel()
	cmd, out := child(t, "test.place=pause@2")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(stderr).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "failpoint test.place: pause\n", line)
	require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1))
	require.NoError(t, cmd.Wait())
	require.Equal(t, "1 false\n2 false\n3 false\n4 false\nend\n", out.String())
}

func TestPausedProcessCanBeKilled(t *testing.T) {
	t.Parallel()
	cmd, out := child(t, "test.place=pause@2")
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(stderr).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	require.Equal(t, "1 false\n", out.String())
}

func TestUnreadableListEndsTheProcess(t *testing.T) {
	t.Parallel()
	cmd, out := child(t, "test.place=explode")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Run(), &exit)
	require.Equal(t, 2, exit.ExitCode())
	require.Empty(t, out.String())
	require.Contains(t, stderr.String(), `unknown action "explode"`)
}

func TestParse(t *testing.T) {
	t.Parallel()
	parsed, err := parse("a=kill, b.c-d_e=pause@2 ,f=error@10")
	require.NoError(t, err)
	require.Len(t, parsed, 3)
	require.Equal(t, int64(0), parsed["a"].at)
	require.Equal(t, pause, parsed["b.c-d_e"].action)
	require.Equal(t, int64(10), parsed["f"].at)

	for _, list := range []string{"a", "a=", "=kill", "a=kill@", "a=kill@0", "a=kill@-1", "a=kill@x", "a=kill,", "a=kill,a=pause", "a b=kill", "a=kill@1@2"} {
		_, err := parse(list)
		require.Error(t, err, list)
	}
	_, err = parse("x=what,y=kill@0")
	require.ErrorContains(t, err, "x=what")
	require.ErrorContains(t, err, "y=kill@0")
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"a=kill", "a=kill@3,b=pause", "", ",", "a=@", "=@="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		parsed, err := parse(list)
		if err != nil {
			require.Nil(t, parsed)
			return
		}
		for name, p := range parsed {
			require.Equal(t, name, p.name)
			require.GreaterOrEqual(t, p.at, int64(0))
		}
	})
}

func BenchmarkHitInactive(b *testing.B) {
	for b.Loop() {
		_ = Hit("test.place")
	}
}
