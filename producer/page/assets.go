package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed templates assets
var files embed.FS

// assets are the files beside the pages, by a name that changes with their
// content: a browser may keep them for ever and never has an old one.
type assets struct {
	content map[string][]byte
	names   map[string]string // "style.css" → "style.0f3a….css"
}

func loadAssets() (assets, error) {
	a := assets{content: map[string][]byte{}, names: map[string]string{}}
	entries, err := fs.ReadDir(files, "assets")
	if err != nil {
		return a, fmt.Errorf("order page: assets: %w", err)
	}
	for _, e := range entries {
		content, err := fs.ReadFile(files, "assets/"+e.Name())
		if err != nil {
			return a, fmt.Errorf("order page: assets: %w", err)
		}
		sum := sha256.Sum256(content)
		ext := path.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:8]) + ext
		a.content[name], a.names[e.Name()] = content, name
	}
	return a, nil
}

// url is the path of an asset, for templates.
func (a assets) url(name string) (string, error) {
	full, ok := a.names[name]
	if !ok {
		return "", fmt.Errorf("no asset %s", name)
	}
	return "/assets/" + full, nil
}

func (a assets) serve(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("name")
	content, ok := a.content[name]
	if !ok {
		return errNoPage
	}
	w.Header().Set("Content-Type", mediaType(name))
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(content)
	return nil
}

// mediaType does not depend on what the machine has registered for these.
func mediaType(name string) string {
	switch ext := path.Ext(name); ext {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	default:
		return mime.TypeByExtension(ext)
	}
}

// loadViews parses every page with the layout around it.
func loadViews(a assets) (map[string]*template.Template, error) {
	funcs := template.FuncMap{"asset": a.url, "lower": strings.ToLower, "utc": utc, "clock": clock, "iso": iso, "ms": ms}
	views := map[string]*template.Template{}
	for _, name := range []string{"list", "order", "new", "cancel", "message"} {
		t, err := template.New(name).Funcs(funcs).ParseFS(files, "templates/layout.html", "templates/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("order page: template %s: %w", name, err)
		}
		views[name] = t
	}
	return views, nil
}

func utc(t time.Time) string   { return t.UTC().Format(time.DateTime) }
func clock(t time.Time) string { return t.UTC().Format("15:04:05.000") }
func iso(t time.Time) string   { return t.UTC().Format(time.RFC3339Nano) }

// ms is a duration in milliseconds, with one digit behind the point below 10.
func ms(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%d.%d ms", d.Microseconds()/1000, d.Microseconds()%1000/100)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}
