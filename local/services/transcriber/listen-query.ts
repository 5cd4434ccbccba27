import { ApiError } from './api-error.ts';

/** The parameters of `POST /v1/listen` that this stand-in knows. */
export interface ListenQuery {
  callback: string | undefined;
  punctuate: boolean;
  paragraphs: boolean;
  detectLanguage: boolean;
  /** Comes back in the answer's metadata. */
  extra: Record<string, string>;
}

/** Reads the query; features it does not know are passed over, as the real API does. Throws an ApiError. */
export function readListenQuery(params: URLSearchParams): ListenQuery {
  const isOn = (name: string) => params.get(name) === 'true';
  const smart = isOn('smart_format');
  return {
    callback: readCallback(params.get('callback')),
    punctuate: smart || isOn('punctuate') || isOn('paragraphs'),
    paragraphs: smart || isOn('paragraphs'),
    detectLanguage: isOn('detect_language'),
    extra: Object.fromEntries(params.getAll('extra').map(readExtra)),
  };
}

function readCallback(text: string | null): string | undefined {
  if (text === null) return undefined;
  const isWebUrl = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
  if (isWebUrl) return text;
  throw new ApiError(400, 'Bad Request', 'Bad Request: callback is no http or https URL: send one, or leave it out');
}

function readExtra(text: string): [string, string] {
  const colon = text.indexOf(':');
  if (colon > 0 && text.length <= 2048) return [text.slice(0, colon), text.slice(colon + 1)];
  throw new ApiError(400, 'Bad Request', 'Bad Request: extra is no KEY:VALUE of at most 2048 characters: correct it');
}
