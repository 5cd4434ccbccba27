/** The topics that the sample site's articles should be about: rows of `topic`. */
export const topics = [
  {
    name: 'Urban gardening',
    description:
      'Gardens and gardeners in town: balcony, roof, window, yard, courtyard, street tree. What is grown and how: beans, potatoes, ' +
      'salad, herbs, seeds, soil, compost, cardboard, straw, crates, beds, water, rain, barrels, bees, spring, summer, autumn, ' +
      'winter and harvest, with neighbours and pupils who plant, sow, water and pick.',
  },
  {
    name: 'Repair culture',
    description:
      'Mending what is broken, together: repair café, workshop, volunteers, evenings and courses where people bring something and ' +
      'learn. Tools, screws, spare parts of metal or printed of plastic, wheels, a new battery, machines, phones, bicycles, a chair or a seat, clothes, cloth, ' +
      'thread, wool, holes and darning. How long it takes, what it costs, what lasts another year, what is made again by hand.',
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
