package postgresrun

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// systemState is where the files of a server go whose own user cannot enter the folder asked for.
const systemState = "/var/lib/ebb"

// account is the user that initdb and postgres run as.
type account struct {
	drop     bool // we are root and must change to it
	uid, gid int
	name     string
}

// serverAccount decides who runs the server: root hands over to an unprivileged user, anyone else stays who he is.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return account{drop: true, uid: uid, gid: gid, name: name}, nil
		}
	}
	return account{}, fmt.Errorf("PostgreSQL cannot run as root and there is neither a user postgres nor nobody: " +
		"run as an ordinary user, or use a running server with --postgres DSN")
}

// own hands a path to the account.
func (a account) own(path string) error {
	if !a.drop {
		return nil
	}
	if err := os.Chown(path, a.uid, a.gid); err != nil {
		return fmt.Errorf("hand %s to user %s: %w", path, a.name, err)
	}
	return nil
}

// canEnter says whether the account may walk through dir and all its parents. Folders that do not exist yet will be
// made by us with mode 0755 and do not count. Access lists are not looked at.
func (a account) canEnter(dir string) bool {
	for d := dir; ; d = filepath.Dir(d) {
		if info, err := os.Stat(d); err == nil && !a.mayExecute(info) {
			return false
		}
		if d == filepath.Dir(d) {
			return true
		}
	}
}

func (a account) mayExecute(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	mode := info.Mode().Perm()
	switch {
	case int(st.Uid) == a.uid:
		return mode&0o100 != 0
	case int(st.Gid) == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// place gives the folder to use for the data folder asked for.
func (a account) place(dir string) string {
	if !a.drop || a.canEnter(filepath.Dir(dir)) {
		return dir
	}
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(systemState, hex.EncodeToString(sum[:8]))
}
