// Keeps the figures fresh; without it the page is the same and stands still.
(() => {
  "use strict";
  const stale = document.getElementById("stale");
  async function refresh() {
    if (document.hidden || !getSelection().isCollapsed) return;
    try {
      const reply = await fetch(location.href, { cache: "no-store" });
      if (!reply.ok) throw new Error(reply.statusText);
      const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const next = fresh.getElementById(part.id);
        if (!next || next.innerHTML === part.innerHTML) continue;
        for (const open of part.querySelectorAll("details[open]")) {
          const same = next.querySelector("#" + CSS.escape(open.id));
          if (same) same.open = true;
        }
        const focused = part.contains(document.activeElement) && document.activeElement.closest("details");
        part.replaceWith(document.adoptNode(next));
        if (focused) document.getElementById(focused.id)?.querySelector("summary")?.focus({ preventScroll: true });
      }
      stale.hidden = true;
    } catch {
      stale.hidden = false;
    }
  }
  setInterval(refresh, 5000);
})();
