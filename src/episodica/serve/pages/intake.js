// Where pictures come from: dropped files and folders, the clipboard, the file dialogue. All become { file, folders }.

const PARTS = new Set(['train', 'training', 'val', 'valid', 'validation', 'test', 'testing']); // of one collection
const UNSEEN = /^(\.|__MACOSX$|Thumbs\.db$|desktop\.ini$)/; // what systems leave in folders

export async function fromDrop(transfer) {
  // Entries must be taken before the first wait: afterwards the list of what was dropped is empty.
  const items = [...transfer.items].filter((item) => item.kind === 'file');
  const entries = items.map((item) => item.webkitGetAsEntry?.() || item.getAsFile());
  const found = [];
  for (const entry of entries) await walk(entry, [], found);
  return found;
}

async function walk(entry, folders, found) {
  if (!entry || UNSEEN.test(entry.name)) return;
  if (entry instanceof File) found.push({ file: entry, folders });
  else if (entry.isFile) found.push({ file: await new Promise((done, failed) => entry.file(done, failed)), folders });
  else for (const inside of await childrenOf(entry)) await walk(inside, [...folders, entry.name], found);
}

async function childrenOf(folder) {
  const reader = folder.createReader();
  const all = [];
  while (true) {
    // a reader gives some hundred entries at a time
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!some.length) break;
    all.push(...some);
  }
  return all.sort((a, b) => a.name.localeCompare(b.name, undefined, { numeric: true }));
}

export function fromDialogue(files) {
  return [...files]
    .map((file) => ({ file, folders: (file.webkitRelativePath || '').split('/').slice(0, -1) }))
    .filter(({ file, folders }) => ![file.name, ...folders].some((name) => UNSEEN.test(name)));
}

let pasted = 0;
export function fromPaste(clipboard) {
  return [...clipboard.files].map((file) => {
    const name = /^image\.\w+$/.test(file.name) ? file.name.replace('.', `-${(pasted += 1)}.`) : file.name;
    return { file: new File([file], name, { type: file.type }), folders: [] };
  });
}

// What was brought, by class: a folder is a class, a folder of folders several ones. Pictures without a folder have
// the name ''; `beside` are those that lie next to the folders of classes, and belong to none.
export function byClass(found) {
  let paths = found.map(({ file, folders }) => ({ file, folders }));
  const same = (at) => paths.every(({ folders }) => folders[at] === paths[0].folders[at]);
  if (paths.some(({ folders }) => folders.length > 1) && same(0)) {
    paths = paths.map(({ file, folders }) => ({ file, folders: folders.slice(1) }));
  }
  const inFolders = paths.filter(({ folders }) => folders.length);
  if (inFolders.length && inFolders.every(({ folders }) => folders.length > 1 && PARTS.has(folders[0].toLowerCase()))) {
    paths = paths.map(({ file, folders }) => ({ file, folders: folders.slice(1) }));
  }
  const classes = new Map();
  const beside = [];
  for (const { file, folders } of paths) {
    if (!folders.length && inFolders.length) {
      beside.push(file);
      continue;
    }
    const name = folders[0] || '';
    if (!classes.has(name)) classes.set(name, []);
    classes.get(name).push(file);
  }
  return { classes, beside };
}
