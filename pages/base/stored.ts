/** An object that the browser keeps; null where it keeps none, or something else that anybody has put there. */
export function readStored<Kept extends object>(storage: () => Storage, name: string): Kept | null {
  try {
    // A browser that keeps nothing throws at the mere word.
    const found: unknown = JSON.parse(storage().getItem(name) ?? 'null');
    return found !== null && typeof found === 'object' ? (found as Kept) : null;
  } catch {
    return null;
  }
}

/** Keeps an object in the browser, for a reload, or forgets it; a browser that keeps nothing goes on without. */
export function writeStored(storage: () => Storage, name: string, value: object | null): void {
  try {
    if (value === null) storage().removeItem(name);
    else storage().setItem(name, JSON.stringify(value));
  } catch {
    // The page asks for the value again.
  }
}
