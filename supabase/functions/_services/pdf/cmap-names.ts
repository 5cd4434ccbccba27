/** Adobe's character collections: simplified and traditional Chinese, Japanese, Korean. */
export const collections = ['gb1', 'cns1', 'japan1', 'korea1'] as const;
export type Collection = (typeof collections)[number];

/**
 * The CMaps that PDF predefines (ISO 32000-1, table 118) but those whose codes are Unicode, those that they build on, and the one that
 * leads to Unicode.
 */
const names: Record<Collection, string> = {
  gb1: 'GB-EUC-H GB-EUC-V GBpc-EUC-H GBpc-EUC-V GBK-EUC-H GBK-EUC-V GBKp-EUC-H GBKp-EUC-V GBK2K-H GBK2K-V Adobe-GB1-UCS2',
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

const ofUnicode = /^Uni(?:GB|CNS|JIS|JIS2004|KS)-(?:UCS2|UTF16)(-HW)?-([HV])$/;

/** Whether the codes of a CMap are UTF-16 (ISO 32000-1, table 118), so that no table is needed to read them. */
export const isUnicodeCMap = (name: string | undefined): boolean => ofUnicode.test(name ?? '');

/**
 * A CMap of Unicode's codes as text, for pdf.js. It divides codes from each other and gives the Latin letters their numbers, by which
 * a font knows their widths; the table of all others, 40 kB each, would say of each code that it is itself.
 */
export function unicodeCMap(name: string): string {
  const [, isHalfWidth, direction] = ofUnicode.exec(name) ?? [];
  return `/CMapName /${name} def
/WMode ${direction === 'V' ? 1 : 0} def
3 begincodespacerange <0000> <d7ff> <d800dc00> <dbffdfff> <e000> <ffff> endcodespacerange
1 begincidrange <0020> <007e> ${isHalfWidth ? 231 : 1} endcidrange
`;
}
