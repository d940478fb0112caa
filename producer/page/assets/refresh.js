// Shows the live part of the page as it is now, every two seconds. Without this script the page reloads itself.
"use strict";
(() => {
  const period = 2000;
  const live = document.getElementById("live");
  const stale = document.getElementById("stale");
  if (!live) return;

  const heading = () => live.querySelector("h1")?.innerText ?? "";

  async function refresh() {
    try {
      const reply = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) });
      if (!reply.ok) throw new Error("status " + reply.status);
      const page = new DOMParser().parseFromString(await reply.text(), "text/html");
      const next = page.getElementById("live");
      if (!next) throw new Error("another page");
      stale.hidden = true;
      // Most of the time nothing has changed; then focus and selection stay as they are.
      if (next.innerHTML === live.innerHTML) return;
      const focused = live.contains(document.activeElement) ? document.activeElement.id : "";
      const before = heading();
      live.replaceChildren(...next.childNodes);
      // Said by screen readers: the new status, not the whole page again.
      if (heading() !== before) document.getElementById("news").textContent = heading();
      if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    } catch {
      stale.hidden = false;
    }
  }

  async function loop() {
    if (!document.hidden) await refresh();
    setTimeout(loop, period);
  }
  setTimeout(loop, period);
})();
