package probe

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Machine is the shape of what a report was made on.
type Machine struct {
	OS        string  `json:"os"`
	CPU       string  `json:"cpu"`
	Cores     int     `json:"cores"`
	MemoryGiB float64 `json:"memoryGiB"`
	Go        string  `json:"go"`
	// Fsync is the median time of writing and syncing 8 KiB at the end of a file in the folder of the data, in milliseconds.
	Fsync float64 `json:"fsyncMs"`
}

// Look finds out the shape of this machine; dir is where data will be written.
func Look(dir string) (Machine, error) {
	m := Machine{OS: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: "unknown"}
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		m.CPU = model
	}
	var kb float64
	if _, err := fmt.Sscan(field("/proc/meminfo", "MemTotal"), &kb); err == nil {
		m.MemoryGiB = kb / (1 << 20)
	}
	var err error
	m.Fsync, err = fsyncTime(dir)
	return m, err
}

// field finds "name : value" in a file of /proc.
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, found := strings.Cut(lines.Text(), ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func fsyncTime(dir string) (float64, error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return 0, fmt.Errorf("measure fsync: %w", err)
	}
	defer func() {
		_ = f.Close()
		_ = os.Remove(f.Name())
	}()
	page := make([]byte, 8<<10)
	took := make([]float64, 200)
	for i := range took {
		started := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, fmt.Errorf("measure fsync: %w", err)
		}
		if err := f.Sync(); err != nil {
			return 0, fmt.Errorf("measure fsync: %w", err)
		}
		took[i] = float64(time.Since(started)) / float64(time.Millisecond)
	}
	return Quantile(took, 0.5), nil
}
