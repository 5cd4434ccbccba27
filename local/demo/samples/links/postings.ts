/** How a board writes what a job is. */
export type Shape = 'posting' | 'graph' | 'list' | 'open graph' | 'text';

/** A job that a sample board offers. */
export interface Posting {
  title: string;
  /** As this board writes it. */
  company: string;
  town: string;
  salary: [from: number, to: number] | null;
  shape: Shape;
  does: string;
}

type Line = [title: string, company: string, town: string, salary: Posting['salary'], shape: Shape, does: string];

const lines: Line[] = [
  ['Lock keeper', 'Wendle Canal Works', 'Harrow Lock', [31_000, 36_000], 'posting', 'opens and closes three locks'],
  ['Dredger mate', 'Wendle Canal Works Ltd', 'Harrow Lock', null, 'graph', 'keeps the channel deep enough for boats'],
  ['Bridge painter', 'WENDLE CANAL WORKS', 'Ostbridge', [28_000, 30_000], 'posting', 'paints iron bridges in summer'],
  ['Timetable planner', 'Ferry Line Seven', 'Ostbridge', [42_000, 48_000], 'posting', 'plans when ferries leave'],
  ['Deck hand', 'Ferry Line Seven', 'Ostbridge', null, 'open graph', 'ties the ferry up and helps people aboard'],
  ['Weaver', 'Loom & Shuttle GmbH', 'Ulm', [35_000, 39_000], 'list', 'weaves cloth for coats on six looms'],
  ['Dyer', 'Loom & Shuttle', 'Ulm', null, 'posting', 'dyes wool with plants'],
  ['Pattern designer', 'Loom & Shuttle GmbH', 'Ulm', [44_000, 52_000], 'graph', 'draws patterns for blankets'],
  ['Clock repairer', 'Small Clocks Co', 'Tarnby', [33_000, 37_000], 'posting', 'cleans and sets old clocks'],
  ['Tower clock winder', 'Small Clocks', 'Tarnby', null, 'text', 'winds nine tower clocks every week'],
  ['Spring maker', 'Small Clocks Co.', 'Tarnby', [30_000, 34_000], 'list', 'bends springs of every size'],
  ['Baker', 'Night Oven Bakery', 'Quay Street', [29_000, 32_000], 'posting', 'bakes rye bread before five'],
  ['Bread courier', 'Night Oven Bakery', 'Quay Street', null, 'open graph', 'brings bread by cargo bike'],
  ['Miller', 'Night Oven Bakery Ltd', 'Millbeck', [34_000, 38_000], 'graph', 'grinds flour with water power'],
  ['Beekeeper', 'Roof Honey', 'Quay Street', null, 'posting', 'looks after forty hives on roofs'],
  ['Hive carpenter', 'Roof Honey', 'Quay Street', [31_000, 33_000], 'posting', 'builds hives from cedar'],
  ['Seed librarian', 'Seed Swap Library', 'Millbeck', null, 'text', 'keeps two thousand kinds of seed apart'],
  ['Gardener', 'Seed Swap Library', 'Millbeck', [27_000, 31_000], 'posting', 'grows old kinds of beans for seed'],
  ['Map engraver', 'Contour Press', 'Ostbridge', [36_000, 41_000], 'posting', 'cuts contour lines into copper'],
  ['Surveyor', 'Contour Press', 'Harrow Lock', [40_000, 47_000], 'list', 'measures footpaths with a wheel'],
  ['Print finisher', 'Contour Press Ltd.', 'Ostbridge', null, 'graph', 'folds maps so that they open again'],
  ['Cable car driver', 'Hill Tram Society', 'Tarnby', [32_000, 35_000], 'posting', 'drives the cable car up the hill'],
  ['Rope splicer', 'Hill Tram Society', 'Tarnby', null, 'posting', 'splices steel rope at night'],
  ['Tool lender', 'Tool Library', 'Quay Street', [26_000, 29_000], 'open graph', 'lends out tools and mends them'],
  ['Saw sharpener', 'Tool Library', 'Quay Street', null, 'posting', 'sharpens saws and teaches it'],
  [
    'Paper restorer',
    'Archive of Small Things',
    'Millbeck',
    [38_000, 43_000],
    'posting',
    'mends torn letters with rice paste',
  ],
];

/** The jobs of all sample boards. */
export const postings: Posting[] = lines.map(([title, company, town, salary, shape, does]) => ({
  title,
  company,
  town,
  salary,
  shape,
  does,
}));

/** A post of a sample network. */
export interface Post {
  author: string;
  text: string;
  /** The job that the post offers, line by line; null where it offers none. */
  offer: Record<'Title' | 'Company' | 'Location' | 'Salary', string> | null;
}

/** Posts: some say that somebody is sought, others say something else. */
export const posts: Post[] = [
  {
    author: 'Wendle Canal Works',
    text: 'Somebody is sought for a job on the towpath from spring on: write to the office.',
    offer: { Title: 'Towpath warden', Company: 'Wendle Canal Works', Location: 'Harrow Lock', Salary: 'by the hour' },
  },
  {
    author: 'Roof Honey',
    text: 'Honey is ready to be spun, and somebody is sought for the job before the lime trees flower.',
    offer: { Title: 'Honey spinner', Company: 'Roof Honey', Location: 'Quay Street', Salary: 'in money and honey' },
  },
  {
    author: 'Contour Press',
    text: 'For our bindery somebody is sought for a job with folding bone and glue.',
    offer: { Title: 'Atlas binder', Company: 'Contour Press', Location: 'Ostbridge', Salary: 'by agreement' },
  },
  {
    author: 'Night Oven Bakery',
    text: 'Last night the oven was lit for the ten thousandth time. There is no job, and nobody is sought.',
    offer: null,
  },
  {
    author: 'Hill Tram Society',
    text: 'The hill line rests on Monday while its rope is looked at. Nobody is sought for that job, we do it ourselves.',
    offer: null,
  },
];
