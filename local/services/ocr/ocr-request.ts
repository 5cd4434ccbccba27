import { z } from 'zod';
import { jobRequest, remedy, webUrl } from '../http/job-request.ts';

const pageNumber = remedy('send the number of a page, from 1');
// One package holds the data of one language: another is installed beside it and added here and in read-image.ts.
const languages = ['eng'] as const;
const languageList = remedy(`send a list of at least one of: ${languages.join(', ')}`);

/** The body of the OCR service's `POST /jobs`. */
export const ocrRequest = jobRequest({
  document_url: webUrl,
  page: z.int({ error: pageNumber }).min(1, { error: pageNumber }),
  languages: z
    .array(z.enum(languages, { error: languageList }), { error: languageList })
    .min(1, { error: languageList })
    .default(['eng']),
});
