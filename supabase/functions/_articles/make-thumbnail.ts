import { type HandlerContext, PermanentError, RetriableError, type Traced } from '../_millrace/mod.ts';
import { oneAtATime } from '../_services/one-at-a-time.ts';
import { fetchWebFile, type WebFile } from '../_services/web-file.ts';
import { webAddress } from './clean-url.ts';
import type { Bitmap } from './pictures/bitmap.ts';
import { drawCard } from './pictures/draw-card.ts';
import { encodeJpeg } from './pictures/jpeg.ts';
import { checkPicture, shrinkPicture, UnusablePicture } from './pictures/shrink-picture.ts';
import { allowedHosts } from './web-access.ts';

const maxBytes = 10_000_000;
const timeoutMs = 10_000;

/** A thumbnail as JPEG, and why it is a card where it is one. */
export interface Thumbnail {
  jpeg: Uint8Array<ArrayBuffer>;
  from: 'image' | 'card';
  reason: string | null;
}

/**
 * Makes a thumbnail of the page's image, or a card with the title where no image can be used. A passing failure, such
 * as a busy site, is worth some tries. Throws a StageError.
 *
 * @param isLast whether this is the last try: a passing failure then gives a card.
 */
export async function makeThumbnail(
  { title, image_url: image }: { title: string | null; image_url: string | null },
  context: Pick<HandlerContext, 'env' | 'signal'>,
  isLast: boolean,
): Promise<Thumbnail> {
  const file = await imageOf(image, context, isLast);
  return oneAtATime(context.signal, async () => {
    const picture = 'unusable' in file ? file : await shrunk(file.bytes);
    if (!('unusable' in picture)) return { jpeg: await encodeJpeg(picture), from: 'image', reason: null };
    return { jpeg: await encodeJpeg(drawCard(title ?? '')), from: 'card', reason: picture.unusable };
  });
}

interface Unusable {
  unusable: string;
}

async function shrunk(bytes: Uint8Array<ArrayBuffer>): Promise<Bitmap | Unusable> {
  try {
    return await shrinkPicture(bytes);
  } catch (error) {
    if (error instanceof UnusablePicture) return { unusable: error.message };
    throw error;
  }
}

async function imageOf(
  image: string | null,
  { env, signal, ...traced }: Pick<HandlerContext, 'env' | 'signal'> & Traced,
  isLast: boolean,
): Promise<WebFile | Unusable> {
  const url = webAddress(image ?? '');
  if (url === null) return { unusable: image ? 'image_url is no web address' : 'the page has no image' };
  const allowed = allowedHosts(env);
  try {
    const accept = 'image/jpeg, image/png;q=0.9';
    return await fetchWebFile(url, { accept, maxBytes, timeoutMs, signal, allowed, traced, check: checkPicture });
  } catch (error) {
    const isPassing = error instanceof RetriableError && !isLast;
    const isKnown =
      error instanceof UnusablePicture || error instanceof PermanentError || error instanceof RetriableError;
    if (signal.aborted || isPassing || !isKnown) throw error;
    return { unusable: (error as Error).message };
  }
}
