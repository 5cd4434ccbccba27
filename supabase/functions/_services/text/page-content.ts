/** Why a page has no text of its own. */
export type Contentless = 'heading' | 'cookie_wall' | 'script_shell';

const longestHeading = 300;
const longestShell = 400;
const longestWall = 4000;
/** So much beside what is said of cookies is a text. */
const leastText = 120;
const cookies =
  /\bcookies?\b|クッキー|\bсookie|\bcookie-|куки|쿠키|çerez|\bsütik?|evästei|\bkakor\b|informasjonskapsl|עוגיות|ملفات تعريف الارتباط/i;
const usesCookies =
  /(?:\b(?:us(?:e[sd]?|ing|a|amos|iamo)|stor(?:e|es|ing)|set(?:s|zen)?|place|verwende[nt]?|nutz(?:en|t)|einsatz|utilis\w+|utiliz\w+|recour\w+|gebruik\w*|używa\w*|använder|bruger|bruker|použív\p{L}*|kullan\p{L}*|használ\p{L}*|käytäm\p{L}*|käyttää|folosi\p{L}*)|использу\p{L}+|χρησιμοποι\p{L}+|使用|利用|사용|משתמש|نستخدم|يستخدم)/iu;
const consent =
  /\b(?:accept\w*|agree|consent\w*|allow all|reject all|preferences|privacy|akzeptier\w*|zustimm\w*|einwillig\w*|datenschutz\w*|accepter|refuser|consentement|aceptar|acepto|rechazar|accett\w*|rifiut\w*|accepteren|aceitar|zgod\w*|godkänn\w*|souhlas\w*|přijmout|kabul|elfogad\w*|hyväksy\w*|godta\w*|samtykke\w*)|соглас|соглаш|приня|принима|αποδοχ|αποδέχ|同意|接受|동의|수락|אישור|מסכים|أوافق|قبول/iu;
const script = '(?:java ?script|자바스크립트|ジャバスクリプト)';
/** Words that ask for scripts, before their name and behind it. A short posting that requires JavaScript of people is a text. */
const asksBefore =
  'enable|activate|turn on|requires|without|needs|aktivier\\w+(?: sie)?(?: bitte)?|activer|activez|habilit\\w+|favor,? active|ative|attiva\\w*|' +
  'abilita\\w*|inschakel\\w*|schakel|włącz(?:yć)?(?: obsługę)?|povolte|zapněte|aktivera|aktivér|включите|увімкніть|ενεργοποιήστε|' +
  '启用|啟用|开启|開啟|הפעל|تفعيل|تمكين';
const asksBehind =
  '(?:is |must be |to be |appears to be )?(?:required|disabled|not enabled|enabled|turned off)|(?:zu |bitte )?aktivieren|' +
  'отключ|有効|활성화|etkinleştir|engedélyez|käyttöön';
const shell = new RegExp(
  String.raw`\b(?:${asksBefore})(?: (?:el|le|o|a|il|het))? ?${script}|(?:启用|啟用|开启|開啟|включ\p{L}+) ?${script}|` +
    String.raw`${script}(?:\W{0,3}|[를을]|を|'i| i)? ?(?:${asksBehind})|` +
    '^(?:please wait|loading|lädt|wird geladen|chargement|cargando|caricamento|carregando|ładowanie|laden|загрузка|加载中|読み込み中|로딩 ?중)' +
    String.raw`(?:,? (?:please wait|bitte warten))?\s*(?:…|\.{1,3})?$`,
  'iu',
);

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

/** Descriptions of pages without a text of their own, for an error's message after the address. */
export const contentless: Record<Contentless, string> = {
  heading: 'the page is only a heading',
  cookie_wall: 'the page shows only its question about cookies',
  script_shell: 'the page has no text until its scripts have run',
};
