package handler

import "time"

// ClassOf is the class of an error, "" for none, and the wait that it asks for.
func ClassOf(err error) (string, time.Duration) {
	if err == nil {
		return "", 0
	}
	class, wait := classOf(err)
	return class.String(), wait
}
