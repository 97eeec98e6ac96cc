// Who sits before the page: a name that the history shows, kept in this browser.

const KEPT = 'episodica-name';

export const myName = () => localStorage.getItem(KEPT) || '';
export const setMyName = (name) => localStorage.setItem(KEPT, name.trim().slice(0, 80));
