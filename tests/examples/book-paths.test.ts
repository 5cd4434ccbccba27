// The functions read Storage with the rights of the project, so they go by the table's rule for paths themselves too.
import { expect, test } from 'vitest';
import { callHandler } from '../../packages/test/index.ts';
import { split } from '../../supabase/functions/books-split/handler.ts';
import { startProject } from '../support/examples/project-server.ts';

let books = 0;

/** Splits alice's book at this path into pages; an isolate's cache knows books by their id, so each has its own. */
async function splitBook(source_path: string, files: Record<string, string>) {
  const id = `path-${++books}`;
  const project = await startProject({
    books: [{ id, account_id: 'alice', source_path, media_type: 'text/plain' }],
    files,
  });
  return { ...(await callHandler(split, { row: { id }, env: project.env })), received: project.received };
}

test.each([
  'bob/secret.txt',
  'alice',
  'alice/../bob/secret.txt',
  'alice/%2e%2e/bob/secret.txt',
  'alice/.%2E/bob/secret.txt',
  'alice/..\\bob/secret.txt',
  'alice/x/..\\..\\bob/secret.txt',
  'alice/.\t./bob/secret.txt',
  'alice/..\n/bob/secret.txt',
  'alice/%2e%2e/%2e%2e/books/bob/secret.txt',
  'alice/book.txt?x',
  'alice/book.txt#x',
  'alice/book.txt\n',
])('the path %j is an error for good, and nothing is asked of Storage', async (path) => {
  const { error, received } = await splitBook(path, { 'bob/secret.txt': 'his', 'alice/book.txt': 'hers' });
  expect(error).toMatchObject({ code: 'strange_path', permanent: true });
  expect(received.filter((request) => request.path.startsWith('/storage/'))).toEqual([]);
});

test('a path with signs that a URL keeps, inside its account’s folder, is read', async () => {
  const path = 'alice/..x/book&(1)=v1.0+2@home,5.txt';
  const { children } = await splitBook(path, { [path]: 'first page\fsecond page' });
  expect(children.flatMap(({ items }) => items)).toEqual([1, 2].map((key) => ({ key, of: 2 })));
});
