package saga

// Key is the Idempotency-Key of every attempt of a step (G4).
func Key(id ID, dest string, dir Direction) string {
	return id.String() + ":" + dest + ":" + dir.String()
}
