package schemas

import (
	"context"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Format says how the values of a topic's records are written.
type Format string

// Formats.
const (
	// FormatAuto takes Avro in Confluent wire format and plain JSON objects, told apart by the first byte.
	FormatAuto Format = "auto"
	// FormatAvro takes nothing else than Avro.
	FormatAvro Format = "avro"
	// FormatJSON takes plain JSON objects, also as the one text of a JSON value, which is what Connect's JsonConverter (without schemas)
	// makes of a text column.
	FormatJSON Format = "json"
)

// ParseFormat reads a Format; "" is FormatAuto.
func ParseFormat(text string) (Format, error) {
	switch f := Format(text); f {
	case "":
		return FormatAuto, nil
	case FormatAuto, FormatAvro, FormatJSON:
		return f, nil
	}
	return "", fmt.Errorf("format of %d characters is not known; use auto, avro or json", len(text))
}

// FormatDecoder decodes the payloads of one format.
type FormatDecoder struct {
	codec  *Codec
	format Format
}

// As gives a decoder of one format.
func (c *Codec) As(f Format) *FormatDecoder { return &FormatDecoder{c, f} }

// Decode is [Codec.Decode] for payloads of the decoder's format; others are a [DecodeError]. FormatJSON asks no registry.
func (d *FormatDecoder) Decode(ctx context.Context, payload []byte) (Decoded, error) {
	switch d.format {
	case FormatAvro:
		if len(payload) > 0 && payload[0] != 0 {
			return Decoded{}, notAvro()
		}
	case FormatJSON:
		return decodeJSON(payload)
	}
	return d.codec.Decode(ctx, payload)
}

func notAvro() *DecodeError {
	return &DecodeError{Reason: ReasonFormat, Offset: 0, Detail: "an Avro payload begins with a zero byte"}
}

// decodeJSON takes a JSON object, or a JSON text that holds one.
func decodeJSON(payload []byte) (Decoded, error) {
	if err := checkSize(payload); err != nil {
		return Decoded{}, err
	}
	if payload[0] == '"' && utf8.Valid(payload) && json.Valid(payload) && !loneSurrogate(payload) {
		var text string
		_ = json.Unmarshal(payload, &text) // it is valid
		payload = []byte(text)
	}
	if err := checkJSONObject(payload); err != nil {
		return Decoded{}, err
	}
	return Decoded{JSON: payload}, nil
}
