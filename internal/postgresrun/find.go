package postgresrun

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
)

// installation is a folder with a usable initdb and postgres.
type installation struct {
	bin   string
	major int
}

func (i installation) tool(name string) string { return filepath.Join(i.bin, name) }

var versionLine = regexp.MustCompile(`PostgreSQL\) (\d+)`)

// inspect asks the server binary of a folder for its release.
func inspect(ctx context.Context, bin string) (installation, error) {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := os.Stat(filepath.Join(bin, name)); err != nil {
			return installation{}, fmt.Errorf("no %s there", name)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").CombinedOutput()
	if err != nil {
		return installation{}, fmt.Errorf("postgres --version failed: %w", err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return installation{}, fmt.Errorf("postgres --version says %q", strings.TrimSpace(string(out)))
	}
	major, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return installation{}, fmt.Errorf("postgres --version says %q", strings.TrimSpace(string(out)))
	}
	if major < MinMajor {
		return installation{}, fmt.Errorf("release %d is older than %d", major, MinMajor)
	}
	return installation{bin: bin, major: major}, nil
}

// candidates lists the folders to look into, best first, without repeats.
func candidates(ctx context.Context) []string {
	var dirs []string
	if p, err := exec.LookPath("postgres"); err == nil {
		// Distributions put links into PATH; initdb stands beside the link's target.
		if real, err := filepath.EvalSymlinks(p); err == nil {
			p = real
		}
		dirs = append(dirs, filepath.Dir(p))
	}
	if out, err := exec.CommandContext(ctx, "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",          // Debian, Ubuntu
		"/usr/pgsql-*/bin",                   // PostgreSQL's own RPMs
		"/usr/libexec/postgresql*",           // Alpine
		"/opt/homebrew/opt/postgresql@*/bin", // Homebrew, Apple silicon
		"/usr/local/opt/postgresql@*/bin",    // Homebrew, Intel
		"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
		"/Library/PostgreSQL/*/bin", // EDB installer
		"/usr/local/pgsql/bin",      // built from source
		"/usr/bin",
	} {
		found, _ := filepath.Glob(pattern) // only a malformed pattern is an error
		sort.Slice(found, func(i, j int) bool { return number(found[i]) > number(found[j]) })
		dirs = append(dirs, found...)
	}
	seen := map[string]bool{}
	unique := dirs[:0]
	for _, d := range dirs {
		if !seen[d] {
			seen[d] = true
			unique = append(unique, d)
		}
	}
	return unique
}

var digits = regexp.MustCompile(`\d+`)

// number is the first number in a path, which in all the usual layouts is the release.
func number(path string) int {
	n, _ := strconv.Atoi(digits.FindString(path)) // no number sorts last
	return n
}

// find picks the server to run. major is the release of an existing data folder, 0 for a new one. binDir, if set, is
// the only place looked at: who names a folder wants that one or an error.
func find(ctx context.Context, binDir string, major int) (installation, *NotFoundError) {
	missing := &NotFoundError{Major: major}
	dirs := []string{binDir}
	if binDir == "" {
		dirs = candidates(ctx)
	}
	for _, dir := range dirs {
		inst, err := inspect(ctx, dir)
		switch {
		case err != nil:
			missing.Looked = append(missing.Looked, fmt.Sprintf("%s: %v", dir, err))
		case major != 0 && inst.major != major:
			missing.Looked = append(missing.Looked, fmt.Sprintf("%s: is release %d", dir, inst.major))
		default:
			return inst, nil
		}
	}
	return installation{}, missing
}
