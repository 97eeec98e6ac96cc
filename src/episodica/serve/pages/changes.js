// A change of the model in a sentence.

import { t } from './strings.js';

const KINDS = new Set([
  'learn',
  'add',
  'correct',
  'move',
  'remove',
  'rename',
  'merge',
  'forget',
  'undo',
  'import',
  'adapt',
  'remember',
  'replace',
]);

export function changeSentence({ what, classes, into, images, new: fresh }) {
  return KINDS.has(what) ? t(`did_${what}`, classes, into, images, fresh) : what;
}

const HERE = new Set(['127.0.0.1', '::1', 'localhost']);

// A name, or the address of a machine that gave none.
export const whoSaid = (who) => (!who ? t('somebody') : HERE.has(who) ? t('thisComputer') : who);
