// What a person with weak eyes, a keyboard, a screen reader or a phone meets on the open page.
// Each function returns the faults as texts.
(() => {
  const HIDDEN = ['SCRIPT', 'STYLE', 'NOSCRIPT', 'TITLE'];

  const colourOf = text => {
    const found = /(?:rgba?|color)\((?:srgb )?([^)]+)\)/.exec(text);
    if (!found) return null;
    const parts = found[1].split(/[ ,/]+/).map(Number);
    const scale = text.startsWith('color') ? 255 : 1;
    return [...parts.slice(0, 3).map(part => part * scale), parts[3] ?? 1];
  };
  const over = (top, under) => {
    const alpha = top[3] + under[3] * (1 - top[3]);
    if (!alpha) return [0, 0, 0, 0];
    const mixed = [0, 1, 2].map(i => (top[i] * top[3] + under[i] * under[3] * (1 - top[3])) / alpha);
    return [...mixed, alpha];
  };
  const inside = (box, frame) => {
    const [x, y] = [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    return x >= frame.left && x <= frame.right && y >= frame.top && y <= frame.bottom;
  };
  // The colour of a pixel in `box` of `element` whose own paint is `colour`: the grounds that lie
  // behind it (not that of a slider's thumb, above which its value stands) and opacities to the root.
  const pixel = (element, colour, box) => {
    for (let e = element; e; e = e.parentElement) {
      const style = getComputedStyle(e);
      const behind = style.overflow !== 'visible' || !e.parentElement
        || inside(box, e.getBoundingClientRect());
      if (behind && !(e instanceof SVGElement)) {
        colour = over(colour, colourOf(style.backgroundColor) ?? [0, 0, 0, 0]);
      }
      colour = [...colour.slice(0, 3), colour[3] * Number(style.opacity)];
    }
    return over(colour, [255, 255, 255, 1]);
  };
  const luminance = colour => {
    const [r, g, b] = colour.slice(0, 3).map(part => part / 255)
      .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ratio = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };

  const folded = element => element.closest('[data-testid="stSidebar"]')
    ?.getBoundingClientRect().right <= 1 || element.closest('[aria-hidden="true"], [inert],' +
    '[class*="st-key-spoken"], [data-testid="stSkipToContent"], [data-testid="stIconMaterial"],' + '[class*="rc-overflow-item-rest"]');
  const texts = () => {
    const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, element = node.parentElement;
      if (!node.textContent.trim() || !element || HIDDEN.includes(element.tagName)) continue;
      if (!element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true})) continue;
      if (folded(element)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      // A range around turned letters of a chart is not turned.
      const box = (element instanceof SVGElement ? element : range).getBoundingClientRect();
      if (box.width >= 2 && box.height >= 2) found.push({node, element, box});
    }
    return found;
  };
  const said = ({node, element}) =>
    `${node.textContent.trim().slice(0, 50)} (${element.closest('[class*="st-key-"]')?.className
      .match(/st-key-\S+/)?.[0] ?? element.closest('[data-testid]')?.dataset.testid})`;
  const unique = faults => [...new Set(faults)];

  const pale = () => unique(texts().map(text => {
    const style = getComputedStyle(text.element), drawn = text.element instanceof SVGElement;
    const paint = colourOf(drawn ? style.fill : style.color);
    if (!paint) return '';
    if (drawn) paint[3] *= Number(style.fillOpacity);
    const found = ratio(pixel(text.element, paint, text.box),
      pixel(text.element, [0, 0, 0, 0], text.box));
    return found < 4.5 ? `${found.toFixed(2)}: ${said(text)}` : '';
  }).filter(Boolean));

  const oddSizes = () => unique(texts().map(text => {
    const size = getComputedStyle(text.element).fontSize;
    return ['12px', '14px', '16px', '20px'].includes(size) ? '' : `${size}: ${said(text)}`;
  }).filter(Boolean));

  // Texts outside a box that hides what overflows it, or outside the window.  The box of letters is
  // up to 3 px higher than they are, and that of a chart's turned letters as much wider.
  const cut = () => unique(texts().filter(({element, box}) => {
    let [left, right, top, bottom] = [box.left, box.right, box.top, box.bottom];
    let free = false;  // within an absolute box, what is not its holder cuts nothing off
    for (let e = element; e && e !== document.body; e = e.parentElement) {
      if (e instanceof SVGElement && e.tagName !== 'svg') continue;
      const style = getComputedStyle(e);
      if (free && style.position === 'static') continue;
      free = style.position === 'absolute';
      const frame = e.getBoundingClientRect();
      const hides = value => value === 'hidden' || value === 'clip';
      const turned = element.closest('[transform*="rotate"]') ? 3 : 2;
      if (hides(style.overflowX) && (left < frame.left - turned || right > frame.right + turned)) return true;
      if (hides(style.overflowY) && (top < frame.top - 3 || bottom > frame.bottom + 3)) return true;
      if (/auto|scroll/.test(style.overflowX)) [left, right] = [frame.left, frame.left];
      if (/auto|scroll/.test(style.overflowY)) [top, bottom] = [frame.top, frame.top];
    }
    return left < -2 || right > innerWidth + 2;
  }).map(said));

  const wide = () => {
    const width = document.scrollingElement.scrollWidth;
    return width > innerWidth ? [`the page is ${width} px wide`] : [];
  };

  // Words of a table's cells that stand on two lines.
  const broken = () => unique(texts().filter(({element}) => element.closest('td, th')).flatMap(
    text => [...text.node.textContent.matchAll(/[^\s\-–\/]+/g)].filter(word => {
      const range = document.createRange();
      range.setStart(text.node, word.index);
      range.setEnd(text.node, word.index + word[0].length);
      return new Set([...range.getClientRects()].map(rect => Math.round(rect.top))).size > 1;
    }).map(word => `${word[0]} in ${said(text)}`)));

  const nameless = () => unique([
    ...[...document.querySelectorAll('button')].filter(button => button.checkVisibility()
      && !(button.getAttribute('aria-label') || button.textContent.trim() || button.title)),
    ...[...document.querySelectorAll('[data-testid="stVegaLiteChart"], [data-testid="stImage"] img')]
      .filter(e => !(e.getAttribute('aria-label') || e.getAttribute('alt')
        || e.querySelector('[aria-label]') || e.closest('[aria-label]'))),
  ].map(element => element.outerHTML.slice(0, 120)));

  const ticks = () => [...document.querySelectorAll('svg.marks g[aria-roledescription="axis"]')]
    .filter(axis => /linear|log|time scale/.test(axis.getAttribute('aria-label')))
    .map(axis => axis.querySelectorAll('.role-axis-label text').length)
    .filter(count => count > 8).map(count => `an axis with ${count} ticks`);

  const titles = () => {
    const count = document.querySelectorAll('h1').length;
    return count === 1 ? [] : [`${count} titles`];
  };

  window.audit = {pale, odd_sizes: oddSizes, cut, wide, broken, nameless, ticks, titles};
})();
