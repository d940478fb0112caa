package probe

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ticksPerSecond is USER_HZ, which Linux has fixed for all that /proc shows.
const ticksPerSecond = 100

// CPU is processor time in seconds since the start of what it is of.
type CPU struct {
	PostgreSQL float64            // all of its processes
	Kinds      map[string]float64 // live processes of PostgreSQL by kind: "client", "walsender", "walwriter", …
	Processes  map[string]float64 // the processes asked for, by their name
	Machine    float64            // everything on this machine, ours included
}

// Minus gives the time spent between an earlier reading and this one.
func (c CPU) Minus(earlier CPU) CPU {
	return CPU{
		PostgreSQL: c.PostgreSQL - earlier.PostgreSQL, Machine: c.Machine - earlier.Machine,
		Kinds: minus(c.Kinds, earlier.Kinds), Processes: minus(c.Processes, earlier.Processes),
	}
}

func minus(x, y map[string]float64) map[string]float64 {
	out := make(map[string]float64, len(x))
	for name, v := range x {
		if d := v - y[name]; d > 0 {
			out[name] = d
		}
	}
	return out
}

// ReadCPU reads the time of the server whose postmaster is given, and of further processes by name.
func ReadCPU(postmaster int, processes map[string]int) CPU {
	out := CPU{Kinds: map[string]float64{}, Processes: map[string]float64{}, Machine: machineTime()}
	if p, ok := readProcess(postmaster); ok {
		out.PostgreSQL = p.own + p.children
	}
	for _, p := range childrenOf(postmaster) {
		out.PostgreSQL += p.own + p.children
		out.Kinds[kindOf(p.pid)] += p.own
	}
	for name, pid := range processes {
		p, _ := readProcess(pid)
		out.Processes[name] = p.own
	}
	return out
}

// process is what /proc/<pid>/stat says.
type process struct {
	pid, parent   int
	own, children float64 // seconds; children that have ended and were waited for
}

func readProcess(pid int) (process, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	return parseStat(pid, text)
}

// parseStat reads the fields behind the name, which is in parentheses and may hold anything.
func parseStat(pid int, text []byte) (process, bool) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return process{}, false
	}
	f := strings.Fields(string(text[end+1:]))
	if len(f) < 15 {
		return process{}, false
	}
	n := make([]int, 15)
	for _, i := range []int{1, 11, 12, 13, 14} { // ppid, utime, stime, cutime, cstime
		v, err := strconv.Atoi(f[i])
		if err != nil {
			return process{}, false
		}
		n[i] = v
	}
	return process{
		pid: pid, parent: n[1],
		own: float64(n[11]+n[12]) / ticksPerSecond, children: float64(n[13]+n[14]) / ticksPerSecond,
	}, true
}

func childrenOf(parent int) []process {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	var out []process
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(path))
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok && p.parent == parent {
			out = append(out, p)
		}
	}
	return out
}

// ParentOf gives the parent of a process, 0 if it is not known. A backend's parent is the postmaster.
func ParentOf(pid int) int {
	p, _ := readProcess(pid)
	return p.parent
}

// kindOf reads what a process of PostgreSQL calls itself: "postgres: walwriter", "postgres: ebb bench 127.0.0.1(4242) idle".
func kindOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return "other"
	}
	title := strings.Trim(string(text), "\x00 ")
	title, found := strings.CutPrefix(title, "postgres: ")
	if !found {
		return "other"
	}
	for _, kind := range []string{"walsender", "walwriter", "background writer", "checkpointer", "autovacuum", "logical replication"} {
		if strings.HasPrefix(title, kind) {
			return kind
		}
	}
	return "client"
}

// machineTime is what all processors have done since boot, waiting excluded.
func machineTime() float64 {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	f := strings.Fields(string(line))
	total := 0
	for i := 1; i < len(f) && i <= 8; i++ {
		if i == 4 || i == 5 { // idle, iowait
			continue
		}
		v, _ := strconv.Atoi(f[i])
		total += v
	}
	return float64(total) / ticksPerSecond
}
