/** Adobe's character collections: simplified and traditional Chinese, Japanese, Korean. */
export const collections = ['gb1', 'cns1', 'japan1', 'korea1'] as const;
export type Collection = (typeof collections)[number];

/**
 * The CMaps that PDF predefines (ISO 32000-1, table 118) and whose codes need a table, those that they build on, and the one that leads
 * to Unicode.
 */
const names: Record<Collection, string> = {
  gb1: 'GB-EUC-H GB-EUC-V GBpc-EUC-H GBpc-EUC-V Adobe-GB1-UCS2',
  cns1: 'B5pc-H B5pc-V HKscs-B5-H HKscs-B5-V ETen-B5-H ETen-B5-V ETenms-B5-H ETenms-B5-V CNS-EUC-H CNS-EUC-V Adobe-CNS1-UCS2',
  japan1:
    'H V EUC-H EUC-V Ext-RKSJ-H Ext-RKSJ-V Add-RKSJ-H Add-RKSJ-V 83pv-RKSJ-H 90pv-RKSJ-H 90pv-RKSJ-V 90ms-RKSJ-H 90ms-RKSJ-V 90msp-RKSJ-H 90msp-RKSJ-V Adobe-Japan1-UCS2',
  korea1:
    'KSC-EUC-H KSC-EUC-V KSCms-UHC-H KSCms-UHC-V KSCms-UHC-HW-H KSCms-UHC-HW-V KSCpc-EUC-H KSCpc-EUC-V Adobe-Korea1-UCS2',
};

export function cMapsOf(collection: Collection): string[] {
  return names[collection].split(' ');
}

/** The collection that holds a CMap; none where PDF does not predefine it. */
export function collectionOf(name: string): Collection | undefined {
  return collections.find((collection) => cMapsOf(collection).includes(name));
}

/** A charset whose codes say their letters without a table, and how a CMap of it divides them. */
interface Plain {
  charset: 'utf-16be' | 'gb18030';
  /** The codes of one, two and four bytes, in hexadecimal digits. */
  codes: string[];
  /** The first and the last Latin letter, and the number by which a font knows the first one's width. */
  latin: [first: string, last: string, number: number];
}

const utf16 = ['<0000> <d7ff>', '<d800dc00> <dbffdfff>', '<e000> <ffff>'];
// A range for each first byte: pdf.js compares numbers, and takes the beginning of four bytes for two.
const twoBytes = Array.from({ length: 0xfe - 0x80 }, (_, at) => (at + 0x81).toString(16)).map(
  (lead) => `<${lead}40> <${lead}fe>`,
);
const gbk = ['<00> <80>', '<8140> <fefe>'];
const plain: [RegExp, Plain][] = [
  [/^Uni\w+-UCS2-HW-[HV]$/, { charset: 'utf-16be', codes: utf16, latin: ['0020', '007e', 231] }],
  [
    /^Uni(?:GB|CNS|JIS|JIS2004|KS)-(?:UCS2|UTF16)-[HV]$/,
    { charset: 'utf-16be', codes: utf16, latin: ['0020', '007e', 1] },
  ],
  [/^GBK-EUC-[HV]$/, { charset: 'gb18030', codes: gbk, latin: ['20', '7e', 814] }],
  [/^GBKp-EUC-[HV]$/, { charset: 'gb18030', codes: gbk, latin: ['20', '7e', 1] }],
  [
    /^GBK2K-[HV]$/,
    { charset: 'gb18030', codes: ['<00> <7f>', ...twoBytes, '<81308130> <fe39fe39>'], latin: ['20', '7e', 1] },
  ],
];

const plainOf = (name: string | undefined) => plain.find(([is]) => is.test(name ?? ''))?.[1];

/** Reads the codes of a CMap of Unicode or GB 18030 (ISO 32000-1, table 118); undefined for a CMap that needs a table. */
export function readerOf(name: string | undefined): ((code: number) => string) | undefined {
  const charset = plainOf(name)?.charset;
  if (!charset) return undefined;
  const decoder = new TextDecoder(charset);
  const least = charset === 'utf-16be' ? 2 : 1;
  return (code) => {
    const length = code > 0xffff ? 4 : Math.max(least, code > 0xff ? 2 : 1);
    return decoder.decode(Uint8Array.from({ length }, (_, at) => code >>> (8 * (length - 1 - at))));
  };
}

/**
 * Such a CMap as text, for pdf.js; undefined for a CMap that needs a table. It divides codes from each other and gives the Latin letters
 * their numbers. The table of all others, 15 to 50 kB each, would say of each code what the charset says.
 */
export function plainCMap(name: string): string | undefined {
  const found = plainOf(name);
  if (!found) return undefined;
  const [first, last, number] = found.latin;
  return `/CMapName /${name} def
/WMode ${name.endsWith('V') ? 1 : 0} def
${found.codes.length} begincodespacerange ${found.codes.join(' ')} endcodespacerange
1 begincidrange <${first}> <${last}> ${number} endcidrange
`;
}
