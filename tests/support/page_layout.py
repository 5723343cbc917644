"""What is wrong with the layout of a page in a browser: overflow, clipped text, boxes of text on each other, and contrast."""

from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Page

WIDTHS: Final = (400, 1280)
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")

_MEASURE: Final = """async () => {
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const faults = [], root = document.documentElement, text = (e) => e.textContent.trim().replace(/\\s+/g, ' ').slice(0, 50);
  const name = (e) => `${e.tagName.toLowerCase()}${e.id ? '#' + e.id : ''} "${text(e)}"`;
  if (root.scrollWidth > root.clientWidth) faults.push(`the document is ${root.scrollWidth} wide in ${root.clientWidth}`);

  const seen = (e) => e.checkVisibility({ visibilityProperty: true }) && !e.closest('.skip');
  const elements = [...document.body.querySelectorAll('*')].filter((e) => seen(e) && !e.closest('svg'));
  for (const e of elements) {
    const flow = getComputedStyle(e).overflowX;
    if (flow === 'visible' || e.scrollWidth <= e.clientWidth + 1 || ['INPUT', 'SELECT'].includes(e.tagName)) continue;
    const region = flow === 'auto' && e.tabIndex >= 0 && e.getAttribute('role') === 'region' && (e.getAttribute('aria-label') || e.getAttribute('aria-labelledby'));
    if (!region) faults.push(`clipped (overflow ${flow}): ${name(e)}`);
    const columns = e.querySelector('thead')?.rows[0].cells.length ?? 0;
    if (columns && columns <= 5) faults.push(`a table of ${columns} columns does not fit: ${e.scrollWidth} in ${e.clientWidth}, ${name(e.querySelector('caption') ?? e)}`);
  }

  const once = (compute, known = new Map()) => (key) => {
    if (!known.has(key)) known.set(key, compute(key));
    return known.get(key);
  };
  const boxes = [];
  const frames = once((e) => {
    if (!e || e === document.body) return [];
    const visible = e instanceof SVGElement || getComputedStyle(e).overflowX === 'visible';
    return visible ? frames(e.parentElement) : [e.getBoundingClientRect(), ...frames(e.parentElement)];
  });
  const cut = (box, e) => ({
    left: Math.max(box.left, ...frames(e).map((frame) => frame.left)), right: Math.min(box.right, ...frames(e).map((frame) => frame.right)),
    top: box.top, bottom: box.bottom,
  });
  const put = (rect, e, kind) => {
    const box = cut(rect, e);
    if (box.right - box.left > 2 && box.bottom - box.top > 2) boxes.push({ ...{ left: box.left, right: box.right, top: box.top, bottom: box.bottom }, e, kind });
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!node.data.trim() || !seen(e) || ['SCRIPT', 'STYLE', 'OPTION', 'TITLE', 'NOSCRIPT', 'SUP'].includes(e.tagName)) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rect of range.getClientRects()) put(rect, e, 'text');
  }
  for (const svg of document.querySelectorAll('svg')) {
    if (!seen(svg)) continue;
    const frame = svg.getBoundingClientRect();
    const drawn = [...svg.querySelectorAll('g[id^="text_"]')].filter((g) => g.querySelector('use, path'));
    for (const g of drawn) put(g.getBoundingClientRect(), g, 'text');
    for (const g of [...drawn, ...svg.querySelectorAll('text')]) {
      const box = g.getBoundingClientRect();
      const out = Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom);
      if (box.width && out > 1) faults.push(`drawn outside of its figure by ${out.toFixed(1)}: ${label(g)}`);
    }
    for (const mark of svg.querySelectorAll('g[id^="axes_"] > g[id^="line2d_"] use, g[id^="PathCollection_"] use')) put(mark.getBoundingClientRect(), mark, 'mark');
  }
  function label(e) {
    if (!(e instanceof SVGElement)) return name(e);
    const words = [...e.childNodes].find((node) => node.nodeType === Node.COMMENT_NODE);
    return words ? `drawn "${words.data.trim()}"` : name(e);
  }
  boxes.sort((a, b) => a.top - b.top);
  boxes.forEach((a, i) => {
    for (let j = i + 1; j < boxes.length && boxes[j].top < a.bottom - 2; j += 1) {
      const b = boxes[j];
      if (a.e === b.e || (a.kind === 'mark' && b.kind === 'mark')) continue;
      const across = Math.min(a.right, b.right) - Math.max(a.left, b.left), down = Math.min(a.bottom, b.bottom) - b.top;
      if (across > 2 && down > 2) faults.push(`${a.kind} on ${b.kind} (${across.toFixed(0)} x ${down.toFixed(0)}): ${label(a.e)} / ${label(b.e)}`);
    }
  });

  const paint = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const channels = once((color) => {
    paint.clearRect(0, 0, 1, 1);
    paint.fillStyle = color;
    paint.fillRect(0, 0, 1, 1);
    return [...paint.getImageData(0, 0, 1, 1).data];
  });
  const light = (color) => {
    const [r, g, b] = color.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const behind = once((e) => {
    if (!e) return channels('white');
    const color = channels(getComputedStyle(e).backgroundColor);
    return color[3] === 255 ? color : behind(e.parentElement);
  });
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const weak = new Set();
  for (const { e, kind } of boxes) {
    if (kind !== 'text' || weak.has(e)) continue;
    const svg = e instanceof SVGElement;
    const from = svg ? [...e.querySelectorAll('use, path')].at(-1) ?? e : e;
    const color = channels(getComputedStyle(from)[svg ? 'fill' : 'color']);
    const least = svg ? 3 : 4.5, ratio = contrast(color, behind(e));
    if (ratio < least && !(e.closest(':disabled, .off'))) { weak.add(e); faults.push(`contrast ${ratio.toFixed(2)}: ${label(e)}`); }
  }
  for (const svg of document.querySelectorAll('figure svg, section svg')) {
    if (!seen(svg)) continue;
    const size = svg.getBoundingClientRect();
    const grounds = [...svg.querySelectorAll('path, rect')].filter((e) => {
      const box = e.getBoundingClientRect();
      return !e.closest('defs') && box.width * box.height > 0.2 * size.width * size.height && getComputedStyle(e).fill !== 'none' && getComputedStyle(e).fillOpacity > 0.9;
    }).map((e) => channels(getComputedStyle(e).fill));
    for (const color of [behind(svg), ...grounds]) {
      if (dark === light(color) > 0.3) { faults.push(`a ${dark ? 'light' : 'dark'} ground of a figure: ${svg.getAttribute('aria-label') ?? svg.id}`); break; }
    }
  }
  return [...new Set(faults)];
}"""


def layout_faults(tab: Page, file: Path) -> list[str]:
    """Faults of a page at a narrow and a wide window, light and dark, each with the window where it is."""
    tab.goto(file.as_uri())
    faults = []
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 900})
        for scheme in SCHEMES:
            tab.emulate_media(color_scheme=scheme)
            faults += [f"{width} {scheme}: {fault}" for fault in tab.evaluate(_MEASURE)]
    return faults
