//go:build browser

package browser

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// patience is how long a wait goes on before the test is failed as hung.
const patience = 90 * time.Second

// tab is one tab of a Chromium of its own.
type tab struct {
	t    *testing.T
	ctx  context.Context
	base string

	mu       sync.Mutex
	faults   []string
	expected map[int64]bool // statuses that the test brings about: Chromium logs them as errors
}

func openTab(t *testing.T, base string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, base: base, expected: map[int64]bool{}}
	require.NoError(t, chromedp.Listen(ctx, b.watch), "start Chromium")
	command(b, log.Enable, cdp.Empty{})
	command(b, network.Enable, network.EnableParams{})
	command(b, cdpruntime.Enable, cdp.Empty{})
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Empty(t, b.faults, "what the browser complained about")
	})
	return b
}

// command sends one command of the protocol.
func command[P, R any](b *tab, cmd cdp.Command[P, R], params P) {
	b.t.Helper()
	_, err := chromedp.Call(b.within(), cmd, params)
	require.NoError(b.t, err)
}

// run does one action, or fails the test as hung.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.within(), action)
	require.NoError(b.t, err)
	return v
}

// watch collects what must not happen.
func (b *tab) watch(event any) {
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.fault("log: %s %s", e.Entry.Text, e.Entry.URL)
		}
	case *cdpruntime.EventConsoleAPICalled:
		b.fault("console.%s", e.Type)
	case *cdpruntime.EventExceptionThrown:
		b.fault("exception: %s", e.ExceptionDetails.Text)
	case *page.EventJavascriptDialogOpening:
		b.fault("dialog: %s", e.Message)
	case *network.EventRequestWillBeSent:
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme+"://"+u.Host != b.base {
			b.fault("a request to elsewhere: %s", e.Request.URL)
		}
	}
}

func (b *tab) fault(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	b.mu.Lock()
	defer b.mu.Unlock()
	for status := range b.expected {
		if strings.Contains(text, fmt.Sprintf("status of %d", status)) {
			return
		}
	}
	b.faults = append(b.faults, text)
}

// expect lets a document be answered with an error: Chromium logs it.
func (b *tab) expect(status int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected[status] = true
}

func (b *tab) open(path string) { b.t.Helper(); run(b, chromedp.Navigate(b.base+path)) }

func (b *tab) url() string { b.t.Helper(); return run(b, chromedp.Location()) }

// click follows a link or sends a form, and waits until the next page is there. It is done in one go: the element may be another one
// a moment later, where the page refreshes itself.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.querySelector(%q) !== null", selector), selector+" is there")
	_, err := chromedp.RunResponse(b.within(), chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector(%q).click()", selector)))
	require.NoError(b.t, err, selector)
}

func (b *tab) within() context.Context {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	b.t.Cleanup(cancel)
	return ctx
}

func (b *tab) fill(selector, text string) {
	b.t.Helper()
	run(b, chromedp.Evaluate[string](fmt.Sprintf("document.querySelector(%q).value = \"\"", selector)))
	run(b, chromedp.SendKeys(chromedp.CSS(selector), text))
}

func (b *tab) value(selector string) string {
	b.t.Helper()
	return run(b, chromedp.Value(chromedp.CSS(selector)))
}

// sees waits until an element that the selector chooses shows the text.
func (b *tab) sees(selector, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf("[...document.querySelectorAll(%q)].some(e => e.innerText.includes(%q))", selector, text), selector+" shows "+text)
}

// misses waits until no element is chosen.
func (b *tab) misses(selector string) {
	b.t.Helper()
	b.until(fmt.Sprintf("document.querySelector(%q) === null", selector), selector+" is gone")
}

// until polls by the protocol, so that it works where scripts are off and across loads of the page.
func (b *tab) until(expression, what string) {
	b.t.Helper()
	ctx := b.within()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		// A page that is being loaded has no context to ask.
		if holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](expression)); err == nil && holds {
			return
		}
		select {
		case <-ctx.Done():
			text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
			b.t.Fatalf("not so: %s, within %s; the page shows:\n%s", what, patience, text)
		case <-tick.C:
		}
	}
}

func (b *tab) texts(selector string) []string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[[]string](fmt.Sprintf("[...document.querySelectorAll(%q)].map(e => e.innerText.trim())", selector)))
}

// mark leaves something that is gone when the page is loaded again.
func (b *tab) mark() { b.t.Helper(); run(b, chromedp.Evaluate[bool]("window.ebbMark = true")) }

func (b *tab) marked() bool {
	b.t.Helper()
	return run(b, chromedp.Evaluate[bool]("window.ebbMark === true"))
}

func (b *tab) noScripts() {
	b.t.Helper()
	command(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
}

func (b *tab) press(key string) {
	b.t.Helper()
	run(b, chromedp.KeyEvent(map[string]string{"Enter": kb.Enter, "Tab": kb.Tab}[key]))
}

func (b *tab) typeText(text string) { b.t.Helper(); run(b, chromedp.KeyEvent(text)) }

func (b *tab) focused() string {
	b.t.Helper()
	return run(b, chromedp.Evaluate[string]("document.activeElement.id"))
}

// tabTo presses Tab until what has the focus has this text or id, at most once around the page.
func (b *tab) tabTo(want string) {
	b.t.Helper()
	var seen []string
	for range 40 {
		b.press("Tab")
		got := run(b, chromedp.Evaluate[[]string]("[document.activeElement.innerText.trim(), document.activeElement.id]"))
		if got[0] == want || got[1] == want {
			return
		}
		seen = append(seen, got...)
	}
	b.t.Fatalf("Tab does not lead to %q, but to %q", want, seen)
}

// shoot checks that everything on the page can be read, in light, in dark and on a telephone, and takes pictures if they are wanted.
func (b *tab) shoot(name string) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		command(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		require.Empty(b.t, run(b, chromedp.Evaluate[[]string](faintText)), "%s, %s: text with too little contrast", name, scheme)
		b.picture(name + "-" + scheme)
	}
	command(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 390, Height: 844, DeviceScaleFactor: 1, Mobile: true})
	require.True(b.t, run(b, chromedp.Evaluate[bool]("document.documentElement.scrollWidth <= window.innerWidth")), "%s is too wide for a telephone", name)
	b.picture(name + "-narrow")
	command(b, emulation.ClearDeviceMetricsOverride, cdp.Empty{})
}

func (b *tab) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("EBB_SCREENSHOTS")
	if dir == "" {
		return
	}
	picture := run(b, chromedp.FullScreenshot(100))
	require.NoError(b.t, os.MkdirAll(dir, 0o755))
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644))
}

// faintText lists texts whose contrast with what is behind them is below 4.5 (WCAG 2 AA).
const faintText = `(() => {
  const rgb = c => c.match(/[\d.]+/g).map(Number);
  const light = c => { const [r, g, b] = c.slice(0, 3).map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const behind = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  return [...document.body.querySelectorAll("*")]
    .filter(e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) && e.checkVisibility() && !e.closest("noscript, datalist"))
    .filter(e => { const a = light(rgb(getComputedStyle(e).color)), b = light(behind(e)); return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 4.5; })
    .map(e => e.tagName + "." + e.className + ": " + e.innerText);
})()`
