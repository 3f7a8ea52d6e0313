// Draws the diagrams of a page with the Mermaid that the site has itself. If this fails, the text of the diagram stays.
const { default: mermaid } = await import('./mermaid/mermaid.esm.min.mjs');
const dark = matchMedia('(prefers-color-scheme: dark)');
const diagrams = [...document.querySelectorAll('.diagram')].map((element) => ({ element, text: element.textContent }));

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
      picture.style.minWidth = `${0.7 * picture.viewBox.baseVal.width}px`;
    } catch (error) {
      console.error(error);
    }
  }
}

await draw();
dark.addEventListener('change', draw);
