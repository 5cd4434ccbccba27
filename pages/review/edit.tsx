// The form that an article's text is edited in, and what somebody else has saved meanwhile.
import { say } from '../base/messages.tsx';
import { Words } from '../base/words.tsx';
import { asText } from './names.ts';
import { act, draft, dropDraft, type Field, fields, focusTitle, save, textOf } from './open-article.ts';
import type { Article } from './project.ts';

const labels: Record<Field, string> = {
  title: 'Title',
  summary: 'Summary',
  tags: 'Tags',
  thumbnail_url: 'Address of the thumbnail',
};

export function EditForm({ article }: { article: Article }) {
  const text = textOf(article);
  const common = (field: Field) => ({
    id: `edit-${field}`,
    name: field,
    value: text[field],
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) => {
      draft.value = { ...textOf(article), [field]: currentTarget.value };
    },
  });
  return (
    <form
      id="edit"
      aria-label="Edit the article"
      onSubmit={(event) => {
        event.preventDefault();
        void act(() => save(article));
      }}
    >
      {fields.map((field) => (
        <div key={field}>
          <label for={`edit-${field}`}>{labels[field]}</label>
          {field === 'summary' ? (
            <textarea rows={8} {...common(field)} />
          ) : (
            <input {...common(field)} aria-describedby={field === 'tags' ? 'tags-hint' : undefined} />
          )}
          {field === 'tags' && (
            <p class="hint" id="tags-hint">
              With commas between them
            </p>
          )}
        </div>
      ))}
    </form>
  );
}

/** A curator's unsaved text beside the one that somebody else has saved. */
export function OwnText({ article }: { article: Article }) {
  const own = textOf(article);
  const differing = fields.filter((field) => own[field] !== asText(article[field]));
  const shown = (of: (field: Field) => string) => (
    <dl>
      {differing.map((field) => (
        <>
          <dt key={field}>{labels[field]}</dt>
          <dd class="text">
            <Words text={of(field)} most={20_000} />
          </dd>
        </>
      ))}
    </dl>
  );
  return (
    <section class="conflict" aria-label="Your unsaved text">
      <h3>Your unsaved text</h3>
      {shown((field) => own[field])}
      <h3>What is saved now</h3>
      {shown((field) => asText(article[field]))}
      <button
        type="button"
        onClick={() => {
          dropDraft();
          say('Dropped. You see the text that is saved.');
          focusTitle();
        }}
      >
        Drop my text
      </button>
    </section>
  );
}
