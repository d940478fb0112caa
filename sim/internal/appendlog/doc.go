// Package appendlog keeps an append-only file of checked lines that survives
// the death of its process, and the loss of power for what was synced.
//
// # Format
//
// One record is one line: the CRC-32C of the payload as eight lower-case hex
// digits, a space, the payload, a line feed. A payload holds no line feed.
//
// # Invariants
//
//   - A1 Append returns only after write(2) has taken the whole line, so a
//     kill -9 of the process loses nothing that Append acknowledged.
//   - A2 Sync returns only after an fsync that began after the record was
//     written. One fsync serves every record written before it began, so many
//     waiting callers share it.
//   - A3 File order is the order in which Append was called.
//   - A4 After a failed write or fsync nothing is accepted any more: what the
//     kernel holds of the file is then unknown.
//
// # Failure behaviour
//
// A crash in the middle of a write leaves a torn last line. Open cuts it off:
// nobody was told that it was kept. A damaged line that is followed by a good
// one is not a torn tail and is reported as [CorruptError]. A file in use by
// another process is refused with [LockedError].
package appendlog
