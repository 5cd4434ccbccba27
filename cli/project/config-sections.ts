// What the project's configuration says of functions.
import { applyEdits, modify, type ParseError, parse as parseJson, printParseErrorCode } from 'jsonc-parser';
import { parse as parseToml, TomlError } from 'smol-toml';
import { CommandError } from './command-error.ts';

interface FunctionSection {
  verify_jwt?: unknown;
}

/**
 * The text of a configuration with a section for each of these functions, in which nobody's token is asked for; comments and all
 * else stay. Throws a CommandError where the text cannot be read, with line and column, or a section says otherwise.
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
  if (!file.endsWith('.toml')) return mark + lacking.reduce(addJsonSection, json);
  const added = lacking.map((name) => `[functions.${name}]\nverify_jwt = false\n`);
  if (added.length === 0) return text;
  const whole = `${text.trimEnd()}\n\n${added.join('\n')}`;
  return text.includes('\r\n') ? whole.replaceAll(/\r?\n/g, '\r\n') : whole;
}

/** The same without the sections of these functions, where they say nothing else than what withFunctionSections() writes. */
export function withoutFunctionSections(file: string, text: string, names: string[]): string {
  if (!file.endsWith('.toml')) {
    const [mark, json] = splitMark(text);
    return (
      mark +
      names.reduce((left, name) => applyEdits(left, modify(left, ['functions', name], undefined, formatting)), json)
    );
  }
  const section = (name: string) => new RegExp(`\\r?\\n\\[functions\\.${name}\\]\\r?\\nverify_jwt = false\\r?\\n`);
  return names.reduce((toml, name) => toml.replace(section(name), ''), text);
}

/** The byte order mark that an editor of Windows may have put before a text, and the text, since JSON knows none. */
const splitMark = (text: string) =>
  (text.startsWith('\ufeff') ? ['\ufeff', text.slice(1)] : ['', text]) as [string, string];

const formatting = { formattingOptions: { insertSpaces: true, tabSize: 2 } };

function addJsonSection(text: string, name: string): string {
  return applyEdits(text, modify(text, ['functions', name], { verify_jwt: false }, formatting));
}

function sectionsOf(file: string, text: string): Record<string, FunctionSection | undefined> {
  const config = file.endsWith('.toml') ? readToml(file, text) : readJson(file, text);
  return (config.functions ?? {}) as Record<string, FunctionSection | undefined>;
}

function readToml(file: string, text: string): Record<string, unknown> {
  try {
    return parseToml(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw new CommandError(`${file} is no TOML at line ${error.line}, column ${error.column}: correct it.`);
  }
}

function readJson(file: string, text: string): Record<string, unknown> {
  const errors: ParseError[] = [];
  const config = parseJson(text, errors, { allowTrailingComma: true });
  const [first] = errors;
  if (first) {
    const before = text.slice(0, first.offset).split('\n');
    const at = `line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}`;
    throw new CommandError(`${file} is no JSON at ${at} (${printParseErrorCode(first.error)}): correct it.`);
  }
  return (config ?? {}) as Record<string, unknown>;
}
