// Pictures that are about to be taught: shown at once; those that are none are named and left out, doubles noticed.

import { el } from './dom.js';
import { examine } from './examine.js';
import { icon } from './icons.js';
import { limits } from './model.js';
import { note } from './messages.js';
import { count, t } from './strings.js';

const SHOWN = 40; // thumbnails; of more there is a number

export class Tray {
  constructor({ onChange = () => {} } = {}) {
    this.items = []; // { file, url, node } of those that are fine
    this.left = []; // { name, why } of those that are not
    this.marks = new Map(); // of the items, to notice doubles
    this.checking = 0;
    this.onChange = onChange;
    this.list = el('ul', { class: 'thumbs' });
    this.more = el('p', { class: 'hint', hidden: true });
    this.problems = el('div', {});
    this.node = el('div', { class: 'tray' }, this.list, this.more, this.problems);
  }

  get files() {
    return this.items.map(({ file }) => file);
  }
  get busy() {
    return this.checking > 0;
  }

  async add(files) {
    this.checking += files.length;
    this.onChange();
    for (const file of files) {
      const url = URL.createObjectURL(file);
      const found = await examine(file, url, limits());
      const double = found.problem ? null : this.marks.get(found.mark);
      if (found.problem || double) {
        URL.revokeObjectURL(url);
        this.left.push({ name: file.name, why: found.problem || t('badDouble', double) });
      } else {
        this.marks.set(found.mark, file.name);
        this.#take({ file, url, mark: found.mark }, found.shown);
      }
      this.checking -= 1;
    }
    this.#tell();
    this.onChange();
  }

  #take(item, shown) {
    const { file, url } = item;
    const picture = shown ? el('img', { src: url, alt: file.name }) : el('span', { class: 'nameplate' }, file.name);
    const out = el(
      'button',
      { type: 'button', class: 'out', 'aria-label': t('takeOut', file.name), onclick: () => this.#drop(item) },
      icon('close'),
    );
    item.node = el('li', { title: file.name }, picture, out);
    this.items.push(item);
    if (this.items.length <= SHOWN) this.list.append(item.node);
  }

  #drop(item) {
    const place = this.items.indexOf(item);
    URL.revokeObjectURL(item.url);
    this.items.splice(place, 1);
    this.marks.delete(item.mark);
    item.node.remove();
    if (this.items.length >= SHOWN) this.list.append(this.items[SHOWN - 1].node);
    (this.items[place] || this.items.at(-1))?.node.querySelector('button')?.focus();
    this.#tell();
    this.onChange();
  }

  #tell() {
    this.more.hidden = this.items.length <= SHOWN;
    this.more.textContent = t('andMore', this.items.length - SHOWN);
    this.problems.replaceChildren(...leftOut(this.left));
  }

  clear() {
    for (const { url } of this.items) URL.revokeObjectURL(url);
    this.items = [];
    this.left = [];
    this.marks.clear();
    this.list.replaceChildren();
    this.#tell();
    this.onChange();
  }
}

// A note that names what was left out and why: the first ones, and how many more.
export function leftOut(left, most = 6) {
  if (!left.length) return [];
  const lines = left.slice(0, most).map(({ name, why }) => el('li', {}, el('b', {}, name), ` ${why}`));
  const rest = left.length > most ? [el('li', {}, t('andMore', count(left.length - most)))] : [];
  return [note('doubt', el('b', {}, t('leftOut', left.length)), el('ul', {}, ...lines, ...rest))];
}
