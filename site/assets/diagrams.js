// Draws the diagrams of a page with the Mermaid that the site has itself. If this fails, the text of the diagram stays.
// A button shows a diagram in its own size on all of the screen, where fingers can scroll and zoom it.
const { default: mermaid } = await import('./mermaid/mermaid.esm.min.mjs');
const dark = matchMedia('(prefers-color-scheme: dark)');
const diagrams = [...document.querySelectorAll('.diagram')].map((element) => ({ element, text: element.textContent }));

// The dialog in which a diagram is enlarged.
const dialog = document.createElement('dialog');
const large = document.createElement('div');
dialog.append(button('Close', () => dialog.close()), large);
document.body.append(dialog);

function button(text, click) {
  const element = document.createElement('button');
  element.type = 'button';
  element.className = 'enlarge';
  element.textContent = text;
  element.addEventListener('click', click);
  return element;
}

function enlarge(picture) {
  const copy = picture.cloneNode(true);
  const { width, height } = picture.viewBox.baseVal;
  // As large as the screen at least, and its text as large as that of the page.
  const scale = Math.max(1, Math.min(innerWidth / width, innerHeight / height));
  copy.style.cssText = `width: ${scale * width}px; height: ${scale * height}px`;
  large.replaceChildren(copy);
  dialog.showModal();
  // Most diagrams begin in the middle.
  large.scrollLeft = (large.scrollWidth - large.clientWidth) / 2;
}

async function draw() {
  mermaid.initialize({
    startOnLoad: false,
    layout: 'dagre', // The default of Mermaid 12 is elk, which has 1.6 MB more.
    securityLevel: 'strict',
    theme: dark.matches ? 'dark' : 'neutral',
    fontFamily: getComputedStyle(document.body).fontFamily,
  });
  for (const [i, { element, text }] of diagrams.entries()) {
    try {
      const { svg } = await mermaid.render(`diagram-${i}`, text);
      element.innerHTML = svg;
      const picture = element.querySelector('svg');
      // Smaller, the text of a wide diagram cannot be read: the page lets it scroll instead.
      picture.style.minWidth = `${0.62 * picture.viewBox.baseVal.width}px`;
      element.append(button('Enlarge', () => enlarge(picture)));
    } catch (error) {
      console.error(error);
    }
  }
}

await draw();
dark.addEventListener('change', draw);
