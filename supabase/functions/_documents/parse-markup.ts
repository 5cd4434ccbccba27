import { Parser } from 'htmlparser2';
import { PermanentError } from '../_millrace/mod.ts';

// The parser's work grows with the depth. Nothing that people read comes near.
const deepest = 1000;

/** Receives what stands in a page or a part of a document, in order. Each element that opens closes, if only at the end. */
export interface MarkupReader {
  open(name: string, attributes: Record<string, string>): void;
  text(text: string): void;
  close(name: string): void;
}

/** Reads HTML or XML, as far as it can be read. Throws the PermanentError `damaged_document` where it is too tangled. */
export function parseMarkup(markup: string, kind: 'html' | 'xml', reader: MarkupReader): void {
  let depth = 0;
  const parser = new Parser(
    {
      onopentag(name, attributes) {
        if (++depth > deepest) {
          throw new PermanentError(
            'damaged_document',
            `The file has more than ${deepest} elements inside one another, which no reader could show: correct it.`,
          );
        }
        reader.open(name, attributes);
      },
      ontext: (text) => reader.text(text),
      onclosetag(name) {
        depth--;
        reader.close(name);
      },
    },
    { xmlMode: kind === 'xml' },
  );
  parser.write(markup);
  parser.end();
}
