/** Adobe's character collections: simplified and traditional Chinese, Japanese, Korean. */
export const collections = ['gb1', 'cns1', 'japan1', 'korea1'] as const;
export type Collection = (typeof collections)[number];

/** The CMaps that PDF predefines (ISO 32000-1, table 118), those that they build on, and the one that leads to Unicode. */
const names: Record<Collection, string> = {
  gb1: 'GB-EUC-H GB-EUC-V GBpc-EUC-H GBpc-EUC-V GBK-EUC-H GBK-EUC-V GBKp-EUC-H GBKp-EUC-V GBK2K-H GBK2K-V UniGB-UCS2-H UniGB-UCS2-V UniGB-UTF16-H UniGB-UTF16-V Adobe-GB1-UCS2',
  cns1: 'B5pc-H B5pc-V HKscs-B5-H HKscs-B5-V ETen-B5-H ETen-B5-V ETenms-B5-H ETenms-B5-V CNS-EUC-H CNS-EUC-V UniCNS-UCS2-H UniCNS-UCS2-V UniCNS-UTF16-H UniCNS-UTF16-V Adobe-CNS1-UCS2',
  japan1:
    'H V EUC-H EUC-V Ext-RKSJ-H Ext-RKSJ-V Add-RKSJ-H Add-RKSJ-V 83pv-RKSJ-H 90pv-RKSJ-H 90pv-RKSJ-V 90ms-RKSJ-H 90ms-RKSJ-V 90msp-RKSJ-H 90msp-RKSJ-V UniJIS-UCS2-H UniJIS-UCS2-V UniJIS-UCS2-HW-H UniJIS-UCS2-HW-V UniJIS-UTF16-H UniJIS-UTF16-V UniJIS2004-UTF16-H UniJIS2004-UTF16-V Adobe-Japan1-UCS2',
  korea1:
    'KSC-EUC-H KSC-EUC-V KSCms-UHC-H KSCms-UHC-V KSCms-UHC-HW-H KSCms-UHC-HW-V KSCpc-EUC-H KSCpc-EUC-V UniKS-UCS2-H UniKS-UCS2-V UniKS-UTF16-H UniKS-UTF16-V Adobe-Korea1-UCS2',
};

export function cMapsOf(collection: Collection): string[] {
  return names[collection].split(' ');
}

/** The collection that holds a CMap; none where PDF does not predefine it. */
export function collectionOf(name: string): Collection | undefined {
  return collections.find((collection) => cMapsOf(collection).includes(name));
}
