import { extractText } from './supabase/functions/_documents/extract-text.ts';
import { splitText } from './supabase/functions/_documents/split-text.ts';
import { proposeFacts } from './supabase/functions/_documents/candidate-names.ts';
import { htmlToMarkdown } from './supabase/functions/_documents/html-markdown.ts';
import { tidyText } from './supabase/functions/_documents/tidy-text.ts';
const N = 380_000;
const rep = (s: string, n = N) => s.repeat(Math.ceil(n / s.length)).slice(0, n);
const inputs: Record<string, string> = {
  oneword: rep('a'), cjk: rep('漢字仮名', 130000), emoji: rep('👨‍👩‍👧‍👦', 60000), combining: 'a' + rep('\u0301', 120000), rtl: rep('שלום עולם. ', 150000), arabic: rep('السلام عليكم ورحمة ', 150000), thai: rep('สวัสดีชาวโลกทั้งหลาย', 100000), blanks255: rep('a' + ' '.repeat(254)), nl: rep('a\n\n'), pipes: rep('| a | b |\n'), hashes: rep('# a\n\n'), fences: rep('```\n'), openfence: '```\n' + rep('# a\n'), dashes: rep('-'), base64: rep('QUJDREVGR0hJSktMTU5PUA+/'), dots: rep('. '), digits: rep('1234567890'), caps: rep('ABCdef '), ff: rep('a\f'), underl: rep('a\n=\n\n'), hashspace: '# ' + rep(' a', 900) + rep(' #', 50000), tabs: rep('\t'), mixed: rep('aA1 #-\n'), brackets: rep('[a]('), links: rep('[a](b) '), uni: rep('𝒜𝓑', 90000), quotes: rep('"'), exclam: rep('a!?" '), zwj: rep('\u200d', 130000), flags: rep('🇩🇪', 90000), lowsur: rep('a\u2028b'),
};
for (const [k, t] of Object.entries(inputs)) {
  const c0 = process.cpuUsage();
  try {
    const tidy = tidyText(t); const chunks = splitText('x', tidy);
    const c1 = process.cpuUsage(c0);
    let bad = 0; let pos = 0; let maxlen = 0, maxtok = 0;
    for (const c of chunks) { if (tidy.slice(c.start_offset, c.end_offset) !== c.text || !c.text.isWellFormed?.() ) bad++; if (tidy.slice(pos, c.start_offset).trim()) bad++; pos = Math.max(pos, c.end_offset); maxlen = Math.max(maxlen, c.text.length); maxtok = Math.max(maxtok, c.tokens); if (/[\ud800-\udbff]$|^[\udc00-\udfff]/.test(c.text)) bad++; }
    if (tidy.slice(pos).trim()) bad++;
    const c2 = process.cpuUsage(); for (const c of chunks.slice(0, 20)) proposeFacts(c.text); const c3 = process.cpuUsage(c2);
    console.log(k, 'chunks', chunks.length, 'cpu', Math.round(c1.user / 1000), 'maxlen', maxlen, 'maxtok', maxtok, 'ids', new Set(chunks.map((c) => c.id)).size, bad ? 'BAD ' + bad : '', 'facts20', Math.round(c3.user / 1000));
  } catch (e: any) { console.log(k, e.code, e.message?.slice(0, 100), Math.round(process.cpuUsage(c0).user / 1000)); }
}
