// The text that the manuals of the tests say: sections of four levels, in English of the project's own making.

export interface Section {
  /** 1 for chapters, and so on. */
  level: number;
  title: string;
}

const outline = `
The Frame
  What Stands on the Floor
    Feet and Levelling Screws
    The Bed
      Wear of the Rails
      Oil for the Rails
  What Moves
    The Bar
    The Platen
    The Spring Behind the Platen and What to Do When It Is Tired of Its Work
Paper
  Kinds of Paper
    Made in 1900 and Before
    Wove and Laid
  Damping
    Why Paper Is Damped
    The Night Before
      Boards and Weights
      Signs of Mould
  Grain
Ink
  Black Ink
    Stiff and Soft
    The Slab
  Coloured Ink
    Red
    Mixing a Green out of 2 Blues
Type
  Cases
    The Lay of the Upper Case
    The Lay of the Lower Case
  Setting a Line
    Spaces
    Justifying
  Locking Up
    Furniture and Quoins
    Lifting the Forme
Printing
  Making Ready
    Overlays
      Tissue
      Card
    Underlays
  The Pull
    A Slow Pull
    A Quick Pull
Care
  Every Day
  Every Year
`;

/** The sections of a manual, in order. */
export const sections: Section[] = outline
  .split('\n')
  .filter((line) => line.trim() !== '')
  .map((line) => ({ level: line.search(/\S/) / 2 + 1, title: line.trim() }));

const sentences = [
  'Look at it in daylight, and again by the lamp, before you believe what you see.',
  'Whatever is worn on one side is turned once a year, so that it wears on the other.',
  'A drop of oil is enough where the metal shines, and more of it only gathers dust.',
  'Nothing here is in a hurry, and what is forced will have to be done a second time.',
  'Two people do this better than one, and three of them stand in each other’s way.',
  'Keep what is left over in a tin with a lid, and write on the lid what it was for.',
];

/** The text below the n-th section's heading. */
export function textOf(section: number): string {
  return Array.from({ length: 4 }, (_, index) => sentences[(section * 5 + index) % sentences.length]).join(' ');
}

/** The number of each section, such as [2, 1, 3]. */
export function numbersOfSections(): number[][] {
  const counts: number[] = [];
  return sections.map(({ level }) => {
    counts.length = Math.min(counts.length, level);
    while (counts.length < level) counts.push(0);
    counts[level - 1] = (counts[level - 1] ?? 0) + 1;
    return [...counts];
  });
}
