// Vault's stand-in is an extension like the real one, so that Postgres itself checks the statement that creates it.
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

/** The files of the extension, by the names that Postgres looks for. */
const files = {
  'supabase_vault.control': path.join(import.meta.dirname, 'supabase_vault.control'),
  'supabase_vault--0.3.1.sql': path.join(import.meta.dirname, 'vault.sql'),
};

export const vaultFiles = Object.values(files);

/** Makes the extension supabase_vault available to the Postgres in `folder`. */
export function installVault(folder: string): void {
  for (const [name, source] of Object.entries(files)) {
    const target = path.join(folder, 'share', 'postgresql', 'extension', name);
    const text = fs.readFileSync(source, 'utf8');
    if (fs.existsSync(target) && fs.readFileSync(target, 'utf8') === text) continue;
    // Written aside and renamed, so that a server which starts meanwhile reads none or a whole one.
    const draft = `${target}.${randomUUID()}`;
    fs.writeFileSync(draft, text, { mode: 0o644 });
    fs.renameSync(draft, target);
  }
}
