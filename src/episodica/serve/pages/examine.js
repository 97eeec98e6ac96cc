// What a file is, by its first bytes, before it is sent: names are no evidence. And whether two are the same.

import { t } from './strings.js';

const text = (bytes, from, to) => String.fromCharCode(...bytes.slice(from, to));

function kindOf(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xd8) return 'jpeg';
  if (text(bytes, 1, 4) === 'PNG') return 'png';
  if (text(bytes, 0, 4) === 'GIF8') return 'gif';
  if (text(bytes, 0, 4) === 'RIFF' && text(bytes, 8, 12) === 'WEBP') return 'webp';
  if (text(bytes, 0, 2) === 'BM') return 'bmp';
  if (['II*\0', 'MM\0*', 'II+\0', 'MM\0+'].includes(text(bytes, 0, 4))) return 'tiff';
  if (text(bytes, 4, 8) === 'ftyp') return 'heif';
  return null;
}

const SHOWN_BY_BROWSERS = new Set(['jpeg', 'png', 'gif', 'webp', 'bmp']);

// Two numbers of 32 bits that differ where bytes do, but by accident: enough to notice a picture that came twice.
function mark(bytes) {
  let a = 0x811c9dc5;
  let b = 0x01000193;
  for (let i = 0; i < bytes.length; i += 1) {
    a = Math.imul(a ^ bytes[i], 0x01000193);
    b = Math.imul(b + bytes[i], 0x85ebca6b) ^ (b >>> 13);
  }
  return `${bytes.length}-${a >>> 0}-${b >>> 0}`;
}

async function decodes(url) {
  const picture = new Image();
  picture.src = url;
  try {
    await picture.decode();
    return true;
  } catch {
    return false;
  }
}

// { mark, shown, problem }: whether the browser can show it, and why it is no picture, if it is none.
export async function examine(file, url, limits) {
  if (file.size > limits.image_bytes) return { problem: t('badLarge', limits.image_bytes) };
  let bytes;
  try {
    bytes = new Uint8Array(await file.arrayBuffer());
  } catch {
    return { problem: t('badUnreadable') };
  }
  const kind = kindOf(bytes);
  if (!kind) return { problem: t(file.size ? 'badKind' : 'badEmpty') };
  const shown = SHOWN_BY_BROWSERS.has(kind) ? await decodes(url) : kind === 'heif' && (await decodes(url));
  if (!shown && SHOWN_BY_BROWSERS.has(kind)) return { problem: t('badDamaged') };
  return { mark: mark(bytes), shown, problem: null };
}
