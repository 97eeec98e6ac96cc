// A place to drop images: shows them, lets them be taken out again, and shows what was wrong with which.

import { el } from './dom.js';

export function complain(node, text, field) {
  node.textContent = text || '';
  node.hidden = !text;
  if (field) field.setAttribute('aria-invalid', text ? 'true' : 'false');
}

export class Tray {
  constructor(words, { wide = false } = {}) {
    this.items = []; // { file, url, node, below, error }
    this.input = el('input', { type: 'file', multiple: true, accept: 'image/*' });
    this.input.addEventListener('change', () => { this.add(this.input.files); this.input.value = ''; });
    const zone = el('label', { class: 'drop' }, this.input, el('span', {}, words));
    this.list = el('ul', { class: wide ? 'cards' : 'thumbs' });
    this.error = el('p', { class: 'error', role: 'alert', hidden: true });
    this.node = el('div', { class: 'tray' }, zone, this.error, this.list);
    this.node.addEventListener('dragover', (event) => { event.preventDefault(); zone.classList.add('over'); });
    for (const end of ['dragleave', 'drop']) this.node.addEventListener(end, () => zone.classList.remove('over'));
    this.node.addEventListener('drop', (event) => { event.preventDefault(); this.add(event.dataTransfer.files); });
  }

  add(files) {
    complain(this.error, null);
    for (const file of files) {
      const url = URL.createObjectURL(file);
      const item = { file, url, below: el('div', { class: 'below' }), error: el('p', { class: 'error', role: 'alert', hidden: true }) };
      const picture = el('img', { src: url, alt: file.name });
      picture.addEventListener('error', () => picture.replaceWith(el('span', { class: 'no-picture' }, file.name)));
      const out = el('button', { type: 'button', class: 'out', 'aria-label': `Take out ${file.name}`, title: 'Take out' }, '×');
      out.addEventListener('click', () => { this.drop(item); this.focus(); });
      item.node = el('li', { title: file.name }, el('span', { class: 'picture' }, picture, out), item.error, item.below);
      this.items.push(item);
      this.list.append(item.node);
    }
  }

  drop(item) {
    URL.revokeObjectURL(item.url);
    item.node.remove();
    this.items.splice(this.items.indexOf(item), 1);
  }

  clear() { while (this.items.length) this.drop(this.items[0]); this.forgive(); }
  focus() { this.input.focus(); }

  blame(text, index = null) {
    if (index === null || !this.items[index]) { complain(this.error, text); return; }
    this.items[index].below.replaceChildren();
    this.items[index].node.classList.add('wrong');
    complain(this.items[index].error, text);
  }

  forgive() {
    complain(this.error, null);
    for (const { node, error } of this.items) { complain(error, null); node.classList.remove('wrong'); }
  }
}

// A file dropped beside a tray would otherwise replace the page.
for (const kind of ['dragover', 'drop']) window.addEventListener(kind, (event) => event.preventDefault());
