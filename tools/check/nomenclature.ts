// Words that docs/nomenclature.md has replaced, and where they still stand.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

/** Folders whose words are checked: the project itself. Examples may use any word. */
const folders =
  /^(engine|cli|docs|operators|packages|pages|tools|local\/platform|supabase\/functions\/_millrace|tests\/(engine|runtime|faults|support))\/|^[A-Z]+\.md$/;
const glossary = 'docs/nomenclature.md';
/** Names join words by underscores, which are no letters here, or by capitals, which are parted from the word before. */
const gone =
  /(?<![a-z0-9])(rings?|rung|ringers?|ringing|folds?|folded|lanes?|laned|loners?|passages?|doors?|deeds?|tellers?|heed(?:s|ed|ing)?|nudge[ds]?)(?![a-z0-9])/i;
const goneNames =
  /\b(take_rings|hold_alike|take_in|take_over|take_places|begin_beside|go_on|go_on_without|counted_by_parent|switched_line|told_at|under_since|step_?[mM]oves|millrace\.operations|millrace\.(judge|settle|rings|lanes|gates|tallies)|millrace\.(judge|told)_\w+|millrace\.(drawn|let_go)|pipeline\.(attempts|runs|log)|millrace_(ring|fold))\b/;

/** Looks for the words that are gone in the files of the project at `root` that git knows. Resolves to a line for each. */
export function nomenclatureFaults(root: string): string[] {
  const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' }).split('\n');
  return files
    .filter((file) => folders.test(file) && /\.(sql|plpgsql|tsx?|md)$/.test(file) && file !== glossary && !isThis(file))
    .filter((file) => fs.existsSync(path.join(root, file)))
    .flatMap((file) => wordsIn(file, fs.readFileSync(path.join(root, file), 'utf8')));
}

/** Returns the words that are gone in a text, each as `file:line: word: see …`. */
export function wordsIn(file: string, text: string): string[] {
  return text.split('\n').flatMap((line, at) => {
    const word = gone.exec(line.replace(/([a-z0-9])([A-Z])/g, '$1_$2'))?.[0] ?? goneNames.exec(line)?.[0];
    return word ? [`${file}:${at + 1}: "${word}": ${glossary} has the word to use`] : [];
  });
}

function isThis(file: string): boolean {
  return /^(?:tools\/check\/|tests\/cli\/)nomenclature/.test(file);
}
