/** The zones of a region by Intl, under the older or the newer name. */
interface RegionZones {
  timeZones?: string[];
  getTimeZones?: () => string[];
}

/** A day without a place may still be the day before, somewhere. */
const furthestBehindMs = 12 * 3_600_000;
const local = /^\s*(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?)?\s*$/;

/** When a date of a page is over. */
export interface DayEnd {
  /** As a moment, as it is shown. */
  moment: Date;
  /** From when on it is over wherever the page meant it; later than the moment where no place is known. */
  over: Date;
}

/**
 * When a day, or a moment without a zone, is over in a country: in the westernmost of its zones; in UTC where the country is not
 * known. Null for a text that says its zone itself, and for what is no such date.
 */
export function dayEnd(text: string, country: string | null): DayEnd | null {
  const parts = local.exec(text);
  if (!parts) return null;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = parts
    .slice(1)
    .map((part) => Number(part ?? 0));
  // Midnight is how a date is written by those who keep moments.
  const isDay = hour === 0 && minute === 0 && second === 0;
  const utc = Date.UTC(year, month - 1, day, hour, minute, second) + (isDay ? 86_400_000 - 1 : 0);
  if (Number.isNaN(utc) || new Date(Date.UTC(year, month - 1, day)).getUTCDate() !== day) return null;
  const zones = zonesOf(country);
  if (zones.length === 0) return { moment: new Date(utc), over: new Date(utc + furthestBehindMs) };
  const moment = new Date(Math.max(...zones.map((zone) => utc - offsetMs(zone, utc))));
  return { moment, over: moment };
}

/** The zones of a country, by its code or its English name. */
function zonesOf(country: string | null): string[] {
  const code = codeOf(country?.trim() ?? '');
  if (code === null) return [];
  const region = new Intl.Locale(`und-${code}`) as RegionZones;
  return region.getTimeZones?.() ?? region.timeZones ?? [];
}

const codes = new Map<string, string>([
  ['usa', 'US'],
  ['united states of america', 'US'],
  ['uk', 'GB'],
  ['great britain', 'GB'],
  ['england', 'GB'],
  ['deutschland', 'DE'],
  ['österreich', 'AT'],
  ['schweiz', 'CH'],
]);

function codeOf(country: string): string | null {
  if (codes.has(country.toLowerCase())) return codes.get(country.toLowerCase()) as string;
  const names = new Intl.DisplayNames('en', { type: 'region', fallback: 'none' });
  if (/^[a-z]{2}$/i.test(country)) return names.of(country.toUpperCase()) ? country.toUpperCase() : null;
  if (country.length < 4) return null;
  const letters = Array.from({ length: 26 }, (_, n) => String.fromCharCode(65 + n));
  const all = letters.flatMap((first) => letters.map((second) => first + second));
  return all.find((code) => names.of(code)?.toLowerCase() === country.toLowerCase()) ?? null;
}

/** How far a zone's clocks are ahead of UTC about that time. */
function offsetMs(timeZone: string, utc: number): number {
  const format = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' });
  const name = format.formatToParts(utc).find(({ type }) => type === 'timeZoneName')?.value ?? '';
  const [, sign = '+', hours = '0', minutes = '0'] = /GMT([+-])(\d\d):(\d\d)/.exec(name) ?? [];
  return Number(`${sign}1`) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}
