/** The topics that the sample site's articles should be about: rows of `topic`. */
export const topics = [
  {
    name: 'Urban gardening',
    description:
      'Growing vegetables, herbs and flowers in town: gardens on balconies, roofs, windows, in yards and tree pits. Gardeners, ' +
      'soil, compost, seeds, water and rain barrels, beans, tomatoes, salad, bees, harvest in summer and winter.',
  },
  {
    name: 'Repair culture',
    description:
      'Mending what is broken instead of buying new: repair cafés with volunteers, workshops, tools, spare parts, bicycles, ' +
      'toasters, phones and batteries, machines, clothes, sewing and darning, chairs. Learning how to repair things together.',
  },
];

/** The tags that they can have: rows of `tag`. */
export const tags = [
  { name: 'balcony', description: 'Gardens on balconies and at windows' },
  { name: 'community', description: 'What neighbours do together' },
  { name: 'compost', description: 'Compost and soil' },
  { name: 'seeds', description: 'Seeds and sowing' },
  { name: 'water', description: 'Rain, barrels and watering' },
  { name: 'bees', description: 'Bees and other insects' },
  { name: 'school', description: 'Pupils, courses and teaching' },
  { name: 'bicycles', description: 'Bicycles and their repair' },
  { name: 'textiles', description: 'Clothes, wool, sewing and darning' },
  { name: 'electronics', description: 'Phones, toasters and other appliances' },
  { name: 'tools', description: 'Tools, libraries of tools and workshops' },
  { name: 'spare-parts', description: 'Spare parts, printed or bought' },
];
