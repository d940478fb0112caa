package journal

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// Key names an aggregate, for example {"order", "42"}.
type Key struct {
	Type string
	ID   string
}

// hash is the aggregate's advisory lock. It must never change: two versions of the program lock the same aggregates.
func (k Key) hash() int64 {
	h := fnv.New64a()
	h.Write([]byte(k.Type))
	h.Write([]byte{0})
	h.Write([]byte(k.ID))
	return int64(h.Sum64())
}

// lockOrder is the keys without repeats in the one order in which everybody locks.
func lockOrder(keys []Key) ([]Key, []int64) {
	type hashed struct {
		key  Key
		hash int64
	}
	all := make([]hashed, len(keys))
	for i, k := range keys {
		all[i] = hashed{k, k.hash()}
	}
	slices.SortFunc(all, func(x, y hashed) int {
		return cmp.Or(cmp.Compare(x.hash, y.hash), cmp.Compare(x.key.Type, y.key.Type), cmp.Compare(x.key.ID, y.key.ID))
	})
	all = slices.Compact(all)
	sorted, hashes := make([]Key, len(all)), make([]int64, len(all))
	for i, h := range all {
		sorted[i], hashes[i] = h.key, h.hash
	}
	return sorted, slices.Compact(hashes)
}
