import { type HandlerContext, PermanentError, RetriableError } from '../_millrace/mod.ts';
import { oneAtATime } from '../_services/one-at-a-time.ts';
import { fetchWebFile } from '../_services/web-file.ts';
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
 * Makes a thumbnail of the page's image, or a card with the title where there is none that can be used. One at a time. What may
 * pass by itself, such as a site that is busy, is worth some tries: `isLast` says that a card will do now. Throws a StageError.
 */
export async function makeThumbnail(
  { title, image_url: image }: { title: string | null; image_url: string | null },
  context: Pick<HandlerContext, 'env' | 'signal'>,
  isLast: boolean,
): Promise<Thumbnail> {
  return oneAtATime(context.signal, async () => {
    const found = await pictureOf(image, context, isLast);
    const picture = 'unusable' in found ? drawCard(title ?? '') : found;
    const jpeg = await encodeJpeg(picture);
    return 'unusable' in found ? { jpeg, from: 'card', reason: found.unusable } : { jpeg, from: 'image', reason: null };
  });
}

async function pictureOf(
  image: string | null,
  { env, signal }: Pick<HandlerContext, 'env' | 'signal'>,
  isLast: boolean,
): Promise<Bitmap | { unusable: string }> {
  const url = webAddress(image ?? '');
  if (url === null) return { unusable: image ? 'image_url is no web address' : 'the page has no image' };
  const allowed = allowedHosts(env);
  try {
    const accept = 'image/jpeg, image/png;q=0.9';
    const { bytes } = await fetchWebFile(url, { accept, maxBytes, timeoutMs, signal, allowed, check: checkPicture });
    return await shrinkPicture(bytes);
  } catch (error) {
    const isPassing = error instanceof RetriableError && !isLast;
    const isKnown =
      error instanceof UnusablePicture || error instanceof PermanentError || error instanceof RetriableError;
    if (signal.aborted || isPassing || !isKnown) throw error;
    return { unusable: (error as Error).message };
  }
}
