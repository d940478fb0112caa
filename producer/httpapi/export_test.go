package httpapi

// ProblemTypes lists the URI, status and title of every type of problem.
func ProblemTypes() (types []struct {
	URI    string
	Status int
	Title  string
}) {
	for _, k := range kinds() {
		types = append(types, struct {
			URI    string
			Status int
			Title  string
		}{k.uri(), k.status, k.title})
	}
	return types
}
