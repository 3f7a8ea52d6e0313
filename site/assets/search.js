// Searches the sections of all pages, in the browser. The index is a script and no JSON, so that it also loads where a page is
// opened as a file. It is loaded when a reader first uses the search.
(() => {
  const form = document.querySelector('.search');
  const input = form.querySelector('input');
  const list = form.querySelector('ol');
  const status = form.querySelector('p');
  // The home page is at the root of the site, which may be below any path of any host.
  const root = new URL('.', document.querySelector('.brand').href);
  const most = 12;
  let index, failed, selected = -1;

  // What is searched of a heading: readers type "class not found" for ClassNotFound.
  const words = (text) => `${text} ${text.replace(/([a-z0-9])([A-Z])/g, '$1 $2')}`;

  function load() {
    if (index) return index;
    index = new Promise((resolve, reject) => {
      const script = document.createElement('script');
      script.src = new URL(form.dataset.index, root);
      script.onerror = () => reject(new Error('the index cannot be loaded'));
      script.onload = () => {
        const search = new MiniSearch({
          fields: ['words', 'title', 'text'],
          storeFields: ['url', 'heading', 'title', 'text'],
          extractField: (section, field) => (field === 'words' ? words(section.heading) : section[field]),
          searchOptions: {
            boost: { words: 6, title: 3 },
            // Types and changes have the words of the pages that explain them.
            boostDocument: (id, term, { url }) => (/^(reference\/api|changelog)\.html/.test(url) ? 0.3 : 1),
            prefix: true,
            fuzzy: (term) => (term.length > 4 ? 0.2 : false),
            combineWith: 'AND',
          },
        });
        search.addAll(window.searchIndex.map((section, id) => ({ id, ...section })));
        resolve(search);
      };
      document.head.append(script);
    });
    index.catch((error) => { failed = error; });
    return index;
  }

  // Escapes what stands in a regular expression.
  const literal = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

  // Appends text to an element. The terms that were found are marked.
  function append(element, text, terms) {
    if (terms.length === 0) { element.append(text); return; }
    for (const part of text.split(new RegExp(`(${terms.map(literal).join('|')})`, 'gi'))) {
      if (terms.includes(part.toLowerCase())) {
        const mark = document.createElement('mark');
        mark.textContent = part;
        element.append(mark);
      } else {
        element.append(part);
      }
    }
  }

  // The part of a text around the first term.
  function excerpt(text, terms) {
    const at = Math.max(0, Math.min(...terms.map((term) => text.toLowerCase().indexOf(term)).filter((i) => i >= 0), text.length));
    const from = at === text.length ? 0 : Math.max(0, text.lastIndexOf(' ', Math.max(0, at - 40)));
    const to = from + 150 < text.length ? text.lastIndexOf(' ', from + 150) : text.length;
    return `${from > 0 ? '… ' : ''}${text.slice(from, to > from ? to : from + 150).trim()}${to < text.length ? ' …' : ''}`;
  }

  function item(result, i) {
    const entry = document.createElement('li');
    entry.id = `result-${i}`;
    entry.setAttribute('role', 'option');
    const link = document.createElement('a');
    link.href = new URL(result.url, root);
    link.tabIndex = -1;
    const heading = document.createElement('strong');
    append(heading, result.heading, result.terms);
    const page = document.createElement('span');
    page.textContent = result.title;
    const text = document.createElement('small');
    append(text, excerpt(result.text, result.terms), result.terms);
    link.append(heading, page, text);
    entry.append(link);
    return entry;
  }

  function select(i) {
    selected = i;
    [...list.children].forEach((entry, at) => entry.setAttribute('aria-selected', at === i));
    if (i < 0) { input.removeAttribute('aria-activedescendant'); return; }
    input.setAttribute('aria-activedescendant', list.children[i].id);
    list.children[i].scrollIntoView({ block: 'nearest' });
  }

  function close() {
    form.classList.remove('open');
    input.setAttribute('aria-expanded', 'false');
  }

  async function show() {
    const query = input.value.trim();
    if (query.length < 2) { close(); return; }
    let found = [];
    try {
      const search = await load();
      if (input.value.trim() !== query) return;
      found = search.search(query);
      // A query with a word that no section has is one with any of its words.
      if (found.length === 0) found = search.search(query, { combineWith: 'OR' });
    } catch { /* The reader is told below. */ }
    list.replaceChildren(...found.slice(0, most).map(item));
    status.textContent = failed ? 'The search does not work here: its index cannot be loaded.'
      : found.length === 0 ? `Nothing was found for “${query}”.`
      : found.length > most ? `The best ${most} of ${found.length} results` : `${found.length} result${found.length === 1 ? '' : 's'}`;
    form.classList.add('open');
    input.setAttribute('aria-expanded', 'true');
    select(found.length > 0 ? 0 : -1);
  }

  form.hidden = false;
  input.addEventListener('focus', () => { load(); show(); });
  input.addEventListener('input', show);
  input.addEventListener('keydown', (event) => {
    const last = list.children.length - 1;
    if (event.key === 'Escape') { close(); input.blur(); return; }
    if (!form.classList.contains('open') || last < 0) return;
    if (event.key === 'ArrowDown') select(selected === last ? 0 : selected + 1);
    else if (event.key === 'ArrowUp') select(selected <= 0 ? last : selected - 1);
    else return;
    event.preventDefault();
  });
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    await show();
    const entry = list.children[Math.max(0, selected)];
    if (entry) { close(); input.blur(); location.assign(entry.querySelector('a').href); }
  });
  list.addEventListener('click', (event) => { if (event.target.closest('a')) { close(); input.blur(); } });
  document.addEventListener('click', (event) => { if (!form.contains(event.target)) close(); });
  document.addEventListener('keydown', (event) => {
    const typing = event.target.closest('input, textarea, select, [contenteditable]');
    if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
})();
