// Adds and removes the sections of functions in the project's configuration.
import { isDeepStrictEqual } from 'node:util';
import { applyEdits, modify } from 'jsonc-parser';
import { parseConfig } from '../../local/platform/functions/project-config.ts';
import { CommandError } from '../command-error.ts';

interface FunctionSection {
  verify_jwt?: unknown;
}

/**
 * The text of a configuration with a section for each of these functions, in which nobody's token is asked for; comments and all
 * else stay. Throws where the text cannot be read, with line and column, or a section says otherwise.
 */
export function withFunctionSections(file: string, text: string, names: string[]): string {
  const [mark, json] = splitMark(text);
  const functions = sectionsOf(file, json);
  const lacking = names.filter((name) => {
    const section = functions[name];
    if (section && section.verify_jwt !== false) {
      throw new CommandError(
        `${file} has a section for function ${name} that says verify_jwt = ${JSON.stringify(section.verify_jwt ?? true)}: ` +
          'set it to false, since the function checks its callers itself.',
      );
    }
    return !section;
  });
  if (lacking.length === 0) return text;
  const changed = file.endsWith('.toml')
    ? withTomlSections(text, lacking)
    : mark + lacking.reduce(addJsonSection, json);
  const wanted = { ...functions, ...Object.fromEntries(lacking.map((name) => [name, { verify_jwt: false }])) };
  if (holds(file, text, changed, wanted)) return changed;
  throw new CommandError(
    `${file} is written in a way that this command cannot add to: write ${lacking.map((name) => `functions.${name}`).join(', ')} ` +
      'with verify_jwt = false there, then run this again.',
  );
}

/** The text without the sections of functions, and the names of those that say something else than withFunctionSections() writes. */
export interface Removal {
  text: string;
  kept: string[];
}

/** Takes out the sections of these functions that say what withFunctionSections() writes; any other is kept. */
export function withoutFunctionSections(file: string, text: string, names: string[]): Removal {
  const functions = sectionsOf(file, splitMark(text)[1]);
  const there = names.filter((name) => functions[name]);
  const ours = there.filter((name) => isDeepStrictEqual({ ...functions[name] }, { verify_jwt: false }));
  const changed = ours.reduce(file.endsWith('.toml') ? withoutTomlSection : withoutJsonSection, text);
  const wanted = Object.fromEntries(Object.entries(functions).filter(([name]) => !ours.includes(name)));
  if (!holds(file, text, changed, wanted)) return { text, kept: there };
  return { text: changed, kept: there.filter((name) => !ours.includes(name)) };
}

/** Whether a configuration that was changed can be read, and says the same as before but for these sections of functions. */
function holds(file: string, before: string, after: string, functions: Sections): boolean {
  const said = (config: object) => JSON.parse(JSON.stringify(config));
  try {
    const [old, now] = [before, after].map((text) => parseConfig(file, splitMark(text)[1])) as [Config, Config];
    return isDeepStrictEqual(said({ ...now, functions: now.functions ?? {} }), said({ ...old, functions }));
  } catch {
    return false;
  }
}

function withTomlSections(text: string, names: string[]): string {
  const added = names.map((name) => `[functions.${name}]\nverify_jwt = false\n`);
  const whole = `${text.trimEnd()}\n\n${added.join('\n')}`;
  return text.includes('\r\n') ? whole.replaceAll(/\r?\n/g, '\r\n') : whole;
}

function withoutTomlSection(text: string, name: string): string {
  return text.replace(new RegExp(`(?:^|\\r?\\n)\\[functions\\.${name}\\]\\r?\\nverify_jwt = false(?:\\r?\\n|$)`), '');
}

function withoutJsonSection(text: string, name: string): string {
  const [mark, json] = splitMark(text);
  return mark + applyEdits(json, modify(json, ['functions', name], undefined, formattingOf(json)));
}

/** Returns the byte order mark that an editor of Windows may have put before a text, and the text, since JSON knows none. */
const splitMark = (text: string) =>
  (text.startsWith('\ufeff') ? ['\ufeff', text.slice(1)] : ['', text]) as [string, string];

/** As the text is indented. */
const formattingOf = (text: string) => ({
  formattingOptions: { insertSpaces: !/^\t/m.test(text), tabSize: (/^ +(?=\S)/m.exec(text)?.[0] ?? '  ').length },
});

function addJsonSection(text: string, name: string): string {
  return applyEdits(text, modify(text, ['functions', name], { verify_jwt: false }, formattingOf(text)));
}

type Sections = Record<string, FunctionSection | undefined>;

interface Config {
  functions?: Sections;
}

const sectionsOf = (file: string, text: string): Sections => parseConfig(file, text).functions ?? {};
