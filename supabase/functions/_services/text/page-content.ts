/** Why a page has no text of its own. */
export type Contentless = 'heading' | 'cookie_wall' | 'script_shell';

const longestHeading = 300;
const longestShell = 400;
const longestWall = 4000;
/** So much beside what is said of cookies is a text. */
const leastText = 120;
const cookies = /\bcookies?\b|クッキー|\bсookie|\bcookie-/i;
const usesCookies =
  /(?:\b(?:us(?:e[sd]?|ing|a|amos|iamo)|stor(?:e|es|ing)|set(?:s|zen)?|place|verwende[nt]?|nutz(?:en|t)|einsatz|utilis\w+|utiliz\w+|recour\w+|gebruik\w*|używa\w*|använder|bruger|bruker)\b|использу\p{L}+|使用|利用)/iu;
const consent =
  /\b(?:accept\w*|agree|consent\w*|allow all|reject all|preferences|privacy|akzeptier\w*|zustimm\w*|einwillig\w*|datenschutz\w*|accepter|refuser|consentement|aceptar|acepto|rechazar|accett\w*|rifiut\w*|accepteren|aceitar|zgod\w*|godkänn\w*)\b|соглас|принять|同意|接受/iu;
const shell =
  /(?:enable|activate|turn on|requires?|without|needs?) java ?script|java ?script (?:is |must be |to be )?(?:required|disabled|not enabled|enabled|turned off)|java ?script (?:zu )?aktivieren|aktivier\w+ (?:sie )?(?:bitte )?java ?script|(?:activer|habilit\w+|active|attiva\w*|abilita\w*|inschakel\w*) (?:el |le |o )?java ?script|включите java ?script|启用 ?java ?script|java ?script(?:を| を)有効|^(?:please wait|loading|lädt|chargement|cargando|caricamento|laden|загрузка|加载中|読み込み中)\s*(?:…|\.{1,3})?$/iu;

/**
 * Why a page's text is none: it speaks of cookies alone, or of the script that would write it. Null where it is a text.
 *
 * @example
 * ```ts
 * lacksText('You need to enable JavaScript to run this app.'); // 'script_shell'
 * ```
 */
export function lacksText(text: string): Exclude<Contentless, 'heading'> | null {
  const plain = text.replace(/^#+\s+/gm, '').trim();
  const unheaded = text.replace(/^#+\s.*$/gm, '').trim();
  if (plain.length <= longestShell && (shell.test(plain) || shell.test(unheaded))) return 'script_shell';
  if (plain.length > longestWall || !cookies.test(plain) || !usesCookies.test(plain) || !consent.test(plain))
    return null;
  const sentences = plain.split(/(?<=[.!?。！？])\s*|\n+/u);
  const others = sentences.filter((sentence) => !cookies.test(sentence) && !consent.test(sentence));
  return others.join(' ').length < leastText ? 'cookie_wall' : null;
}

/** The same of a page in markdown, which shows what is a heading alone. */
export function lacksContent(markdown: string): Contentless | null {
  const lines = markdown.split('\n').filter((line) => /[\p{L}\p{N}]/u.test(line));
  const isHeading =
    lines.length > 0 && markdown.length <= longestHeading && lines.every((line) => /^#{1,6}\s/.test(line));
  return isHeading ? 'heading' : lacksText(markdown);
}

/** What a page without a text of its own is, as an error's message goes on after its address. */
export const contentless: Record<Contentless, string> = {
  heading: 'the page is only a heading',
  cookie_wall: 'the page shows only its question about cookies',
  script_shell: 'the page has no text until its scripts have run',
};
