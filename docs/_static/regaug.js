// The report on the first page is light or dark as this page is, not as the system is.
(() => {
  const paint = (frame) => {
    let sheets;
    try {
      sheets = [...frame.contentDocument.styleSheets];
    } catch {
      return; // opened as a file: the report is another origin, and follows the system
    }
    const dark = document.documentElement.dataset.theme === "dark";
    for (const rule of sheets.flatMap((sheet) => [...sheet.cssRules])) {
      if (!rule.media) continue;
      rule.wasDark ??= rule.media.mediaText.includes("prefers-color-scheme: dark");
      if (rule.wasDark) rule.media.mediaText = dark ? "screen" : "not all";
    }
  };
  addEventListener("DOMContentLoaded", () => {
    for (const frame of document.querySelectorAll("iframe.report")) {
      frame.addEventListener("load", () => paint(frame));
      paint(frame);
      const seen = new MutationObserver(() => paint(frame));
      seen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    }
  });
})();
