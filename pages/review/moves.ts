// Which codes a curator may write to an article, by the one that it has.
import type { Article } from './project.ts';

export interface Move {
  label: string;
  /** The code that is written. */
  to: number;
  /** Which text goes along: what is in the form, or what stood there before the edit. */
  text?: 'edited' | 'before';
  /** The message after the move. */
  told: string;
}

/** Whether an article at 320 is one that is published already: it was so after it was last in review. */
const isUpdate = ({ history }: Article) =>
  (history.find(({ to_status }) => [300, 310, 400, 410].includes(to_status))?.to_status ?? 0) >= 400;

/** The code at which an article that has failed goes on: that of the stage, of a review its beginning. */
function codeToRetry(article: Article): number | undefined {
  const from = article.history.find(({ to_status }) => to_status === 500)?.from_status;
  if (!from) return undefined;
  return from === 310 || (from === 320 && !isUpdate(article)) ? 300 : Math.floor(from / 10) * 10;
}

const published: Move[] = [
  {
    label: 'Edit',
    to: 320,
    told: 'You can edit the text now. The site shows the old one until you publish again.',
  },
  {
    label: 'Take off the site',
    to: 300,
    told: 'The site is told to show it no longer. It waits for a review again.',
  },
];

const moves: Record<number, Move[]> = {
  300: [{ label: 'Open', to: 310, told: 'Opened.' }],
  310: [
    { label: 'Approve', to: 330, told: 'Approved. It is published in a moment.' },
    { label: 'Edit', to: 320, told: 'You can edit the text now.' },
    { label: 'Reject', to: 540, told: 'Rejected.' },
    { label: 'Put back', to: 300, told: 'Put back.' },
  ],
  320: [
    { label: 'Save and approve', to: 330, text: 'edited', told: 'Saved and approved. It is published in a moment.' },
    { label: 'Save and stop editing', to: 310, text: 'edited', told: 'Saved.' },
    { label: 'Reject', to: 540, told: 'Rejected.' },
  ],
  400: published,
  410: published,
  510: [{ label: 'Fetch it again', to: 110, told: 'It is fetched again.' }],
  530: [
    { label: 'Score it again', to: 120, told: 'It is scored again.' },
    { label: 'Take it all the same', to: 200, told: 'It goes on as if it were relevant.' },
  ],
  540: [{ label: 'Look at it again', to: 300, told: 'It waits for a review again.' }],
};

export function movesAt(article: Article): Move[] {
  const { status_code: code, history, content } = article;
  if (code === 320 && isUpdate(article)) {
    return [
      { label: 'Save and publish again', to: 410, text: 'edited', told: 'Saved. The site shows it in a moment.' },
      {
        label: 'Discard the edit',
        to: history[0]?.from_status ?? 400,
        text: 'before',
        told: 'Discarded. The site has kept the text that it showed.',
      },
    ];
  }
  if (code === 500) {
    const to = codeToRetry(article);
    return to ? [{ label: 'Try again', to, told: 'It is tried again.' }] : [];
  }
  if (code === 520)
    return [{ label: 'It is no duplicate', to: content ? 120 : 110, told: 'It goes on as an article of its own.' }];
  return moves[code] ?? [];
}
