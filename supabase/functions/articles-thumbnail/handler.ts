import { createHash } from 'node:crypto';
import { z } from 'zod';
import { makeThumbnail } from '../_articles/make-thumbnail.ts';
import { webAccessSettings } from '../_articles/web-access.ts';
import { defineStage, type HandlerContext } from '../_millrace/mod.ts';
import { articles } from '../_pipelines/articles.ts';
import { type ThumbnailResult, thumbnailResult } from '../_pipelines/articles-results.ts';
import { projectClient } from '../_services/project-client.ts';
import { uploadFile } from '../_services/storage-files.ts';

const bucket = 'thumbnails';
/** After so many tries an image that does not come gives way to a card. */
const triesForImage = 3;

const text = z.string().nullable();
const input = z.object({ entity: z.object({ id: z.string(), title: text, image_url: text }) });

/** Stores an article's thumbnail. Run again, it writes to the same place. Throws a StageError. */
export async function storeThumbnail(
  { entity }: z.output<typeof input>,
  context: HandlerContext,
): Promise<ThumbnailResult> {
  const { jpeg, from, reason } = await makeThumbnail(entity, context, context.retryCount + 1 >= triesForImage);
  const path = `${entity.id}.jpg`;
  await uploadFile({ bucket, path }, jpeg, 'image/jpeg', context.env);
  const { data } = projectClient(context.env).storage.from(bucket).getPublicUrl(path);
  // Another picture has another address, so that no cache shows the former one.
  const version = createHash('sha256').update(jpeg).digest('hex').slice(0, 8);
  return { thumbnail_url: `${data.publicUrl}?v=${version}`, from, reason };
}

export const thumbnailStage = defineStage({
  pipeline: articles,
  stage: 'thumbnail',
  input,
  output: thumbnailResult,
  handler: storeThumbnail,
  settings: [webAccessSettings],
});
